"""One DAG per job: one task, run between the fires of its schedule (H2 to H15)."""

from __future__ import annotations

from dataclasses import replace

from airflow.sdk import DAG, Param

from airflow_chronon.airflow.assets import TableAssets
from airflow_chronon.airflow.dags.plans import Fires, drop_copied_params, one_line
from airflow_chronon.airflow.operators.delegating import check_operator
from airflow_chronon.airflow.operators.delegating_job import DelegatingJobOperator
from airflow_chronon.airflow.operators.job import RUN, JobOperator
from airflow_chronon.airflow.operators.work import task_arguments
from airflow_chronon.airflow.timetables.intervals import JobTimetable
from airflow_chronon.core.calendar.instants import to_datetime
from airflow_chronon.core.describe.names import display_name
from airflow_chronon.core.jobs.resolve import JobPlan
from airflow_chronon.core.settings.runners import OPERATOR


def build_job_dag(plan: JobPlan, *, path: str, doc: str, assets: TableAssets, fires: Fires) -> DAG:
    """The DAG of one job, a :class:`airflow_chronon.airflow.dags.plans.Builder`; a job has no assets.

    A due fire waits for a slot and is never dropped (H12): the DAG takes many runs, and its task few at a time.
    """
    settings, schedule = plan.settings, plan.schedule
    if schedule is not None and fires is Fires.NEVER:
        schedule = replace(schedule, enabled=False)
    start = None if schedule is None else schedule.first_start
    with DAG(
        plan.dag_id,
        dag_display_name=display_name(plan.key, namespace_prefix=assets.namespace_prefix),
        schedule=None if schedule is None else JobTimetable(schedule, plan.dag_id),
        start_date=None if start is None else to_datetime(start),
        # Airflow wants a start with it; a job that no reconcile has seen has neither start nor fires yet (H15)
        catchup=settings.catchup and start is not None,
        max_active_runs=settings.max_pending_runs,
        is_paused_upon_creation=False,
        rerun_with_latest_version=True,  # a clear takes the mended conf, not the commit that the run began on (C23)
        description=one_line(plan, fires),
        doc_md=doc,
        tags=list(plan.tags),
        params=_params(),
        default_args={"owner": settings.owner or plan.job.team, "weight_rule": "absolute"},
        auto_register=False,  # only what a loader file puts into its globals is its own
    ) as dag:
        works = JobOperator
        if settings.runner.kind == OPERATOR:
            check_operator(settings.runner.model_dump())
            works = DelegatingJobOperator
        works(
            task_id=RUN,
            plan=plan,
            job_path=path,
            retries=settings.retries,
            max_active_tis_per_dag=settings.max_active_runs,
            **task_arguments(settings.task_defaults),
        )
    drop_copied_params(dag)
    return dag


def _params() -> dict[str, Param]:
    text = "An instant such as 2026-01-15T03:00:00Z; leave both empty for a run without a window."
    return {
        "start_time": Param(
            None, type=["null", "string"], title="Start of the window", description=f"Inclusive. {text}"
        ),
        "end_time": Param(None, type=["null", "string"], title="End of the window", description=f"Exclusive. {text}"),
        "logical_date": Param(
            None,
            type=["null", "string"],
            title="Logical date of the window",
            description="What the job is told as HOPS_LOGICAL_DATE, an instant such as 2026-01-15T03:00:00Z; needs a "
            "window. Left empty: the start of the window.",
        ),
    }
