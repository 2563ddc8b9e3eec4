"""Which partitions a ``backfill`` is about: what was selected, and what is upstream and downstream of it (C9, C27, C30)."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.airflow_api.records import ACTIVE_RUN_STATES
from airflow_chronon.cli.intervals import AskedIntervals
from airflow_chronon.cli.landed import Landings
from airflow_chronon.cli.partition_facts import PartitionFacts
from airflow_chronon.cli.server import need_server
from airflow_chronon.cli.state import find_state
from airflow_chronon.cli.target import Target
from airflow_chronon.core.calendar.instants import Instant, TimeWindow
from airflow_chronon.core.confs.plan import Plan, good_plans
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.runs.backfill import Replay, Selection, check_size, meant_starts, select_starts, with_upstream
from airflow_chronon.core.runs.downstream import with_downstream
from airflow_chronon.core.runs.states import Known, done_labels, newest_runs
from airflow_chronon.errors import ChrononError, Fault

_LOOKED_AFTER = 1_000  #: partitions of a replay at most, for its inputs to be looked for unasked


@dataclass(frozen=True)
class Chosen:
    """What a command asks for: the replays, producers first, and what it leaves to others."""

    replays: tuple[Replay, ...]
    lacking: tuple[Replay, ...] = ()  #: of producers, that would have to run first
    under_way: int = 0  #: partitions whose runs are on their way already


def choose(options: argparse.Namespace, target: Target, asked: AskedIntervals, server: AirflowServer | None) -> Chosen:
    """The partitions that are meant, with what is upstream and downstream of them where that was asked for."""
    plan, now, selection, landings = asked.plan, asked.now, selection_of(options), Landings()
    if selection is Selection.STALE:
        known = _known_stale(target, asked, options, server, landings)
    else:
        known = _known(asked, selection, options, server, landings)
    rows = asked.rows(known)
    starts, meant = select_starts(rows, selection), meant_starts(rows, selection)
    check_size(Replay(plan, starts))
    if options.in_order:
        _check_reads_itself(plan)
    upstream = _upstream(target, Replay(plan, meant), options, landings, now)
    upstream = tuple(kept for each in upstream if (kept := _not_under_way(each, server, now)).starts)
    lacking = () if options.with_upstream or not starts else upstream
    replays = (*(upstream if options.with_upstream else ()), *((Replay(plan, starts),) if starts else ()))
    under_way = len(meant) - len(starts)
    if options.downstream:
        plans = {each.key: each for each in good_plans(target.verdicts)}
        touched = with_downstream(replays, plans, landings, now=now)
        free = tuple(each if each in replays else _not_under_way(each, server, now) for each in touched)
        under_way += sum(len(each.starts) for each in touched) - sum(len(each.starts) for each in free)
        replays = tuple(each for each in free if each.starts)
    for each in replays:
        check_size(each)
    return Chosen(replays, lacking, under_way)


def _check_reads_itself(plan: Plan) -> None:
    """Refuse an order of runs where no run reads the one before."""
    reads = plan.dependencies.values() if isinstance(plan, ConfPlan) else ()
    if not any(each.table in plan.tables for found in reads for each in found):
        problem = "no partition of it reads an earlier one of its own"
        remedy = "leave it out; --max-active-runs 1 runs one partition at a time"
        raise ChrononError(Fault("input", "--in-order", problem, remedy), conf=plan.key)


def selection_of(options: argparse.Namespace) -> Selection:
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


def _not_under_way(replay: Replay, server: AirflowServer | None, now: Instant) -> Replay:
    """The replay without the partitions whose runs are on their way already."""
    plan, starts = replay.plan, replay.starts
    if server is None or not starts or server.dag(plan.dag_id) is None:
        return replay
    window = TimeWindow(starts[0], replay.schedule.end_of(starts[-1]))
    active = AskedIntervals(plan, window, now).runs(server, states=ACTIVE_RUN_STATES)
    busy = newest_runs(replay.schedule, active)
    return Replay(plan, tuple(start for start in starts if start not in busy or busy[start].is_stranded))
