"""Builds the DAG of a plan with the builder of its kind, conf or job."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from airflow_chronon.airflow.assets import TableAssets
from airflow_chronon.core.confs.plan import Plan
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.describe.plans import describe
from airflow_chronon.core.jobs.resolve import JobPlan

if TYPE_CHECKING:
    from airflow.sdk import DAG


class Fires(Enum):
    """Whether a DAG has the schedule of its conf or job."""

    AS_PLANNED = "as planned"
    NEVER = "never"


class Builder(Protocol):
    """Builds the DAG of one kind of plan. Raises ``ChrononError`` when a task setting cannot be used.

    ``path`` is the conf's or job's own file, ``doc`` the DAG's page. With :attr:`Fires.NEVER` the runs that are there end
    as they began, and no new one comes (C23). ``assets`` are those of the deployment: an experiment never wakes production's
    consumers (C24).
    """

    def __call__(self, plan: Any, /, *, path: str, doc: str, assets: TableAssets, fires: Fires) -> DAG: ...


def build_dag(
    plan: Plan, *, path: str, doc: str, assets: TableAssets | None = None, fires: Fires = Fires.AS_PLANNED
) -> DAG:
    """The DAG of one conf or job; see :class:`Builder`."""
    return _builder_of(type(plan))(plan, path=path, doc=doc, assets=assets or TableAssets(), fires=fires)


def drop_copied_params(dag: DAG) -> None:
    """Take the DAG's parameters out of its tasks: a run takes those of the DAG, and a copy in each task would be most of what
    Airflow serialises."""
    for task in dag.tasks:
        task.params.clear()


def one_line(plan: Plan, fires: Fires) -> str:
    """What stands beside a DAG's name in Airflow's list."""
    line = describe(plan).one_line
    return line if fires is Fires.AS_PLANNED else f"Fires no more (its page says why). {line}"


def _builder_of(kind: type[Plan]) -> Builder:
    """Each is imported when it is needed: at the start of a job's task, that of confs would take a tenth of a second."""
    if kind is JobPlan:
        from airflow_chronon.airflow.dags.job import build_job_dag

        return build_job_dag
    assert kind is ConfPlan, kind
    from airflow_chronon.airflow.dags.conf import build_conf_dag

    return build_conf_dag
