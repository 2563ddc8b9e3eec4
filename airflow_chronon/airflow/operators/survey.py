"""The reconciler's look at tables: metrics of how fresh they are, and one call for each partition that is late."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowSkipException
from airflow.sdk.observability.stats import gauge

from airflow_chronon.airflow.clock import now
from airflow_chronon.airflow.config import deployment_of
from airflow_chronon.airflow.masking import mask_filled
from airflow_chronon.airflow.operators.work import imported_function
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.runs.freshness import Freshness
from airflow_chronon.errors import ChrononError
from airflow_chronon.reconcile.survey import LatePartition, Survey

SECONDS = 60.0  #: for one survey; the tables that it does not come to are the first of the next


class SurveyOperator(BaseOperator):
    """One survey. A catalog that does not answer and a callback that fails are told in the log, and fail nothing."""

    ui_color = "#dfe7f2"

    def __init__(self, *, near: str, conf_root: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._near, self._conf_root = near, conf_root

    def execute(self, context: Any) -> None:
        try:
            found = deployment_of(near=self._near, conf_root=self._conf_root)
            root = found.need_branch(found.read_root())
            state = found.open_state(root)
        except ChrononError as error:  # the reconcile beside it fails over it
            raise AirflowSkipException(f"No table is looked at. {error}") from None
        plans = [verdict.plan for verdict in root.judge().values() if isinstance(verdict.plan, ConfPlan)]
        for plan in plans:
            mask_filled(plan.settings.catalog.of_table(plan.table))
        until = time.monotonic() + SECONDS
        survey = Survey(
            state,
            now(),
            on_seen=_tell_metrics,
            on_late=self._tell_late,
            trouble=lambda text: self.log.warning("%s", text),
            has_time=lambda: time.monotonic() < until,
        )
        survey.run(plans)
        if survey.unseen:
            self.log.info("%d tables come first the next time: there is a minute for all", len(survey.unseen))

    def _tell_late(self, plan: ConfPlan, late: LatePartition) -> None:
        self.log.warning("%s", late)
        path = plan.settings.task_defaults.on_late_callback
        if path is not None:
            callback: Callable[[dict[str, Any]], object] = imported_function(
                path, field="task_defaults.on_late_callback"
            )
            callback(asdict(late))


def _tell_metrics(plan: ConfPlan, found: Freshness) -> None:
    tags = {"dag_id": plan.dag_id, "team": plan.team}
    if found.lag is not None:
        gauge("chronon.partition_lag_seconds", found.lag, tags=tags)
    gauge("chronon.partitions_missing", found.missing, tags=tags)
    gauge("chronon.partitions_late", len(found.late), tags=tags)
