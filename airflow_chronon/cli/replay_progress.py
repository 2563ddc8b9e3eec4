"""Progress of a replay: a bar when a person looks, a line per change otherwise."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.airflow_api.replay import Started, end_states
from airflow_chronon.cli.output import FINDINGS, GOOD, tell
from airflow_chronon.core.runs.backfill import Replay

POLL_SECONDS = 3.0  #: seconds between two polls of Airflow


@contextmanager
def starting(total: int) -> Iterator[Callable[[int], None]]:
    """While runs are created; yields a function that takes how many more there are."""
    with _bar(total) as (bar, task):
        yield lambda count: bar.update(task, advance=count, description="creating runs")


def follow(server: AirflowServer, replays: Sequence[Replay], started: Sequence[Started]) -> int:
    """Return once every run has ended: 0 when all ended well, else 1 with the labels that did not."""
    since = {replay.plan.dag_id: replay.starts[0] for replay in replays}
    total = sum(len(each.runs) for each in started)
    said = ""
    with _bar(total) as (bar, task):
        while True:
            states: dict[tuple[str, str], str] = {}
            for each in started:
                found = end_states(server, each, since=since[each.dag_id])
                states |= {(each.dag_id, run_id): found.get(run_id, "deleted") for run_id, _ in each.runs}
            counts = Counter(states.values())
            text = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
            ended = total - sum(counts[state] for state in ("queued", "running"))
            bar.update(task, completed=ended, description=text)
            if bar.disable and text != said:
                tell(text)
                said = text
            if ended == total:
                break
            time.sleep(POLL_SECONDS)
    return _verdict(started, states)


def _verdict(started: Sequence[Started], states: Mapping[tuple[str, str], str]) -> int:
    bad = [
        f"{each.dag_id} {label}: {state} ({run_id})"
        for each in started
        for run_id, label in each.runs
        if (state := states[each.dag_id, run_id]) != "success"
    ]
    for line in bad:
        tell(line)
    return FINDINGS if bad else GOOD


@contextmanager
def _bar(total: int) -> Iterator[tuple[Progress, TaskID]]:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        yield bar, bar.add_task("", total=total)
