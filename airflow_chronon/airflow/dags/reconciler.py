"""The reconciler as a DAG: every few minutes Airflow is made what the tree says (C22 to C25, H13)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, BaseOperator, Param
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from airflow_chronon.airflow.assets import contracts_asset
from airflow_chronon.airflow.clock import now
from airflow_chronon.airflow.config import api_address, deployment_of
from airflow_chronon.airflow.hooks import find_airflow
from airflow_chronon.airflow.operators.survey import SurveyOperator
from airflow_chronon.airflow.operators.work import BEFORE_ALL, BEFORE_ANY_WORK
from airflow_chronon.airflow_api.errors import AirflowUnreachable
from airflow_chronon.airflow_api.login import EDITORS, no_connection
from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.core.confs.naming import legal_id
from airflow_chronon.core.plan.build import Confirmation
from airflow_chronon.core.plan.explain import explain_plan
from airflow_chronon.deployment import DEFAULT_BUNDLE
from airflow_chronon.errors import ChrononError, Fault
from airflow_chronon.reconcile.gather import Place
from airflow_chronon.reconcile.run import failures, outcome_lines, reconcile

DAG_ID = "chronon_reconciler"
EVERY_FIVE_MINUTES = "*/5 * * * *"
HALF_AN_HOUR = 1800  #: seconds; the first reconcile of a thousand DAGs takes ten


def build_reconciler(*, near: str, conf_root: str | Path | None = None) -> DAG:
    """The reconciler DAG of the deployment whose loader files lie beside ``near`` (a file's ``__file__``).

    ``[chronon] reconcile_schedule`` says when it runs: five cron fields or a preset. Off the default branch its id
    carries the branch, as every DAG's does (C24), and in another DAG bundle than the dags folder's the bundle.
    """
    found = deployment_of(near=near, conf_root=conf_root)
    branch, default_branch = found.read_branches()
    prefix = "" if branch == default_branch else f"{branch}--"
    suffix = "" if found.bundle == DEFAULT_BUNDLE else f".{found.bundle}"
    with DAG(
        legal_id(f"{prefix}{DAG_ID}{suffix}", unique=(branch, found.bundle)),
        schedule=conf.get("chronon", "reconcile_schedule", fallback="") or EVERY_FIVE_MINUTES,
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=False,
        rerun_with_latest_version=True,  # a clear takes the tree of now, not the commit that it began on (C23)
        tags=["chronon-reconciler"],
        description=f"Makes Airflow what the confs of the branch {branch} say.",
        params={
            "confirm_mass_retire": Param(
                False,
                type="boolean",
                title="Confirm a mass retirement",
                description="Retire what the last run held back because the tree looked damaged.",
            )
        },
        default_args={"owner": "chronon"},
        auto_register=False,
    ) as dag:
        at = None if conf_root is None else str(conf_root)
        SurveyOperator(
            task_id="survey",
            near=near,
            conf_root=at,
            execution_timeout=_time_limit(),
            priority_weight=BEFORE_ANY_WORK,
            weight_rule="absolute",
        )
        ReconcileOperator(
            task_id="reconcile",
            near=near,
            conf_root=at,
            execution_timeout=_time_limit(),
            retries=1,  # for an Airflow that does not answer just then
            retry_delay=timedelta(seconds=30),
            priority_weight=BEFORE_ALL,
            weight_rule="absolute",
            inlets=[contracts_asset()],  # what it reads of the contracts is kept only while a DAG refers to it
        )
    return dag


def _time_limit() -> timedelta:
    """After how long Airflow ends a reconcile: one that hangs would keep every later one from its turn (S8)."""
    text = conf.get("chronon", "reconcile_timeout", fallback="").strip() or str(HALF_AN_HOUR)
    if not (text.isascii() and text.isdigit() and len(text) <= 6 and int(text)):
        problem = f"{text!r} is not a number of seconds from 1 to 999999"
        raise ChrononError(Fault("settings", "[chronon] reconcile_timeout", problem, f"write it like {HALF_AN_HOUR}"))
    return timedelta(seconds=int(text))


class ReconcileOperator(BaseOperator):
    """One reconcile. It fails, with the list, when something was held back, failed, or breaks a contract.

    Before the first one it is skipped where Airflow has no connection yet; its log has the command that makes it.
    """

    ui_color = "#dfe7f2"

    def __init__(self, *, near: str, conf_root: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._near, self._conf_root = near, conf_root

    def execute(self, context: Any) -> None:
        confirmed = bool(context["params"].get("confirm_mass_retire"))
        confirmation = Confirmation.MASS_RETIRE if confirmed else Confirmation.NONE
        try:
            place = self._place()
            self._see_new_versions(context, place.server)
            done = reconcile(place, by=f"{DAG_ID} {context['run_id']}", now=now(), confirmation=confirmation)
        except AirflowUnreachable as error:
            raise AirflowException(str(error)) from None
        except ChrononError as error:
            raise AirflowFailException(str(error)) from None
        lines = (*explain_plan(done.plan), *outcome_lines(done))
        for line in lines:
            self.log.info("%s", line)
        if not done.is_good:
            problems = (*(f"{found.fault}" for found in done.plan.findings), *failures(done.outcome))
            raise AirflowFailException("; ".join(problems))

    def _see_new_versions(self, context: Any, server: AirflowServer) -> None:
        """In a versioned DAG bundle, such as Git's, have this DAG's own small file parsed: its next run is then of the newest version,
        and sees what was committed since. A run sees the tree of the version that its file was last parsed at."""
        task = context.get("ti")
        if getattr(getattr(task, "bundle_instance", None), "version", None) is not None:
            server.parse_soon(task.dag_id)

    def _place(self) -> Place:
        found = deployment_of(near=self._near, conf_root=self._conf_root)
        root = found.need_branch(found.read_root())
        server, state = find_airflow(*EDITORS), found.open_state(root)
        if server is None and not state.dag_ids():  # a deployment that is just being set up
            raise AirflowSkipException(f"Nothing is reconciled yet. {no_connection(api_address())}")
        if server is None:
            raise no_connection(api_address())
        return Place(root, found.owner(root), state, found.state_root, server)
