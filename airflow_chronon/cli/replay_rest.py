"""What is left of a replay that was cut off or failed, as the runs that it has made tell (C27)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.airflow_api.records import RunRecord
from airflow_chronon.cli.intervals import AskedIntervals
from airflow_chronon.core.calendar.instants import Instant, TimeWindow
from airflow_chronon.core.confs.plan import Plan
from airflow_chronon.core.describe.format import counted
from airflow_chronon.core.runs.backfill import Replay, in_order
from airflow_chronon.core.runs.replay_order import ReplayOrder, read_order
from airflow_chronon.errors import ChrononError, Fault


@dataclass(frozen=True)
class Rest:
    """What a replay has not done: the runs that it did not come to make, and those that failed."""

    order: ReplayOrder
    replays: tuple[Replay, ...] = ()
    failed: tuple[RunRecord, ...] = ()
    done: int = 0  #: runs that ended well
    under_way: int = 0

    def text(self) -> str:
        """For people."""
        lines = [f"replay {self.order.id}: {self.done} ended well, {self.under_way} under way"]
        for replay in self.replays:
            lines.append(f"{replay.plan.key}: {counted(len(replay.labels), 'partition')} without a run")
            lines += [f"  {label}" for label in replay.labels]
        for run in self.failed:
            lines.append(f"{run.dag_id}: failed, its failed tasks are cleared")
            lines.append(f"  {run.partition_key}")
        if not self.replays and not self.failed:
            lines.append("nothing to go on with")
        return "\n".join(lines)


def rest_of(server: AirflowServer, asked: AskedIntervals, replay_id: str, plans: Iterable[Plan]) -> Rest:
    """What is left of a replay that made runs of these partitions. Raises ``ChrononError`` where none did."""
    order = _order(server, asked, replay_id)
    known = {plan.dag_id: plan for plan in plans}
    found = [_of_dag(server, order, known[dag_id]) for dag_id in order.rebuilds if dag_id in known]
    by_key = {rest.replays[0].plan.key: rest for rest in found if rest.replays}
    ordered = in_order({plan.key: plan for plan in known.values()}, by_key)
    return Rest(
        order,
        tuple(by_key[key].replays[0] for key in ordered),
        tuple(run for rest in found for run in rest.failed),
        sum(rest.done for rest in found),
        sum(rest.under_way for rest in found),
    )


def _order(server: AirflowServer, asked: AskedIntervals, replay_id: str) -> ReplayOrder:
    plan = asked.plan
    if plan.grid is None:
        problem = "the runs of a job carry no replay"
        remedy = "ask for the same range again: what is done or under way is left out"
        raise ChrononError(Fault("input", "--resume", problem, remedy), conf=plan.key)
    for run in server.runs(plan.dag_id, run_types=("backfill", "manual"), days=asked.window):
        order = read_order(run.conf)
        if order is not None and order.id == replay_id and order.rebuilds:
            return order
    problem = f"no run of {asked.window} is of the replay {replay_id}"
    remedy = "give the range that it was begun with; where none of its runs was made, begin it again"
    raise ChrononError(Fault("C27", "--resume", problem, remedy), conf=plan.key)


def _of_dag(server: AirflowServer, order: ReplayOrder, plan: Plan) -> Rest:
    """What is left of the partitions of one DAG; a grid that was changed since leaves nothing that could be run."""
    rebuilds = order.rebuilds[plan.dag_id]
    if plan.grid is None or plan.grid.interval != rebuilds.interval or not rebuilds.ranges:
        return Rest(order)
    window = TimeWindow(rebuilds.ranges[0].start, rebuilds.ranges[-1].stop)
    newest: dict[Instant, RunRecord] = {}
    for run in server.runs(plan.dag_id, run_types=("backfill", "manual"), days=window):
        own = read_order(run.conf)
        if own is not None and own.id == order.id and run.partition_date is not None:
            newest[run.partition_date] = run
    starts = tuple(start for each in rebuilds.ranges for start in each if start not in newest)
    replay = Replay(plan, starts, is_by_key=plan.dag_id in order.held_for)
    return Rest(
        order,
        (replay,) if starts else (),
        tuple(run for run in newest.values() if run.state == "failed"),
        sum(run.state == "success" for run in newest.values()),
        sum(run.is_active for run in newest.values()),
    )
