"""The reconciler's look at tables: metrics of how fresh they are, one call for each partition that is late, and what the page of
partitions shows of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import asdict
from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowSkipException

from airflow_chronon.airflow.assets import snapshot_asset
from airflow_chronon.airflow.clock import moment, now
from airflow_chronon.airflow.config import deployment_of
from airflow_chronon.airflow.hooks import find_airflow
from airflow_chronon.airflow.masking import mask_filled
from airflow_chronon.airflow.metrics import Gauge, tell
from airflow_chronon.airflow.operators.work import imported_function
from airflow_chronon.airflow.store_connections import connect
from airflow_chronon.airflow_api.login import EDITORS
from airflow_chronon.airflow_api.waiting import seconds_waited
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.overview.snapshot import ConfSnapshot, snapshot_key, snapshot_of, snapshots_of
from airflow_chronon.core.partitions.start_ranges import StartRanges
from airflow_chronon.core.runs.freshness import Freshness
from airflow_chronon.errors import ChrononError
from airflow_chronon.reconcile.survey import LatePartition, Survey
from airflow_chronon.state.folder import StateFolder
from airflow_chronon.threads import in_own_thread

SECONDS = 60.0  #: for one survey; the tables that it does not come to are the first of the next
LAST_SECONDS = 15.0  #: of them, in which no table is begun with any more


class SurveyOperator(BaseOperator):
    """One survey. A catalog that does not answer and a callback that fails are told in the log, and fail nothing."""

    ui_color = "#dfe7f2"

    def __init__(self, *, near: str, conf_root: str | None = None, **kwargs: Any) -> None:
        super().__init__(
            inlets=[snapshot_asset()], **kwargs
        )  # what is kept with an asset, is kept while a DAG refers to it
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
        kept, key = context["asset_state_store"][self.inlets[0]], snapshot_key(found.bundle, root.branch)
        before = {each.dag_id: each for each in snapshots_of(kept.get(key))}
        until = time.monotonic() + SECONDS
        waited = self._ask_for_waits()
        seen = self._survey(plans, state, until)
        self._tell_waits(plans, waited, until)
        snapshots = _snapshots(plans, state, before, seen)
        kept.set(key, json.dumps({each.dag_id: each.to_json() for each in snapshots}))

    def _survey(
        self, plans: Iterable[ConfPlan], state: StateFolder, until: float
    ) -> Mapping[str, tuple[StartRanges, int]]:
        """What has landed of each table that was looked at, by DAG id, and when it was."""
        at, seen = now(), dict[str, tuple[StartRanges, int]]()

        def see(plan: ConfPlan, landed: StartRanges, found: Freshness) -> None:
            seen[plan.dag_id] = landed, at
            _tell_metrics(plan, found)

        survey = Survey(
            state,
            at,
            on_seen=see,
            on_late=self._tell_late,
            trouble=lambda text: self.log.warning("%s", text),
            has_time=lambda: time.monotonic() < until - LAST_SECONDS,
            seconds_left=lambda: until - time.monotonic(),
            connect=connect,
        )
        survey.run(plans)
        if survey.unseen:
            self.log.info("%d tables come first the next time: there is a minute for all", len(survey.unseen))
        return seen

    def _ask_for_waits(self) -> Future[Mapping[str, float]] | None:
        """How long runs wait, asked beside the look at the tables; None without a connection to Airflow."""
        try:
            server = find_airflow(*EDITORS)
        except ChrononError as error:
            self.log.warning("how long runs wait cannot be told: %s", error)
            return None
        if server is None:
            self.log.info("how long runs wait is not told: there is no connection to Airflow")
            return None
        return in_own_thread(lambda: seconds_waited(server, now=moment()), name="waits")

    def _tell_waits(self, plans: Iterable[ConfPlan], asked: Future[Mapping[str, float]] | None, until: float) -> None:
        """A number for each DAG that may wait, 0 where nothing does; none for any while that is not known."""
        if asked is None:
            return
        try:
            waited = asked.result(max(0.0, until - time.monotonic()))
        except ChrononError as error:
            self.log.warning("how long runs wait cannot be told: %s", error)
            return
        except TimeoutError:
            self.log.warning("how long runs wait cannot be told: Airflow has not answered within %g seconds", SECONDS)
            return
        for plan in plans:
            tell(Gauge.WAIT, waited.get(plan.dag_id, 0.0), dag_id=plan.dag_id, team=plan.team)

    def _tell_late(self, plan: ConfPlan, late: LatePartition) -> None:
        self.log.warning("%s", late)
        path = plan.settings.task_defaults.on_late_callback
        if path is not None:
            callback: Callable[[dict[str, Any]], object] = imported_function(
                path, field="task_defaults.on_late_callback"
            )
            callback(asdict(late))


def _snapshots(
    plans: Iterable[ConfPlan],
    state: StateFolder,
    before: Mapping[str, ConfSnapshot],
    seen: Mapping[str, tuple[StartRanges, int]],
) -> list[ConfSnapshot]:
    """Every conf with its table as it was last seen, in this survey or an earlier one."""
    records, found = state.read_records().found, []
    for plan in plans:
        record, known = records.get(plan.dag_id), before.get(plan.dag_id)
        snapshot = snapshot_of(plan, revisions=() if record is None else record.revisions)
        if plan.dag_id in seen:
            snapshot = snapshot.seen_at(*seen[plan.dag_id])
        elif known is not None and known.landed is not None and known.seen is not None and known.table == plan.table:
            snapshot = snapshot.seen_at(known.landed, known.seen)
        found.append(snapshot)
    return found


def _tell_metrics(plan: ConfPlan, found: Freshness) -> None:
    of = {"dag_id": plan.dag_id, "team": plan.team}
    if found.lag is not None:
        tell(Gauge.LAG, found.lag, **of)
    tell(Gauge.MISSING, found.missing, **of)
    tell(Gauge.LATE, len(found.late), **of)
