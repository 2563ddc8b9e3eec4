"""What the demo expects to land, what has landed, and how a person sees it."""

from __future__ import annotations

import json
import subprocess
import sysconfig
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from airflow_api import AirflowApi, ApiError, DagRun
from rich.box import SIMPLE_HEAD
from rich.table import Table

from airflow_chronon.core.calendar.instants import MINUTE
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import escape_label

#: The Join whose newest rows are shown at the end.
SHOWN = "commerce.checkout.serving__1"
FEATURE_ROWS, FEATURE_WIDTH = 5, 14  #: how many of them at most, and how wide one is with its margin


class DemoFailed(RuntimeError):
    """Why the demo cannot go on, or did not finish; the text is for people."""


@dataclass(frozen=True)
class Expected:
    """One conf and the labels of the partitions that its schedule has asked for by now."""

    name: str
    dag_id: str
    grid: str
    column: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Progress:
    """One conf at one moment."""

    expected: Expected
    table: str  #: full name; empty until Airflow knows the DAG
    landed: tuple[str, ...]  #: of the expected labels
    waits: str  #: as a sentence; empty when nothing is being waited for

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(label for label in self.expected.labels if label not in self.landed)

    @property
    def count(self) -> str:
        return f"{len(self.landed)} of {len(self.expected.labels)}"


@dataclass(frozen=True)
class Failure:
    """A run that ended badly, with the sentence its task left in the log."""

    dag_id: str
    label: str
    task: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.dag_id}, partition {self.label}, task {self.task}: {self.sentence}"


@dataclass(frozen=True)
class Expectation:
    """What is to land, and the confs and jobs that never will: Airflow shows why as import errors."""

    partitions: tuple[Expected, ...] = ()
    rejected: tuple[str, ...] = ()


def expected_partitions(*, root: Path, now: datetime, environment: Mapping[str, str]) -> Expectation:
    """What the scheduler would have created at ``now`` for each conf, asked from `airflow-chronon explain`.

    The answer moves on with ``now``: a partition that closes while the demo runs is expected too. Jobs write none.
    """
    program = Path(sysconfig.get_path("scripts")) / "airflow-chronon"
    command = [str(program), "explain", "--root", str(root), "--after", "none", "--now", f"{now:%Y-%m-%dT%H:%M:%SZ}"]
    done = subprocess.run(
        [*command, "--format", "json"], env=dict(environment), capture_output=True, text=True, check=False
    )
    if not done.stdout.strip():
        raise DemoFailed(f"airflow-chronon explain said nothing that can be read: {done.stderr.strip()}")
    answer: dict[str, dict[str, Any]] = json.loads(done.stdout)
    confs = {key: conf for key, conf in answer.items() if conf["status"] == "ok" and not key.startswith("job/")}
    return Expectation(
        tuple(
            _expected(name=key.partition("/")[2], conf=conf)
            for key, conf in confs.items()
            if any("backfill" in run["modes"] for run in conf["runs"])
        ),
        tuple(key for key, conf in answer.items() if conf["status"] == "rejected"),
    )


def _expected(*, name: str, conf: Mapping[str, Any]) -> Expected:
    grid = PartitionGrid(conf["grid"]["interval_minutes"] * MINUTE, conf["grid"]["offset_minutes"] * MINUTE)
    labels = [label for run in conf["runs"] for label in run["modes"].get("backfill", {}).get("partitions", ())]
    return Expected(
        name=name,
        dag_id=conf["dag_id"],
        grid=str(grid),
        column=conf["grid"]["column"],
        labels=tuple(dict.fromkeys(labels)),
    )


class Watcher:
    """Looks at Airflow and at the warehouse; remembers what cannot change."""

    def __init__(self, *, api: AirflowApi, warehouse: Path) -> None:
        self._api, self._warehouse = api, warehouse
        self._tables: dict[str, str] = {}
        self._failures: dict[tuple[str, str], Failure] = {}

    def progress(self, expected: Iterable[Expected]) -> list[Progress]:
        """Where each conf stands."""
        waiting: dict[str, Counter[str]] = {}
        for task in self._api.tasks(state="deferred"):
            table = task.task_id.removeprefix("wait.")
            if table != task.task_id:
                waiting.setdefault(task.dag_id, Counter())[table] += 1
        return [self._one(item, waiting.get(item.dag_id, Counter())) for item in expected]

    def failures(self) -> list[Failure]:
        """Every run that has failed, retries included, oldest first."""
        for run in self._api.runs(state="failed"):
            if (run.dag_id, run.run_id) not in self._failures:
                self._failures[run.dag_id, run.run_id] = self._failure(run)
        return list(self._failures.values())

    def import_errors(self) -> list[str]:
        """What Airflow could not load, one text a file."""
        return [f"{error['filename']}: {_without_frames(error['stack_trace'])}" for error in self._api.import_errors()]

    def rows(self, progress: Progress) -> int:
        """How many rows the landed partitions hold, from the Parquet footers."""
        from pyarrow import parquet

        files = [
            file
            for label in progress.landed
            for file in self._folder(progress.table, progress.expected.column, label).rglob("*.parquet")
        ]
        return sum(parquet.read_metadata(file).num_rows for file in files)

    def newest_file(self, progress: Progress) -> Path | None:
        """A file of the newest partition that has landed."""
        for label in reversed(progress.landed):
            for file in self._folder(progress.table, progress.expected.column, label).rglob("*.parquet"):
                return file
        return None

    def _one(self, expected: Expected, waiting: Counter[str]) -> Progress:
        table = self._table(expected.dag_id)
        landed = tuple(label for label in expected.labels if table and self._landed(table, expected.column, label))
        waits = ", ".join(f"{name} ({count} {'run' if count == 1 else 'runs'})" for name, count in waiting.items())
        return Progress(expected=expected, table=table, landed=landed, waits=waits if table else "its DAG")

    def _table(self, dag_id: str) -> str:
        if dag_id not in self._tables:
            for asset in self._api.assets(dag_id=dag_id):
                produced_here = any(task["dag_id"] == dag_id for task in asset["producing_tasks"])
                of_backfill = asset["uri"].startswith("chronon://") and not asset["uri"].endswith("__upload")
                if produced_here and of_backfill:
                    self._tables[dag_id] = asset["uri"].removeprefix("chronon://").strip("/").replace("/", ".")
        return self._tables.get(dag_id, "")

    def _folder(self, table: str, column: str, label: str) -> Path:
        return self._warehouse / table / f"{column}={escape_label(label)}"

    def _landed(self, table: str, column: str, label: str) -> bool:
        folder = self._folder(table, column, label)
        return folder.is_dir() and any(folder.iterdir())

    def _failure(self, run: DagRun) -> Failure:
        label = run.partition_key or run.run_id
        failed = self._api.tasks(run.dag_id, run.run_id, state="failed")
        if not failed:
            return Failure(run.dag_id, label, "none", "the run failed without a failed task")
        task = min(failed, key=lambda one: one.end_date or run.run_after)
        try:
            sentence = _sentence(self._api.log(task))
        except ApiError as error:
            sentence = f"its log cannot be read ({error.detail})"
        return Failure(run.dag_id, label, task.task_id, sentence)


def _sentence(log: Sequence[Mapping[str, Any]]) -> str:
    """The last error of a task's log, without its traceback."""
    for event in reversed(log):
        details = event.get("error_detail") or []
        if details:
            return str(details[0].get("exc_value") or details[0].get("exc_type"))
        if event.get("level") in ("error", "critical"):
            return str(event["event"])
    return "its log does not name an error"


def _without_frames(trace: str) -> str:
    """What a traceback says, without where it was said."""
    lines = [line for line in trace.splitlines() if not line.startswith((" ", "Traceback "))]
    return "\n".join(lines).strip() or trace.strip()


def progress_table(progress: Sequence[Progress], *, failures: Sequence[Failure], title: str) -> Table:
    """The moving table for a terminal."""
    failed = Counter(failure.dag_id for failure in failures)
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("conf", no_wrap=True)
    table.add_column("grid")
    table.add_column("landed", justify="right", no_wrap=True)
    table.add_column("waits for", overflow="fold")
    for item in progress:
        bad = failed[item.expected.dag_id]
        done = not item.missing
        state = f"[red]{bad} failed[/red]" if bad else item.waits
        count = f"[green]{item.count}[/green]" if done else item.count
        table.add_row(item.expected.name, item.expected.grid, count, state)
    return table


def progress_line(item: Progress) -> str:
    """The same for one conf, for output that no terminal shows."""
    newest = f", newest {item.landed[-1]}" if item.landed else ""
    waits = f"; waits for {item.waits}" if item.waits else ""
    return f"{item.expected.name}: {item.count} partitions landed{newest}{waits}"


def landed_table(progress: Sequence[Progress], *, watcher: Watcher) -> Table:
    """What there is to look at now: conf, grid, partitions and rows."""
    table = Table(title="Landed", title_justify="left", box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("conf", no_wrap=True)
    table.add_column("grid")
    for heading in ("landed", "rows"):
        table.add_column(heading, justify="right")
    table.add_column("newest", no_wrap=True)
    for item in progress:
        newest = item.landed[-1] if item.landed else ""
        table.add_row(item.expected.name, item.expected.grid, str(len(item.landed)), f"{watcher.rows(item):,}", newest)
    return table


def features_table(progress: Sequence[Progress], *, watcher: Watcher, width: int) -> Table | None:
    """A few rows of the Join that is served, as many as fit: one line for each of its columns."""
    from pyarrow import parquet

    shown = next((item for item in progress if item.expected.name == SHOWN), None)
    file = watcher.newest_file(shown) if shown is not None else None
    if shown is None or file is None:
        return None
    names = max(map(len, parquet.read_schema(file).names))
    rows = min(FEATURE_ROWS, max(1, (width - names) // FEATURE_WIDTH))
    found = parquet.ParquetFile(file).read().slice(0, rows).to_pylist()
    table = Table(
        title=f"Features of {shown.landed[-1]} in {shown.table}",
        title_justify="left",
        box=SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column("column")
    for row in found:
        table.add_column(str(row["order_id"]), justify="right")
    for column in found[0] if found else ():
        if column != "order_id":
            table.add_row(column, *("" if row[column] is None else str(row[column]) for row in found))
    return table
