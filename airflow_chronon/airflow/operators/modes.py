"""Operators: the work of one mode, and the check that its partitions have landed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar, NoReturn

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSkipException,
)

from airflow_chronon.airflow.assets import contracts_asset, said_asset
from airflow_chronon.airflow.clock import now
from airflow_chronon.airflow.hooks import find_airflow
from airflow_chronon.airflow.lineage import Lineage, LineageMixin, Written
from airflow_chronon.airflow.masking import mask_filled
from airflow_chronon.airflow.operators.jobs_left import fingerprint, job_to_wait_for, jobs_key
from airflow_chronon.airflow.operators.remote import RemoteTask, attempt_of, check_no_job_is_left
from airflow_chronon.airflow.operators.run_request import request_of_context
from airflow_chronon.airflow.operators.work import WorkMixin, ends_as_airflow_task, given_variables, texts
from airflow_chronon.airflow.operators.write_order import (
    ASIDE_SECONDS,
    STEP_ASIDE,
    WriteOrder,
    WriteOrderTrigger,
    format_predecessors,
)
from airflow_chronon.airflow.operators.zipline import ZiplineTask
from airflow_chronon.airflow.store_connections import connect
from airflow_chronon.airflow_api.errors import AirflowRefused, AirflowUnreachable
from airflow_chronon.airflow_api.login import CONNECTION_ID
from airflow_chronon.airflow_api.writers import other_runs_of
from airflow_chronon.catalogs.build import build_catalog
from airflow_chronon.core.calendar.instants import to_datetime
from airflow_chronon.core.confs.conf import output_table
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.describe.format import format_run, format_wait
from airflow_chronon.core.describe.source import json_of, query_of
from airflow_chronon.core.records.grid_contract import contract_fault, contract_key
from airflow_chronon.core.runs.write_order import Ticket
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.partitioned import ModeRun, Run
from airflow_chronon.core.settings.environment import job_environment
from airflow_chronon.core.settings.variables import filled
from airflow_chronon.core.waits.dependencies import merged
from airflow_chronon.core.waits.readiness import check_shape, missing_ranges
from airflow_chronon.engine.argv import placeholders_of
from airflow_chronon.engine.build import JobsElsewhere, build_runner, jobs_elsewhere
from airflow_chronon.engine.command import CommandRunner
from airflow_chronon.engine.protocol import JobRequest
from airflow_chronon.engine.templates import render_query
from airflow_chronon.engine.zipline import ZiplineRunner
from airflow_chronon.errors import ChrononError, Fault, JobFailed, without_passwords

UPLOAD_TO_KV = "upload_to_kv"
NOT_SERIALISED = (
    f"there is no connection {CONNECTION_ID!r} to Airflow's API: writers of the same partition are not kept apart in time,"
    " and only the runner's atomic publish keeps them from mixing (C28)"
)


class _PlanOperator(LineageMixin, BaseOperator):
    """An operator that knows its conf's plan. The plan stays out of the serialised DAG: a worker parses it anew."""

    def __init__(self, *, plan: ConfPlan, namespace_prefix: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._plan = plan
        self._lineage = Lineage.of(namespace_prefix, plan.producers)

    def _requested(self, context: Mapping[str, Any]) -> Run | None:
        """The run that is asked for; a request that contradicts itself fails the task for good, in one sentence."""
        try:
            request, moment = request_of_context(context), now()
            run = self._plan.schedule.requested(request, now=moment)
            for note in self._plan.schedule.notes_on(request, now=moment):
                self.log.info("%s", note)
        except ChrononError as error:
            self.log.error("%s", error)  # a line of its own: Airflow puts that of the exception beside its traceback
            raise AirflowFailException(str(error)) from None
        self.log.info("%s", format_run(run, self._plan.schedule))
        return run


class ChrononOperator(WorkMixin, _PlanOperator):
    """Does one job of a conf through its runner: a mode, or the second step of an upload.

    A manual run without a window is handed on without one (H7); a runner that then has nothing to write skips the task.
    ``query`` of a staging query, else ``conf``, is what Airflow shows of it among the rendered templates.
    """

    ui_color = "#e8f0e2"
    template_fields_renderers: ClassVar[dict[str, str]] = {"query": "sql", "conf": "json"}

    def __init__(self, *, plan: ConfPlan, mode: Mode, job: str, conf_path: str, **kwargs: Any) -> None:
        # an inlet, since a task may read and write the state of none but its own assets
        keeps_grid = output_table(plan.conf, mode) is not None
        super().__init__(plan=plan, inlets=[contracts_asset()] if keeps_grid else [], **kwargs)
        self._mode, self._job, self._conf_path = mode, job, conf_path
        self._shown = "conf" if query_of(plan.conf) is None else "query"
        self.template_fields = (self._shown,)
        setattr(self, self._shown, "")  # filled in when the task starts: it stands in no serialised DAG

    def render_template_fields(self, context: Any, jinja_env: Any = None) -> None:
        """Show what the task is about to do. Airflow calls it before the work; the templates are Chronon's, not Airflow's."""
        setattr(self, self._shown, self._source(context))

    def _source(self, context: Mapping[str, Any]) -> str:
        """The query as it runs for these partitions, else the conf; as it was written where the run cannot be told, which
        :meth:`execute` then says."""
        plan = self._plan
        query = query_of(plan.conf)
        if query is None:
            return json_of(plan.conf.raw)
        with suppress(ChrononError):
            run = plan.schedule.requested(request_of_context(context), now=now())
            of = None if run is None else run.modes.get(self._mode)
            if of is not None:
                # only the engine lists other tables, when it works
                query = render_query(query, spec=plan.spec, window=of.window, max_dates="the newest of {}".format)
        return without_passwords(query)

    def execute(self, context: Any, event: Any = None) -> None:
        """Do the job; Airflow calls it again with an ``event`` when a wait is over, for other writers or for its job elsewhere."""
        of, job, keep_grid = self._prepared(context)
        with ends_as_airflow_task():
            catalog, settings = self._plan.settings.catalog.of_table(job.table), self._runner_settings()
            mask_filled(catalog, settings)
            elsewhere = jobs_elsewhere(settings, os.environ)
        if elsewhere is None:
            # a job elsewhere that is under way is followed to its end first, whatever there is to wait for
            with ends_as_airflow_task():
                check_no_job_is_left(context, self.log.info, conf=job.conf)
            self._may_begin(context, of, event)
        with ends_as_airflow_task():
            runner = build_runner(settings, os.environ, default_root=catalog.get("root"))
            if elsewhere is not None and isinstance(runner, CommandRunner):
                remote = self._remote(context, elsewhere, runner, job)

                def before_submitting() -> None:
                    self._may_begin(context, of, event, remote=remote)
                    self._tell_of_jobs(context)
                    keep_grid()

                self.follow(remote, context, before_submitting=before_submitting)
                return
            with self.stops_by(runner.stop):
                keep_grid()
                runner.run(job, self.log.info)

    def _prepared(self, context: Mapping[str, Any]) -> tuple[ModeRun | None, JobRequest, Callable[[], None]]:
        """What the run asks of this mode, the job, and what keeps the grid: see :meth:`_hold_to_grid`.

        Raises what ends the task where there is nothing to do, or what must not be done.
        """
        given_variables(context)  # before anything waits or starts
        run = self._requested(context)
        keep_grid = self._hold_to_grid(context)
        of = None if run is None else run.modes.get(self._mode)
        if run is not None and of is None:
            raise AirflowSkipException(f"the schedule of {self._mode.value} does not fire for this partition")
        if of is not None:
            self._lineage.reads = self._plan.mode_waits(self._mode, of.window)
            for wait in self._lineage.reads:
                self.log.info("reads %s", format_wait(wait))
        return of, self._request(context, of), keep_grid

    def _may_begin(
        self, context: Mapping[str, Any], of: ModeRun | None, event: Any, *, remote: RemoteTask | None = None
    ) -> None:
        """Raises what ends or defers the task where its work is not to begin, or not yet. Every runner's work passes here."""
        if of is not None:
            self._skip_if_outdated(context, of)
            self._take_turn(context, of, event)
            self._wait_for_jobs_left(context, of, remote)

    @staticmethod
    def _remote(
        context: Mapping[str, Any], elsewhere: JobsElsewhere, runner: CommandRunner, job: JobRequest
    ) -> RemoteTask:
        parts = (
            elsewhere,
            runner,
            attempt_of(context, conf=job.conf),
            lambda token: runner.command_of(replace(job, token=token)),
            placeholders_of(job),
            job.environment,
        )
        return ZiplineTask(*parts, document=job.document) if isinstance(runner, ZiplineRunner) else RemoteTask(*parts)

    def _hold_to_grid(self, context: Mapping[str, Any]) -> Callable[[], None]:
        """Fail on another grid than the one of the first write (C22); returns what keeps the grid, for right before it."""
        plan, table = self._plan, output_table(self._plan.conf, self._mode)
        if table is None:
            return lambda: None
        kept = self._kept(context)
        key, spec = contract_key(plan.dag_id), plan.spec
        before = kept.get(key)
        fault = contract_fault(before, spec, table=table)
        if fault is not None:
            raise AirflowFailException(str(ChrononError(fault, conf=str(plan.conf.key))))
        return lambda: kept.set(key, spec.contract) if before is None else None

    def _take_turn(self, context: Mapping[str, Any], of: ModeRun, event: Any = None) -> None:
        """One writer per partition: whoever came later waits, deferred, until it is first (C28)."""
        try:
            server = find_airflow()
            if server is None:
                self.log.warning("%s", NOT_SERIALISED)
                return
            order, started = self._write_order(context, of), context["ti"].start_date.timestamp()
            store = context["task_state_store"]
            predecessors = order.take(server, store, started=started, goes_on=event is not None)
        except AirflowUnreachable as error:  # an outage spends no try: the trigger waits for its end
            self.log.warning("whether others write these partitions is not known yet: %s", error)
            self._defer_in_order(context, of)
        except ChrononError as error:
            raise AirflowException(f"whether others write these partitions is not known: {error}") from None
        if not predecessors:
            return
        self.log.info("%s", format_predecessors(predecessors, dag_id=self._plan.dag_id))
        if event == STEP_ASIDE:
            order.give_up(store)
            later = to_datetime(now()) + timedelta(seconds=ASIDE_SECONDS)
            raise AirflowRescheduleException(later)  # type: ignore[no-untyped-call]
        self._defer_in_order(context, of)

    def _defer_in_order(self, context: Mapping[str, Any], of: ModeRun) -> NoReturn:
        trigger = WriteOrderTrigger(order=self._write_order(context, of).to_json())
        self.defer(trigger=trigger, method_name="execute")

    def _write_order(self, context: Mapping[str, Any], of: ModeRun) -> WriteOrder:
        table = output_table(self._plan.conf, self._mode)
        own = f"{table or self._plan.conf.table} ({self._job})"  # what is put online
        written = table if table is not None and self._job == self._mode.value else own
        ticket = Ticket(written, of.window, context["ti"].try_number, runner=fingerprint(self._runner_settings()))
        return WriteOrder((self._plan.dag_id, context["run_id"], self.task_id), ticket, self._plan.conf.table)

    def _wait_for_jobs_left(self, context: Mapping[str, Any], of: ModeRun, remote: RemoteTask | None) -> None:
        """A job elsewhere outlives its run: whoever writes the same partitions waits for its end too (C28)."""
        kept = self._kept(context)
        if remote is None and (kept is None or kept.get(jobs_key(self._plan.conf.table)) is None):
            return
        try:
            server = find_airflow()
            if server is None:
                return  # _take_turn has said so
            order, schedule = self._write_order(context, of), self._plan.schedule
            own_runs = other_runs_of(order.task, of.window, self._mode, server, schedule, now=now())
            trigger = job_to_wait_for(order, server, own_runs=own_runs, remote=remote, log=self.log.info)
        except AirflowUnreachable as error:
            self.log.warning("whether others have left jobs for these partitions is not known yet: %s", error)
            self._defer_in_order(context, of)
        except AirflowRefused as error:
            raise AirflowException(
                f"whether others have left jobs for these partitions is not known: {error}"
            ) from None
        except JobFailed as error:
            raise AirflowException(str(error)) from None
        if trigger is not None:
            self.defer(trigger=trigger, method_name="execute")

    def _tell_of_jobs(self, context: Mapping[str, Any]) -> None:
        """Let all who write the table, whatever their runner, look for jobs elsewhere from now on."""
        kept, key = self._kept(context), jobs_key(self._plan.conf.table)
        if kept is not None and kept.get(key) is None:
            kept.set(key, True)

    def _kept(self, context: Mapping[str, Any]) -> Any:
        """The state of the contracts' asset; None for a task that writes no table."""
        return context["asset_state_store"][self.inlets[0]] if self.inlets else None

    def _runner_settings(self) -> dict[str, Any]:
        """As they are written: they are filled in on the worker, and stand so in no serialised DAG."""
        return self._plan.settings.runner.model_dump()

    def _skip_if_outdated(self, context: Mapping[str, Any], of: ModeRun) -> None:
        """An old partition must not put old values in front of users: only the newest closed one goes online."""
        grid = self._plan.spec.grid
        if (
            self._job == UPLOAD_TO_KV
            and not request_of_context(context).is_scheduled
            and of.window.end < grid.floor(now())
        ):
            raise AirflowSkipException("a newer partition has closed: its values are served, not older ones")

    def _request(self, context: Mapping[str, Any], of: ModeRun | None) -> JobRequest:
        plan, window = self._plan, of.window if of else None
        environment = job_environment(
            conf=str(plan.conf.key),
            mode=self._job,
            run_id=context["run_id"],
            window=window,
            partitions=plan.spec.labels(window.start, window.end) if window else (),
            own=texts(filled(self._runner_settings().get("env"), os.environ)),
            given=given_variables(context),
        )
        return JobRequest(
            conf_type=plan.conf.key.conf_type.value,
            name=plan.conf.key.name,
            mode=self._job,
            document=plan.conf.raw,
            path=self._conf_path,
            table=output_table(plan.conf, self._mode) or plan.conf.table,
            spec=plan.spec,
            window=window,
            environment=environment,
            inputs=plan.dependencies.get(self._mode, ()),
            dialect=plan.conf.dialect,
        )


class LandedOperator(_PlanOperator):
    """Fails the run when its jobs ended well and their partitions are not there; tells Airflow's assets what is.

    That is final; a catalog that does not answer is asked again, as often as the work may be tried.
    """

    ui_color = "#f6f1dd"

    def __init__(self, *, assets: Mapping[Mode, Any], **kwargs: Any) -> None:
        # Airflow drops the state of an asset that no DAG refers to
        super().__init__(
            inlets=[said_asset()], outlets=[each for each in assets.values() if each is not None], **kwargs
        )
        self._assets = dict(assets)

    def execute(self, context: Any) -> list[str]:
        run = self._requested(context)
        if run is None:
            raise AirflowSkipException("no partition was asked for, so none can have landed")
        landed: list[str] = []
        self._lineage.reads = merged(wait for waits in self._plan.waits(run).values() for wait in waits)
        self.outlets = []  # only what this run wrote: an event of another table would wake its consumers
        for mode, of in run.modes.items():
            asset, table = self._assets.get(mode), output_table(self._plan.conf, mode)
            if asset is None or table is None:
                continue
            self._check(table, of)
            labels = self._plan.spec.labels(of.window.start, of.window.end)
            self.outlets.append(asset)
            context["outlet_events"][asset].add_partitions(list(labels))
            self._lineage.writes += (Written(table, self._plan.spec.column, labels),)
            self.log.info("landed in %s: %s", table, ", ".join(labels))
            landed += labels
        return landed

    def _check(self, table: str, of: ModeRun) -> None:
        spec = self._plan.spec
        try:
            catalog = self._plan.settings.catalog.of_table(table)
            mask_filled(catalog)
            listing = build_catalog(catalog, os.environ, connect=connect).list_partitions(table)
            check_shape(table, spec.column, listing)
        except ChrononError as error:
            raise AirflowException(str(error)) from None
        last = of.window.end - spec.grid.interval
        missing = missing_ranges(spec, of.window.start, last, listing.labels(spec.column))
        if missing:
            shown = ", ".join(str(each) for each in missing)
            problem = f"the job ended well, yet {table} lacks the partitions {shown}"
            remedy = "look at the job's log; does it write another table, label or column?"
            raise AirflowFailException(
                str(ChrononError(Fault("C28", spec.column, problem, remedy), conf=str(self._plan.conf.key)))
            )
