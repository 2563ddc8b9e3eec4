"""``backfill``: replay the partitions that are meant, and exactly those (C9, C27)."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

from airflow_chronon.airflow_api.errors import AirflowError
from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.airflow_api.records import ACTIVE_RUN_STATES
from airflow_chronon.airflow_api.replay import (
    ReplayIncomplete,
    ReplayOptions,
    Started,
    by_key,
    check_ready,
    range_of,
    start,
)
from airflow_chronon.cli.commands.partitions import CONF, LABELS
from airflow_chronon.cli.intervals import AskedIntervals
from airflow_chronon.cli.landed import Landings
from airflow_chronon.cli.options import FORMAT, ROOT, Command, option
from airflow_chronon.cli.output import FINDINGS, GOOD, show, tell
from airflow_chronon.cli.partition_facts import PartitionFacts
from airflow_chronon.cli.replay_progress import follow, starting
from airflow_chronon.cli.server import AIRFLOW, find_server, need_server
from airflow_chronon.cli.state import BUNDLE, STATE_ROOT, find_state
from airflow_chronon.cli.target import Target, open_target
from airflow_chronon.core.calendar.instants import Instant, TimeWindow
from airflow_chronon.core.confs.plan import good_plans
from airflow_chronon.core.describe.format import counted
from airflow_chronon.core.records.history import seen_plan
from airflow_chronon.core.runs.backfill import Replay, Selection, check_size, meant_starts, select_starts, with_upstream
from airflow_chronon.core.runs.states import Known, done_labels, newest_runs
from airflow_chronon.errors import ChrononError, Fault

_WORDS = {
    Selection.MISSING: "missing",
    Selection.FAILED: "failed",
    Selection.STALE: "stale",
    Selection.ALL: "free to run",
}

_LOOKED_AFTER = 1_000  #: partitions of a replay at most, for its inputs to be looked for unasked


def _positive(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of runs: give a whole number from 1")
    return int(text)


def backfill(options: argparse.Namespace) -> int:
    """Print the labels, check everything, create the runs, check those; with ``--wait``, follow them to their end."""
    target = open_target(options)
    plan = target.need_scheduled(options.conf)
    now = int(time.time())
    if plan.starts_when_seen:
        plan = seen_plan(plan, find_state(target.root, options).read_record(plan.dag_id))
    ends = (options.start_ds, options.end_ds or options.start_ds)
    window = plan.read_range(*ends, now=now)
    for note in plan.range_notes(*ends, now=now):
        tell(note)
    asked, selection = AskedIntervals(plan, window, now), _selection_of(options)
    server = find_server(options) if options.dry_run else need_server(options)
    landings = Landings()
    if selection is Selection.STALE:
        known = _known_stale(target, asked, options, server, landings)
    else:
        known = _known(asked, selection, options, server, landings)
    rows = asked.rows(known)
    starts, meant = select_starts(rows, selection), meant_starts(rows, selection)
    check_size(Replay(plan, starts))
    upstream = _upstream(target, Replay(plan, meant), options, landings, now)
    replays = tuple(kept for each in upstream if (kept := _not_under_way(each, server, now)).starts)
    lacking = () if options.with_upstream else replays
    replays = (*(replays if options.with_upstream else ()), *((Replay(plan, starts),) if starts else ()))
    for each in replays:
        check_size(each)
    target.report_problems()
    show(options, text=lambda: _text(replays, asked, selection, len(meant) - len(starts)))
    for each in lacking if starts else ():
        tell(_lacks(each))
    how = ReplayOptions(options.max_active_runs, options.backwards, options.unpause)
    started: list[Started] = []
    code = GOOD
    if replays and server is not None:
        check_ready(server, replays, how)
        if not options.dry_run:
            code = _run(server, replays, how, started, wait=options.wait)
    if server is None:
        tell("no connection names an Airflow: whether it would take these was not checked")
    show(options, value=lambda: _json(replays, started, dry_run=options.dry_run))
    return code


BACKFILL = Command(
    "backfill",
    "replay partitions of a conf, or intervals of a job, through Airflow: exactly those that are printed",
    (
        CONF,
        ROOT,
        *LABELS,
        option("--missing", action="store_true", help="not landed, or without a good run of the job (the default)"),
        option("--failed", action="store_true", help="whose newest run failed, or never starts"),
        option("--stale", action="store_true", help="landed, and what they read was written after them"),
        option("--all", action="store_true", help="every partition of the range"),
        option("--dry-run", action="store_true", help="print the labels and check, create nothing"),
        option("--max-active-runs", type=_positive, metavar="N", help="runs of the range at a time"),
        option("--backwards", action="store_true", help="newest first"),
        option("--with-upstream", action="store_true", help="replay what its producers lack first"),
        option("--unpause", action="store_true", help="unpause a paused DAG"),
        option("--wait", action="store_true", help="follow the runs until they have ended"),
        AIRFLOW,
        STATE_ROOT,
        BUNDLE,
        FORMAT,
    ),
    backfill,
)


def _selection_of(options: argparse.Namespace) -> Selection:
    chosen = [selection for selection in Selection if getattr(options, selection.value)]
    if len(chosen) > 1:
        given = " and ".join(f"--{each.value}" for each in chosen)
        raise ChrononError(Fault("input", given, "each names other partitions", "give one of them"))
    return chosen[0] if chosen else Selection.MISSING


def _known(
    asked: AskedIntervals,
    selection: Selection,
    options: argparse.Namespace,
    server: AirflowServer | None,
    landings: Landings,
) -> Known:
    """What is needed of catalog and Airflow for a selection, and no more: a year of runs is many pages."""
    plan, wants_missing = asked.plan, selection is Selection.MISSING
    landed = landings.of_plan(plan) if wants_missing else None
    # only Airflow knows what failed, and what of a job was done
    by_runs = selection is Selection.FAILED or (wants_missing and not plan.has_partitions)
    runs = None
    if server is not None and server.dag(plan.dag_id) is not None:
        runs = asked.runs(server, states=() if by_runs else ACTIVE_RUN_STATES)
    elif by_runs:
        need_server(options)
    if not plan.has_partitions:
        landed = done_labels(plan.need_schedule(), runs or ())
    return Known(landed, runs, good=asked.good)


def _known_stale(
    target: Target,
    asked: AskedIntervals,
    options: argparse.Namespace,
    server: AirflowServer | None,
    landings: Landings,
) -> Known:
    """What tells which partitions are stale. Raises where Airflow does not tell: none would look like nothing to replay."""
    if not asked.plan.has_partitions:
        problem = "intervals of a job are never stale: a job has no table"
        raise ChrononError(Fault("C15", "--stale", problem, "give --missing, --failed or --all"), conf=asked.plan.key)
    server = server or need_server(options)
    return PartitionFacts(target, find_state(target.root, options), server, asked.now, landings, is_strict=True).known(
        asked
    )


def _upstream(
    target: Target, replay: Replay, options: argparse.Namespace, landings: Landings, now: Instant
) -> tuple[Replay, ...]:
    """What the producers of a replay lack, producers first; looked for unasked where it takes but a moment (C30)."""
    if not replay.starts or not replay.plan.producers:
        return ()
    if not options.with_upstream and len(replay.starts) > _LOOKED_AFTER:
        return ()
    plans = {each.key: each for each in good_plans(target.verdicts)}
    try:
        return with_upstream(replay, plans, landings, now=now)[:-1]
    except ChrononError:
        if options.with_upstream:
            raise
        return ()


def _lacks(replay: Replay) -> str:
    """That a replay would find no inputs."""
    first, last = replay.labels[0], replay.labels[-1]
    count, which = counted(len(replay.labels), "partition"), first if first == last else f"{first} to {last}"
    return f"{replay.plan.key} lacks {count} that these runs read, {which}: --with-upstream replays them first (C30)"


def _not_under_way(replay: Replay, server: AirflowServer | None, now: Instant) -> Replay:
    """The replay without the partitions whose runs are on their way already."""
    plan, starts = replay.plan, replay.starts
    if server is None or not starts or server.dag(plan.dag_id) is None:
        return replay
    window = TimeWindow(starts[0], replay.schedule.end_of(starts[-1]))
    active = AskedIntervals(plan, window, now).runs(server, states=ACTIVE_RUN_STATES)
    busy = newest_runs(replay.schedule, active)
    return Replay(plan, tuple(start for start in starts if start not in busy or busy[start].is_stranded))


def _run(
    server: AirflowServer, replays: Sequence[Replay], how: ReplayOptions, started: list[Started], *, wait: bool
) -> int:
    """Create the runs, producers first; after an error, what was created before it is printed."""
    try:
        with starting(sum(len(replay.starts) for replay in replays)) as on_progress:
            for replay in replays:
                started.append(start(server, replay, how, on_progress=on_progress))
    except (AirflowError, ReplayIncomplete) as error:
        made = ", ".join(f"{len(each.runs)} of {each.dag_id}" for each in started) or "none completely"
        tell(f"{error}\nruns created before that: {made}")
        return FINDINGS
    count = sum(len(each.runs) for each in started)
    tell(f"{counted(count, 'run')} created, for exactly these partitions")
    return follow(server, replays, started) if wait else GOOD


def _text(replays: Sequence[Replay], asked: AskedIntervals, selection: Selection, under_way: int) -> str:
    lines = []
    for replay in replays:
        in_range, alone = range_of(replay), by_key(replay)
        ways = [f"{len(in_range.labels)} as one range"] if in_range is not None else []
        ways += [f"{len(alone)} by key"] if alone else []
        lines.append(f"{replay.plan.key}: {counted(len(replay.labels), 'partition')}, {' and '.join(ways)}")
        lines += [f"  {label}" for label in replay.labels]
    if not replays:
        problem = f"no partition of {asked.window} is {_WORDS[selection]}"
        lines.append(f"{asked.plan.key}: nothing to replay: {problem}")
    if under_way:
        lines.append(f"{asked.plan.key}: left to the runs that are under way: {under_way}")
    return "\n".join(lines)


def _json(replays: Sequence[Replay], started: Sequence[Started], *, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "replays": [
            {
                "conf": replay.plan.key,
                "dag_id": replay.plan.dag_id,
                "labels": list(replay.labels),
                "range": None
                if (label_range := range_of(replay)) is None
                else [label_range.labels[0], label_range.labels[-1]],
                "by_key": list(by_key(replay)),
            }
            for replay in replays
        ],
        "runs": [
            {"dag_id": each.dag_id, "run_id": run_id, "label": label} for each in started for run_id, label in each.runs
        ],
    }
