"""``backfill``: replay the partitions that are meant, and exactly those (C9, C27)."""

from __future__ import annotations

import argparse
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from shlex import quote
from typing import Any

from airflow_chronon.airflow_api.errors import AirflowError
from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.airflow_api.records import RunRecord
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
from airflow_chronon.cli.options import FORMAT, ROOT, Command, option
from airflow_chronon.cli.output import FINDINGS, GOOD, show, tell
from airflow_chronon.cli.replay_choice import choose, selection_of
from airflow_chronon.cli.replay_progress import follow, starting
from airflow_chronon.cli.replay_rest import rest_of
from airflow_chronon.cli.server import AIRFLOW, find_server, need_server
from airflow_chronon.cli.state import BUNDLE, STATE_ROOT, find_state
from airflow_chronon.cli.target import Target, open_target
from airflow_chronon.core.confs.plan import good_plans
from airflow_chronon.core.describe.format import counted
from airflow_chronon.core.records.history import seen_plan
from airflow_chronon.core.runs.backfill import Replay, Selection
from airflow_chronon.core.runs.replay_order import ReplayOrder, dags_held_for, order_of
from airflow_chronon.errors import ChrononError, Fault

_WORDS = {
    Selection.MISSING: "missing",
    Selection.FAILED: "failed",
    Selection.STALE: "stale",
    Selection.ALL: "free to run",
}


def _positive(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of runs: give a whole number from 1")
    return int(text)


def _replay_id(text: str) -> str:
    if not text.isalnum() or not text.isascii():
        raise argparse.ArgumentTypeError(f"{text!r} is not the id of a replay: it was printed when the replay began")
    return text


def backfill(options: argparse.Namespace) -> int:
    """Print the labels, check everything, create the runs, check those; with ``--wait``, follow them to their end."""
    _check(options)
    target = open_target(options)
    plan = target.need_scheduled(options.conf)
    now = int(time.time())
    if plan.starts_when_seen:
        plan = seen_plan(plan, find_state(target.root, options).read_record(plan.dag_id))
    ends = (options.start_ds, options.end_ds or options.start_ds)
    window = plan.read_range(*ends, now=now)
    for note in plan.range_notes(*ends, now=now):
        tell(note)
    asked = AskedIntervals(plan, window, now)
    server = find_server(options) if options.dry_run and not options.resume else need_server(options)
    if options.resume and server is not None:
        rest = rest_of(server, asked, options.resume, good_plans(target.verdicts))
        return _do(options, target, rest.replays, server, text=rest.text, order=rest.order, failed=rest.failed)
    chosen = choose(options, target, asked, server)
    held_for = dags_held_for(chosen.replays) if options.downstream or options.in_order else frozenset[str]()
    replays = tuple(replace(each, is_by_key=each.plan.dag_id in held_for) for each in chosen.replays)
    order = order_of(secrets.token_hex(8), replays, held_for=held_for)
    selection = selection_of(options)
    return _do(
        options,
        target,
        replays,
        server,
        text=lambda: _text(replays, asked, selection, chosen.under_way),
        order=order,
        lacking=chosen.lacking,
    )


def _check(options: argparse.Namespace) -> None:
    """Refuse options that contradict each other."""
    if options.in_order and options.backwards:
        problem = "one runs the oldest first and the other the newest"
        raise ChrononError(Fault("input", "--in-order and --backwards", problem, "give one of them"))
    if options.resume:
        more = [
            f"--{name.replace('_', '-')}"
            for name in ("missing", "failed", "stale", "all", "downstream", "with_upstream", "in_order")
            if getattr(options, name)
        ]
        if more:
            problem = "a replay that goes on runs what it was begun with"
            raise ChrononError(Fault("input", f"--resume and {' and '.join(more)}", problem, "give --resume alone"))


def _do(
    options: argparse.Namespace,
    target: Target,
    replays: tuple[Replay, ...],
    server: AirflowServer | None,
    *,
    text: Callable[[], str],
    order: ReplayOrder,
    lacking: Sequence[Replay] = (),
    failed: Sequence[RunRecord] = (),
) -> int:
    """Show what is to be done, check it, and do it."""
    target.report_problems()
    show(options, text=text)
    for each in lacking:
        tell(_lacks(each))
    how = ReplayOptions(options.max_active_runs, options.backwards, options.unpause, order)
    started: list[Started] = []
    code = GOOD
    if server is not None and (replays or failed):
        check_ready(server, replays, how)
        if not options.dry_run:
            for run in failed:
                server.clear_failed(run.dag_id, run.run_id)
            code = _run(server, replays, how, started, options)
    if server is None:
        tell("no connection names an Airflow: whether it would take these was not checked")
    show(options, value=lambda: _json(replays, started, order, dry_run=options.dry_run))
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
        option(
            "--downstream",
            action="store_true",
            help="replay after it all that reads it, each when its inputs are rebuilt",
        ),
        option(
            "--in-order",
            action="store_true",
            help="oldest first, one after another: for a conf that reads its own table",
        ),
        option("--resume", type=_replay_id, metavar="ID", help="go on with a replay that was cut off or failed"),
        option("--unpause", action="store_true", help="unpause a paused DAG"),
        option("--wait", action="store_true", help="follow the runs until they have ended"),
        AIRFLOW,
        STATE_ROOT,
        BUNDLE,
        FORMAT,
    ),
    backfill,
)


def _lacks(replay: Replay) -> str:
    """That a replay would find no inputs."""
    first, last = replay.labels[0], replay.labels[-1]
    count, which = counted(len(replay.labels), "partition"), first if first == last else f"{first} to {last}"
    return f"{replay.plan.key} lacks {count} that these runs read, {which}: --with-upstream replays them first (C30)"


def _run(
    server: AirflowServer,
    replays: Sequence[Replay],
    how: ReplayOptions,
    started: list[Started],
    options: argparse.Namespace,
) -> int:
    """Create the runs, producers first; after an error, what was created before it is printed."""
    try:
        with starting(sum(len(replay.starts) for replay in replays)) as on_progress:
            for replay in replays:
                started.append(start(server, replay, how, on_progress=on_progress))
    except (AirflowError, ReplayIncomplete) as error:
        made = ", ".join(f"{len(each.runs)} of {each.dag_id}" for each in started) or "none completely"
        tell(f"{error}\nruns created before that: {made}\n{_how_to_go_on(options, how)}")
        return FINDINGS
    count = sum(len(each.runs) for each in started)
    tell(f"{counted(count, 'run')} created, for exactly these partitions")
    if how.order is not None and how.order.rebuilds:
        tell(_how_to_go_on(options, how))
    return follow(server, replays, started) if options.wait else GOOD


def _how_to_go_on(options: argparse.Namespace, how: ReplayOptions) -> str:
    """The command that goes on with a replay that was cut off."""
    if how.order is None or not how.order.rebuilds:
        return "it cannot be gone on with as one: ask for the same range again"
    end = f" --end-ds {quote(options.end_ds)}" if options.end_ds else ""
    command = f"airflow-chronon backfill {quote(options.conf)} --start-ds {quote(options.start_ds)}{end}"
    return f"to go on with it where it is cut off or fails: {command} --resume {how.order.id}"


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


def _json(
    replays: Sequence[Replay], started: Sequence[Started], order: ReplayOrder, *, dry_run: bool
) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        **({} if dry_run else {"id": order.id}),
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
