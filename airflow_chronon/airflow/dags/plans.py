"""Builds the DAG of a plan with the builder of its kind, conf or job."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from airflow_chronon.core.confs.plan import Plan
from airflow_chronon.core.confs.resolve import ConfPlan
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
    as they began, and no new one comes (C23). ``namespace_prefix`` sets the assets of another branch apart: an experiment
    never wakes production's consumers (C24).
    """

    def __call__(self, plan: Any, /, *, path: str, doc: str, namespace_prefix: str, fires: Fires) -> DAG: ...


def build_dag(plan: Plan, *, path: str, doc: str, namespace_prefix: str = "", fires: Fires = Fires.AS_PLANNED) -> DAG:
    """The DAG of one conf or job; see :class:`Builder`."""
    return _builder_of(type(plan))(plan, path=path, doc=doc, namespace_prefix=namespace_prefix, fires=fires)


def _builder_of(kind: type[Plan]) -> Builder:
    """Each is imported when it is needed: at the start of a job's task, that of confs would take a tenth of a second."""
    if kind is JobPlan:
        from airflow_chronon.airflow.dags.job import build_job_dag

        return build_job_dag
    assert kind is ConfPlan, kind
    from airflow_chronon.airflow.dags.conf import build_conf_dag

    return build_conf_dag
