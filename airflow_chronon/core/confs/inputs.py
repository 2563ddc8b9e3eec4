"""Runs that would be left without inputs, told before anything is deployed (C30)."""

from __future__ import annotations

from collections.abc import Container, Iterator
from shlex import quote
from typing import TYPE_CHECKING

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.schedules.partitioned import Run
from airflow_chronon.core.waits.outlook import TableWriter
from airflow_chronon.errors import Fault

if TYPE_CHECKING:
    from airflow_chronon.core.confs.resolve import ConfPlan


def left_without_inputs(plan: ConfPlan) -> Iterator[Fault]:
    """What a conf that catches up reads before its producers begin: those of its runs will fail."""
    start, policy = plan.schedule.first_start, plan.schedule.catch_up
    if not policy.enabled or policy.max_runs is not None or start is None:
        return  # with a cap, where it begins depends on when it is deployed
    first = plan.schedule.first_after(start)
    if first is None:
        return
    for table, writers, starts in _produced(plan, first):
        if not all(writer.is_known for writer in writers):
            continue  # it may run elsewhere, or by hand
        begins = [_begins(writer) for writer in writers]
        known = [instant for instant in begins if instant is not None]
        if known and min(known) <= starts[0]:
            continue
        writer, oldest = writers[0], starts[0]
        label = plan.schedule.label(first.end - plan.schedule.grid.interval)
        needed, name = _label(writer, oldest), writer.dag_id
        if known:
            when, until = f"begins with {_label(writer, min(known))}", quote(_label(writer, min(known) - 1))
        else:
            when, until = "does not catch up", "<the last one before it begins>"
        problem = (
            f"it catches up from {label}, which needs {needed} of {table}, and {name} {when}: runs before that fail"
        )
        command = f"airflow-chronon backfill {name} --start-ds {quote(needed)} --end-ds {until}"
        yield Fault(
            "C30", "catchup", problem, f"let {name} catch up from an earlier start_date too, or fill it: {command}"
        )


def begins_later(plan: ConfPlan, *, new: Container[str], now: Instant) -> Iterator[Fault]:
    """What the first run of a new conf reads that its new producers do not make: it is skipped, or fails with catch-up.

    ``new`` are the DAGs that have had no run yet.
    """
    run, catches_up = plan.schedule.next_run(None, now), plan.schedule.catch_up.enabled
    if run is None:
        return
    for table, writers, starts in _produced(plan, run):
        lacking = [start for start in starts if all(_passes_over(writer, start, new, now) for writer in writers)]
        if lacking:
            writer = writers[0]
            first, last = _label(writer, lacking[0]), _label(writer, lacking[-1])
            label = plan.schedule.label(run.end - plan.schedule.grid.interval)
            needed = first if first == last else f"{first} to {last}"
            problem = f"{label}, its first partition, needs {needed} of {table}, before {writer.dag_id} begins"
            remedy = f"to have it all the same: airflow-chronon backfill {writer.dag_id} --start-ds {quote(first)} --end-ds {quote(last)}"
            end = "its run fails" if catches_up else "it is skipped, and the first one whose inputs are there lands"
            yield Fault("C30", "", f"{problem}: {end}", remedy)


def _produced(plan: ConfPlan, run: Run) -> Iterator[tuple[str, tuple[TableWriter, ...], list[Instant]]]:
    """The tables of this tree that a run waits for, with who writes them and what all its modes need of them, oldest first."""
    needed: dict[str, set[Instant]] = {}
    for mode in run.modes:
        for wait in plan.mode_waits(mode, run.modes[mode].window):
            if wait.table in plan.writers and wait.spec is not None and wait.labels:
                needed.setdefault(wait.table, set()).update(map(wait.spec.format.decode, wait.labels))
    for table, starts in needed.items():
        if plan.writers[table]:
            yield table, plan.writers[table], sorted(starts)


def _begins(writer: TableWriter) -> Instant | None:
    """The start of the oldest partition that a writer makes by itself; None when that depends on when it is deployed."""
    assert writer.schedule is not None
    policy, first = writer.schedule.catch_up, writer.schedule.first_start
    if not policy.enabled or first is None:
        return None
    return first if policy.skip_to is None else max(first, writer.schedule.grid.ceil(policy.skip_to))


def _passes_over(writer: TableWriter, start: Instant, new: Container[str], now: Instant) -> bool:
    """Whether a new writer begins after the partition."""
    if writer.schedule is None or not writer.is_known or writer.dag_id not in new:
        return False
    first, covering = writer.schedule.next_run(None, now), writer.run_of(start)
    return first is not None and covering is not None and covering.end < first.end


def _label(writer: TableWriter, start: Instant) -> str:
    assert writer.schedule is not None
    return writer.schedule.label(writer.schedule.grid.floor(start))
