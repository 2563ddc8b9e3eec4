"""A listener that lets the scheduler pass over runs that only wait, where ``[chronon] pass_over_waiting_runs`` asks for it.

In each loop Airflow's scheduler looks at the running runs that it has not seen for longest, 20 of them by default, and at replays last.
A run whose tasks are all deferred is looked at like any other, seven queries a time, and nothing comes of it: with a thousand of them one
that has something to do waits for its turn, and a replay for ever. Airflow has no setting for this. So the query that picks runs gets one
more condition here, for runs of this package's DAGs alone; everything else about it stays Airflow's.
"""

from __future__ import annotations

from datetime import timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any

from airflow.listeners import hookimpl
from airflow.sdk.configuration import conf

from airflow_chronon.airflow.clock import now
from airflow_chronon.core.calendar.instants import to_datetime
from airflow_chronon.core.plan.facts import CHRONON_TAG
from airflow_chronon.core.sizing.scheduler import AT_LEAST_EVERY, STILL_CHANGING

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement
    from sqlalchemy.orm import ORMExecuteState


@hookimpl
def on_starting(component: Any) -> None:
    """Called in the scheduler, in other processes that only bring the condition along, and in each task, which has no database."""
    is_long_running = type(component).__module__ == "airflow.jobs.job"
    if is_long_running and conf.getboolean("chronon", "pass_over_waiting_runs", fallback=False):
        pass_over_waiting_runs()


def pass_over_waiting_runs() -> None:
    """From now on this process picks no run that :func:`only_waits`; doing it twice changes nothing."""
    from airflow.models.dagrun import DagRun
    from sqlalchemy import event

    runs: Any = DagRun
    picks = runs.get_running_dag_runs_to_examine
    if getattr(picks, "passes_over_waiting_runs", False):
        return

    @wraps(picks)
    def narrowed(session: Any, **more: Any) -> Any:
        event.listen(session, "do_orm_execute", _narrow)
        try:
            return picks(session=session, **more)
        finally:
            event.remove(session, "do_orm_execute", _narrow)

    vars(narrowed)["passes_over_waiting_runs"] = True
    runs.get_running_dag_runs_to_examine = staticmethod(narrowed)


def _narrow(execution: ORMExecuteState) -> None:
    from airflow.models.dagrun import DagRun
    from sqlalchemy import Select

    mapper = execution.bind_mapper
    is_of_runs = mapper is not None and mapper.class_ is DagRun and not execution.is_relationship_load
    if is_of_runs and isinstance(execution.statement, Select):
        execution.statement = execution.statement.where(~only_waits())


def only_waits() -> ColumnElement[bool]:
    """Whether a run of this package has a deferred task, none that time or an executor moves, and has been looked at since one changed."""
    from airflow.models.dag import DagTag
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.state import State, TaskInstanceState
    from sqlalchemy import and_, or_, select

    at = to_datetime(now())
    tasks = select(TaskInstance.id).where(TaskInstance.dag_id == DagRun.dag_id, TaskInstance.run_id == DagRun.run_id)
    still = [TaskInstanceState.DEFERRED, *(state for state in State.finished if state is not None)]
    moves = or_(
        TaskInstance.state.not_in(still),
        TaskInstance.updated_at >= DagRun.last_scheduling_decision,
        TaskInstance.updated_at >= at - timedelta(seconds=STILL_CHANGING),
    )
    return and_(
        DagRun.dag_id.in_(select(DagTag.dag_id).where(DagTag.name == CHRONON_TAG)),
        DagRun.last_scheduling_decision.is_not(None),
        DagRun.last_scheduling_decision >= at - timedelta(seconds=AT_LEAST_EVERY),
        tasks.where(TaskInstance.state == TaskInstanceState.DEFERRED).exists(),
        ~tasks.where(moves).exists(),
    )
