"""Replays through Airflow: all is checked before anything is created, and what was created is checked after it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from airflow_chronon.airflow_api.coverage import runs_covering, stranded_runs
from airflow_chronon.airflow_api.errors import Conflict
from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.airflow_api.records import ACTIVE_RUN_STATES, BackfillRequest, Reprocess, RunRecord
from airflow_chronon.core.calendar.instants import Instant, TimeWindow
from airflow_chronon.core.confs.plan import Plan
from airflow_chronon.core.partitions.labels import PartitionKey
from airflow_chronon.core.records.grid_contract import CONTRACTS_ASSET, contract_fault, contract_key
from airflow_chronon.core.runs.backfill import Replay
from airflow_chronon.core.runs.replay_order import REPLAY, ReplayOrder
from airflow_chronon.core.runs.states import WHY_STRANDED
from airflow_chronon.core.schedules.ranges import LabelRange
from airflow_chronon.errors import ChrononError, Fault

_POLLS, _POLL_SECONDS = 50, 2.0  #: how often a backfill whose runs have ended is polled, and how far apart


@dataclass(frozen=True)
class ReplayOptions:
    """How Airflow runs a replay."""

    max_active_runs: int | None = None  #: runs of the backfill at a time; None: as the conf's settings say
    backwards: bool = False
    unpause: bool = False
    order: ReplayOrder | None = None  #: what every run carries


@dataclass(frozen=True)
class Started:
    """The runs that a replay has made: run id and label."""

    dag_id: str
    runs: tuple[tuple[str, str], ...]


class ReplayRefused(ChrononError):
    """A replay that cannot be; nothing was created."""


class ReplayIncomplete(ChrononError):
    """Airflow made other runs than were asked for."""


def range_of(replay: Replay) -> LabelRange | None:
    """The range that Airflow's backfill runs; the labels outside it run by their keys.

    Airflow takes one contiguous range at a time: the longest, when it is more than one label. It names the runs of a
    backfill itself, so those that others hold for run by their keys.
    """
    if replay.is_by_key:
        return None
    longest = max(replay.label_ranges, key=lambda label_range: len(label_range.labels), default=None)
    return longest if longest is not None and len(longest.labels) > 1 else None


def by_key(replay: Replay) -> tuple[PartitionKey, ...]:
    """The labels that run by their keys."""
    in_range = range_of(replay)
    covered = frozenset(in_range.labels if in_range is not None else ())
    return tuple(label for label in replay.labels if label not in covered)


def check_grid(server: AirflowServer, plan: Plan) -> None:
    """Refuse a conf whose table was begun on another grid (C22); a job has none."""
    if plan.spec is None:
        return
    fault = contract_fault(kept_grid(server, plan), plan.spec, table=plan.table)
    if fault is not None:
        raise ReplayRefused(fault, conf=plan.key)


def kept_grid(server: AirflowServer, plan: Plan) -> str | None:
    """The grid of the first write of a conf version, as text; None when nothing was written yet, and for a job."""
    if plan.grid is None:
        return None
    kept = server.asset_state(CONTRACTS_ASSET, contract_key(plan.dag_id))
    return None if kept is None else str(kept)


def check_ready(
    server: AirflowServer,
    replays: Iterable[Replay],
    options: ReplayOptions,
    *,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Everything that would make a replay fail, wait for ever, or run something else than was asked.

    Raises :class:`ReplayRefused` for a DAG that Airflow does not run, that is paused (unless it may be unpaused), whose
    table is on another grid, or that has an active backfill; and when Airflow would run other labels. A backfill whose
    runs have all ended is waited for: Airflow notices that every 30 seconds only.
    """
    for replay in replays:
        _check_dag(server, replay.plan, options)
        check_grid(server, replay.plan)
        label_range = range_of(replay)
        if label_range is None:
            continue
        _check_free(server, replay, pause)
        planned = server.plan_backfill(_request(replay, label_range, options))
        planned += tuple(_held_up(server, replay, label_range) - set(planned))
        _compare(label_range.labels, planned, replay.plan.key, ReplayRefused, "Airflow would run")


def _check_dag(server: AirflowServer, plan: Plan, options: ReplayOptions) -> None:
    dag, conf = server.dag(plan.dag_id), plan.key
    if dag is None or dag.is_stale:
        state = "does not know" if dag is None else "no longer loads"
        remedy = "is the conf deployed? airflow-chronon check"
        raise _refused("C23", f"Airflow {state} the DAG {plan.dag_id}", remedy, conf)
    if dag.is_paused and not options.unpause:
        problem = f"the DAG {plan.dag_id} is paused: its replay would wait for ever"
        raise _refused("C25", problem, "give --unpause, or unpause it", conf)


def _check_free(server: AirflowServer, replay: Replay, pause: Callable[[float], None]) -> None:
    """Airflow runs one backfill at a time per DAG."""
    plan = replay.plan
    for _ in range(_POLLS):
        active = [each for each in server.backfills(plan.dag_id) if each.completed is None]
        if not active:
            return
        if server.runs(plan.dag_id, states=ACTIVE_RUN_STATES, run_types=("backfill",)):
            break
        pause(_POLL_SECONDS)
    one, write = active[0], replay.schedule.label
    span = f"{write(one.first)} to {write(one.last)}"
    problem = f"backfill {one.id} of {plan.dag_id} ({span}) is active, and Airflow runs one at a time per DAG"
    raise _refused("C28", problem, "wait for it, or cancel it in Airflow", plan.key)


def start(
    server: AirflowServer,
    replay: Replay,
    options: ReplayOptions,
    *,
    on_progress: Callable[[int], None] = lambda count: None,
) -> Started:
    """Create the runs of a replay; ``on_progress`` hears how many more there are, step by step.

    Raises :class:`ReplayIncomplete` when Airflow has made other runs than those.
    """
    dag_id = replay.plan.dag_id
    if options.unpause:
        dag = server.dag(dag_id)
        if dag is not None and dag.is_paused:
            server.set_paused(dag_id, paused=False)
    for run in _stranded(server, replay):
        end_stranded(server, run, by="airflow-chronon backfill")
    made: list[tuple[str, str]] = []
    label_range = range_of(replay)
    if label_range is not None:
        window = TimeWindow(label_range.first, replay.schedule.end_of(label_range.last))
        before = _backfilled(server, dag_id, window).keys()
        refusal = None
        try:
            server.create_backfill(_request(replay, label_range, options))
        except Conflict as error:  # another one, or our own whose first answer was lost
            refusal = error
        after = _backfilled(server, dag_id, window)
        new = [(run_id, key) for run_id, key in after.items() if run_id not in before]
        if refusal is not None and not new:
            raise refusal
        conf = replay.plan.key
        _compare(label_range.labels, [key for _, key in new], conf, ReplayIncomplete, "Airflow has made runs of")
        made += new
        on_progress(len(new))
    keys = by_key(replay)
    for key in reversed(keys) if options.backwards else keys:
        made.append((_by_key(server, dag_id, key, options.order), key))
        on_progress(1)
    return Started(dag_id, tuple(made))


def _by_key(server: AirflowServer, dag_id: str, key: PartitionKey, order: ReplayOrder | None) -> str:
    """The id of the run of one partition."""
    run_id = None if order is None else order.run_id(key)
    params = None if order is None else {REPLAY: order.to_json()}
    note = "replayed by airflow-chronon backfill"
    try:
        return server.trigger(dag_id, partition_key=key, params=params, note=note, run_id=run_id).run_id
    except Conflict:  # our own, whose first answer was lost: nobody else has the name
        if run_id is None:
            raise
        return server.run(dag_id, run_id).run_id


def end_states(server: AirflowServer, started: Started, *, since: Instant) -> dict[str, str]:
    """The state of each run of a replay by run id; ``since`` is the start of its oldest partition."""
    wanted = {run_id for run_id, _ in started.runs}
    found = server.runs(started.dag_id, run_types=("backfill", "manual"), run_after=(since, None))
    return {record.run_id: record.state for record in found if record.run_id in wanted}


def end_stranded(server: AirflowServer, run: RunRecord, *, by: str) -> None:
    """End a run that Airflow never starts and takes for one under way: it would replay nothing of its partition."""
    server.patch_run(
        run.dag_id, run.run_id, state="failed", note=noted(run, f"Ended by {by}: it could never start, {WHY_STRANDED}.")
    )


def noted(run: RunRecord, note: str) -> str:
    """A further note below what people have written to a run."""
    return f"{run.note}\n{note}" if run.note else note


def _stranded(server: AirflowServer, replay: Replay) -> tuple[RunRecord, ...]:
    """The runs of the partitions of a replay that Airflow never starts."""
    window = TimeWindow(replay.starts[0], replay.schedule.end_of(replay.starts[-1]))
    found = runs_covering(server, replay.plan.dag_id, window, grid=replay.plan.grid, states=("queued",))
    return tuple(run for run in stranded_runs(server, found) if run.partition_date in set(replay.starts))


def _held_up(server: AirflowServer, replay: Replay, label_range: LabelRange) -> set[str]:
    """The labels that Airflow would leave out for the sake of runs that it never starts: those end before the replay."""
    return {run.partition_key or "" for run in _stranded(server, replay)} & set(label_range.labels)


def _backfilled(server: AirflowServer, dag_id: str, window: TimeWindow) -> dict[str, str]:
    """The keys of a DAG's backfill runs by run id."""
    found = server.runs(dag_id, run_types=("backfill",), days=window)
    return {record.run_id: record.partition_key or "" for record in found}


def _request(replay: Replay, label_range: LabelRange, options: ReplayOptions) -> BackfillRequest:
    settings = replay.plan.settings
    return BackfillRequest(
        dag_id=replay.plan.dag_id,
        first=label_range.first,
        last=label_range.last,
        reprocess=Reprocess.COMPLETED,  # the labels are exactly those that are wanted, whatever ran before
        max_active_runs=options.max_active_runs or settings.max_active_runs,
        backwards=options.backwards,
        conf={} if options.order is None else {REPLAY: options.order.to_json()},
    )


def _compare(asked: Sequence[str], got: Sequence[str], conf: str, kind: type[ChrononError], verb: str) -> None:
    """Airflow's backfill drops what it cannot plan in silence: its labels must be ours, each once."""
    if sorted(asked) == sorted(got):
        return
    lacking = sorted(set(asked) - set(got))
    more = sorted(set(got) - set(asked)) or sorted({label for label in got if got.count(label) > 1})
    parts = [f"not {', '.join(lacking[:5])}" if lacking else "", f"also {', '.join(more[:5])}" if more else ""]
    problem = f"{verb} {len(got)} of {len(asked)} partitions: {'; '.join(part for part in parts if part)}"
    remedy = "look at its runs of these partitions; has Airflow parsed the conf as it is now?"
    raise kind(Fault("C27", "", problem, remedy), conf=conf)


def _refused(rule: str, problem: str, remedy: str, conf: str) -> ReplayRefused:
    return ReplayRefused(Fault(rule, "", problem, remedy), conf=conf)
