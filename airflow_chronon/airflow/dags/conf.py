"""One DAG per conf version: its tasks and how they are wired (C10, C11)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Param, TaskGroup

from airflow_chronon.airflow.assets import TableAssets
from airflow_chronon.airflow.dags.plans import Fires, drop_copied_params, one_line
from airflow_chronon.airflow.operators.delegating import check_operator
from airflow_chronon.airflow.operators.delegating_modes import DelegatingOperator
from airflow_chronon.airflow.operators.modes import UPLOAD_TO_KV, ChrononOperator, LandedOperator
from airflow_chronon.airflow.operators.work import BEFORE_ANY_WORK, NO_WORK, task_arguments
from airflow_chronon.airflow.sensors.deferred import GateSensor, PartitionSensor
from airflow_chronon.airflow.timetables.partitions import PartitionTimetable
from airflow_chronon.core.calendar.instants import to_datetime
from airflow_chronon.core.confs.conf import output_table
from airflow_chronon.core.confs.naming import legal_id
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.describe.names import display_name, wait_names
from airflow_chronon.core.partitions.labels import PartitionSpec
from airflow_chronon.core.partitions.spellings import spellings_pattern
from airflow_chronon.core.runs.task_ids import GATE_PREFIX, LAST_TASK, READY_TASK, WAIT_PREFIX
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.settings.runners import OPERATOR
from airflow_chronon.core.waits.dependencies import TableDependency

_ANY_SUCCESS = "none_failed_min_one_success"


def build_conf_dag(plan: ConfPlan, *, path: str, doc: str, assets: TableAssets, fires: Fires) -> DAG:
    """The DAG of one conf version, a :class:`airflow_chronon.airflow.dags.plans.Builder`."""
    settings = plan.settings
    schedule = plan.schedule if fires is Fires.AS_PLANNED else replace(plan.schedule, modes={})
    with DAG(
        plan.dag_id,
        dag_display_name=display_name(plan.key, namespace_prefix=assets.namespace_prefix),
        schedule=PartitionTimetable(schedule),
        start_date=to_datetime(start) if (start := plan.schedule.first_start) is not None else None,
        catchup=settings.catchup,
        max_active_runs=settings.max_pending_runs,
        is_paused_upon_creation=False,  # config is the source of truth: nothing stays held (C25)
        rerun_with_latest_version=True,  # a clear takes the mended conf, not the commit that the run began on (C23)
        description=one_line(plan, fires),
        doc_md=doc,
        tags=list(plan.tags),
        params=_params(plan.spec),
        default_args={"owner": settings.owner or plan.conf.meta.team or "chronon", "weight_rule": "absolute"},
        auto_register=False,  # only what a loader file puts into its globals is its own
    ) as dag:
        _Tasks(plan, path, assets).wire()
    drop_copied_params(dag)
    return dag


class _Tasks:
    """The tasks of one conf, wired so that modes that skip or fire later leave the run green."""

    def __init__(self, plan: ConfPlan, conf_path: str, assets: TableAssets) -> None:
        self.plan, self.conf_path, self.assets = plan, conf_path, assets
        self.modes = plan.schedule.all_modes
        texts = {of.schedule.text for of in plan.schedule.modes.values()}
        self.gated = len(texts) > 1  # one schedule for all modes: none can skip or lag behind
        #: Of the tasks around the work: whoever is told of failures is told of theirs.
        self.around = task_arguments(plan.settings.task_defaults, leave_out=NO_WORK)

    def wire(self) -> None:
        waits = self._waits()
        first = self.modes[0]
        ready = EmptyOperator(task_id=READY_TASK)
        ends = []
        previous: Any = None
        for mode in self.modes:
            own = [task for task, modes in waits if mode in modes]
            if mode is Mode.METADATA_UPLOAD and mode is not first:
                entry: list[Any] = own  # it waits for no data, only for uploads (C11)
            else:
                for task in own:
                    task >> ready
                entry = [ready] if previous is None else [ready, previous]
            jobs = self._mode(mode, entry)
            if mode is not Mode.METADATA_UPLOAD:
                previous = jobs[-1]
            ends += jobs
        assets = {mode: self._asset(mode) for mode in self.modes}
        landed = LandedOperator(
            task_id=LAST_TASK,
            plan=self.plan,
            namespace_prefix=self.assets.namespace_prefix,
            assets=assets,
            trigger_rule=_ANY_SUCCESS,
            retries=self.plan.settings.retries,
            **{**self.around, "priority_weight": BEFORE_ANY_WORK},
        )
        for job in ends:
            job >> landed

    def _mode(self, mode: Mode, entry: list[Any]) -> list[ChrononOperator]:
        """The tasks of one mode behind ``entry``; returns its jobs in order. The run has landed after all of them: the
        second job of an upload may skip where the first has written (C11)."""
        work = self._work(mode, mode.value)
        start: Any = work
        if self.gated:
            rule = _ANY_SUCCESS if len(entry) > 1 else "all_success"
            start = GateSensor(
                task_id=f"{GATE_PREFIX}{mode.value}",
                mode=mode,
                schedule=self.plan.schedule,
                conf=str(self.plan.conf.key),
                output=self._output,
                trigger_rule=rule,
                **self.around,
            )
            start >> work
        for task in entry:
            task >> start
        if mode is not Mode.UPLOAD:
            return [work]
        to_kv = self._work(mode, UPLOAD_TO_KV)
        work >> to_kv
        return [work, to_kv]

    def _work(self, mode: Mode, job: str) -> ChrononOperator:
        settings = self.plan.settings
        works = ChrononOperator
        if settings.runner.kind == OPERATOR:
            check_operator(settings.runner.model_dump())
            works = DelegatingOperator
        return works(
            task_id=job,
            plan=self.plan,
            namespace_prefix=self.assets.namespace_prefix,
            mode=mode,
            job=job,
            conf_path=self.conf_path,
            retries=settings.retries,
            max_active_tis_per_dag=settings.max_active_runs,
            **task_arguments(settings.task_defaults),
        )

    def _waits(self) -> list[tuple[PartitionSensor, frozenset[Mode]]]:
        """One sensor per table, with the modes that need it, all in one group."""
        tables: dict[str, dict[Mode, tuple[TableDependency, ...]]] = {}
        for mode in self.modes:
            for dependency in self.plan.dependencies[mode]:
                by_mode = tables.setdefault(dependency.table, {})
                by_mode[mode] = (*by_mode.get(mode, ()), dependency)
        if not tables:
            return []
        names, found = wait_names(tables), []
        with TaskGroup("waits", prefix_group_id=False, tooltip="What a run waits for, a task for each table"):
            for table, dependencies in sorted(tables.items()):
                sensor = PartitionSensor(
                    task_id=legal_id(f"{WAIT_PREFIX}{table}", unique=(f"{WAIT_PREFIX}{table}",)),
                    task_display_name=names[table],
                    inlets=self.assets.read(table, is_written_here=table in self.plan.writers),
                    table=table,
                    schedule=self.plan.schedule,
                    dependencies=dependencies,
                    catalog=self._catalog(table),
                    settings=self.plan.settings.sensor,
                    writers=self.plan.writers.get(table, ()),
                    snapshot=self.assets.snapshot,
                    conf=str(self.plan.conf.key),
                    output=self._output,
                    **self.around,
                )
                found.append((sensor, frozenset(dependencies)))
        return found

    @property
    def _output(self) -> str | None:
        """The table that a run writes; of one that writes two, the first."""
        return next((table for mode in self.modes if (table := output_table(self.plan.conf, mode)) is not None), None)

    def _catalog(self, table: str) -> dict[str, Any]:
        return self.plan.settings.catalog.of_table(table)

    def _asset(self, mode: Mode) -> Any:
        table = output_table(self.plan.conf, mode)
        return None if table is None else self.assets.written(table)


def _params(spec: PartitionSpec) -> dict[str, Param]:
    typed: dict[str, Any] = {"type": ["null", "string"], "pattern": spellings_pattern(spec)}
    example = f"A day such as 2026-01-15, or a partition such as {spec.example()}"
    given = "For one run over a range; leave empty to run the partition key under Advanced Options. A backfill ignores it: it has dates."
    return {
        "start_ds": Param(None, title="First partition", description=f"{example}; inclusive. {given}", **typed),
        "end_ds": Param(
            None,
            title="Last partition",
            description=f"{example}; inclusive. Empty: the first one alone. A backfill ignores it too.",
            **typed,
        ),
    }
