"""A job whose work an operator of somebody else's does."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from airflow_chronon.airflow.operators.delegating import Delegates
from airflow_chronon.airflow.operators.job import JobOperator
from airflow_chronon.airflow.operators.remote import attempt_of, check_no_job_is_left
from airflow_chronon.airflow.operators.work import ends_as_airflow_task, given_variables, texts
from airflow_chronon.core.describe.format import format_job_run
from airflow_chronon.core.settings.variables import filled
from airflow_chronon.engine.operator_arguments import GivenOperator, given_operator, values_of_job


class DelegatingJobOperator(Delegates, JobOperator):
    """Does the work of a job through an operator of the class that the settings name."""

    def execute(self, context: Any, event: Any = None) -> Any:
        """Let the operator begin."""
        self.log.info("%s", format_job_run(self._requested(context), self._plan.schedule))
        inner, given = self._made(context)
        with ends_as_airflow_task():
            check_no_job_is_left(context, self.log.info, conf=self._plan.key)
        return self._works(inner, given, inner.execute, context)

    def _given(self, context: Mapping[str, Any]) -> GivenOperator:
        plan, asked = self._plan, self._requested(context)
        settings = plan.settings.runner.model_dump()
        env = {**(settings.get("env") or {}), **plan.env}
        start = replace(self._start(asked), token=attempt_of(context, conf=plan.key).token(0))
        variables = self._environment(
            context, asked, own=texts(filled(env, os.environ)), given=given_variables(context)
        )
        window = None if asked is None else asked.window
        values = values_of_job(start, window, conf_file=plan.file, environment=variables)
        return given_operator({**settings, "env": env}, values, environ=os.environ, conf=plan.key)
