"""A mode of a conf whose work an operator of somebody else's does."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from airflow_chronon.airflow.clock import now
from airflow_chronon.airflow.operators.delegating import Delegates
from airflow_chronon.airflow.operators.modes import ChrononOperator
from airflow_chronon.airflow.operators.remote import attempt_of, check_no_job_is_left
from airflow_chronon.airflow.operators.run_request import request_of_context
from airflow_chronon.airflow.operators.work import ends_as_airflow_task
from airflow_chronon.core.confs.execution import left_out_of
from airflow_chronon.engine.argv import placeholders_of
from airflow_chronon.engine.operator_arguments import GivenOperator, given_operator, values_of


class DelegatingOperator(Delegates, ChrononOperator):
    """Does one job of a conf through an operator of the class that the settings name."""

    def execute(self, context: Any, event: Any = None) -> Any:
        """Let the operator begin; Airflow calls it again with an ``event`` when a wait for other writers is over."""
        of, job, keep_grid = self._prepared(context)
        for name in left_out_of(job.document, placeholders_of(job)["mode"]):
            self.log.warning("%s of the conf is left out: it decides how programs are found or loaded (S5)", name)
        inner, given = self._made(context)
        with ends_as_airflow_task():
            check_no_job_is_left(context, self.log.info, conf=job.conf)
        self._may_begin(context, of, event)
        keep_grid()
        return self._works(inner, given, inner.execute, context)

    def _given(self, context: Mapping[str, Any]) -> GivenOperator:
        run = self._plan.schedule.requested(request_of_context(context), now=now())
        job = self._request(context, None if run is None else run.modes.get(self._mode))
        token = attempt_of(context, conf=job.conf).token(0)
        values = values_of(replace(job, token=token), conf_file=self._plan.file)
        return given_operator(self._runner_settings(), values, environ=os.environ, conf=job.conf)
