"""The one task of a job: its command, with its window in the environment (H5 to H7)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from airflow_chronon.airflow.clock import now
from airflow_chronon.airflow.masking import mask_filled
from airflow_chronon.airflow.operators.remote import RemoteTask, attempt_of, check_no_job_is_left
from airflow_chronon.airflow.operators.run_request import request_of_context
from airflow_chronon.airflow.operators.work import WorkMixin, ends_as_airflow_task, given_variables
from airflow_chronon.core.calendar.instants import iso
from airflow_chronon.core.describe.format import format_job_run
from airflow_chronon.core.jobs.resolve import JobPlan
from airflow_chronon.core.partitions.labels import PartitionKey
from airflow_chronon.core.schedules.job_runs import JobRun, run_without_schedule
from airflow_chronon.core.settings.environment import job_environment
from airflow_chronon.core.settings.variables import filled
from airflow_chronon.engine.argv import JobStart, job_argv
from airflow_chronon.engine.build import JobsElsewhere, build_command_runner, jobs_elsewhere
from airflow_chronon.engine.command import Command, CommandRunner
from airflow_chronon.errors import ChrononError

RUN = "run"  #: the task's id, and what ``CHRONON_MODE`` says


class JobOperator(WorkMixin, BaseOperator):
    """Runs the command of a job to its end. The plan stays out of the serialised DAG: a worker parses it anew."""

    ui_color = "#e2ebf0"

    def __init__(self, *, plan: JobPlan, job_path: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._plan, self._job_path = plan, job_path

    def execute(self, context: Any, event: Any = None) -> None:
        """Run the command; Airflow calls it again with an ``event`` when its job elsewhere has ended."""
        given = given_variables(context)
        asked = self._requested(context)
        self.log.info("%s", format_job_run(asked, self._plan.schedule))
        with ends_as_airflow_task():
            # filled in on the worker: what the environment holds stands in no serialised DAG
            settings, own_env = self._plan.settings.runner.model_dump(), self._plan.env
            mask_filled(settings, own_env)
            runner = build_command_runner(settings, os.environ, own_env=own_env)
            elsewhere = jobs_elsewhere({**settings, "env": {**(settings.get("env") or {}), **own_env}}, os.environ)
            if elsewhere is not None:
                self.follow(self._remote(context, elsewhere, runner, asked, given), context)
                return
            check_no_job_is_left(context, self.log.info, conf=self._plan.key)
            command = self._command(self._start(asked), context, asked, runner, given)
            with self.stops_by(runner.stop):
                runner.run_command(command, self.log.info)

    def _remote(
        self,
        context: Mapping[str, Any],
        elsewhere: JobsElsewhere,
        runner: CommandRunner,
        asked: JobRun | None,
        given: Mapping[str, str],
    ) -> RemoteTask:
        start = self._start(asked)
        command = self._command(start, context, asked, runner, given)
        return RemoteTask(
            elsewhere,
            runner,
            attempt_of(context, conf=self._plan.key),
            lambda token: self._command(replace(start, token=token), context, asked, runner, given),
            start.placeholders,
            command.environment,
        )

    def _requested(self, context: Mapping[str, Any]) -> JobRun | None:
        """The run that is asked for; a request that contradicts itself fails the task for good, in one sentence."""
        request, schedule = request_of_context(context), self._plan.schedule
        try:
            return run_without_schedule(request) if schedule is None else schedule.requested(request, now=now())
        except ChrononError as error:
            raise AirflowFailException(str(error)) from None

    def _start(self, asked: JobRun | None) -> JobStart:
        date = None if asked is None else iso(asked.logical_date)
        return JobStart(self._plan.key.partition("/")[2], self._job_path, RUN, date)

    def _command(
        self,
        start: JobStart,
        context: Mapping[str, Any],
        asked: JobRun | None,
        runner: CommandRunner,
        given: Mapping[str, str],
    ) -> Command:
        plan = self._plan
        own = {**runner.env, **filled(dict(plan.env), os.environ)}
        environment = self._environment(context, asked, own=own, given=given)
        legacy = plan.job.document.legacy_start_time_arg
        argv, shown = (
            job_argv(template or (), start, legacy_start_time=legacy)
            for template in (runner.argv, runner.unfilled_argv)
        )
        return Command(plan.key, argv, environment, shown)

    def _environment(
        self, context: Mapping[str, Any], asked: JobRun | None, *, own: Mapping[str, str], given: Mapping[str, str]
    ) -> dict[str, str]:
        return job_environment(
            conf=self._plan.key,
            mode=RUN,
            run_id=context["run_id"],
            window=None if asked is None else asked.window,
            logical_date=None if asked is None else asked.logical_date,
            partitions=() if asked is None else (PartitionKey(iso(asked.logical_date)),),
            own=own,
            given=given,
        )
