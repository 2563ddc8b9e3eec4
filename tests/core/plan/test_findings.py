"""What a plan reports besides what it does (C22, C24)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from airflow_chronon.core.plan.actions import Report, Severity
from airflow_chronon.core.plan.facts import (
    AirflowFacts,
    AirflowSettings,
    Deployment,
    KnownDag,
    StateFacts,
    TreeFacts,
    TreeState,
)
from airflow_chronon.core.plan.findings import findings
from airflow_chronon.core.records.record import DeploymentRecord
from airflow_chronon.core.settings.model import Settings
from airflow_chronon.errors import Fault
from tests.support.confs import at, dependency, judge, plan_of, staging_query

HERE = Deployment("main", "dags-folder")
NOW = at("2026-06-01 12:20")
ID = "staging_query.t.s.x__1"
KNOWN = StateFacts(records={"other": DeploymentRecord("other", None, NOW)})


def live(dag_id: str = ID, **more: Any) -> dict[str, KnownDag]:
    """The DAG of a conf as Airflow has it."""
    return {dag_id: KnownDag(dag_id, frozenset({"chronon", "branch:main"}), **{"bundle": "dags-folder"} | more)}


def with_dag(airflow: AirflowFacts) -> AirflowFacts:
    return replace(airflow, dags={**live(), **airflow.dags})


def reports(
    *,
    airflow: AirflowFacts | None = None,
    state: StateFacts | None = None,
    tree: TreeFacts | None = None,
    **settings: Any,
) -> list[Report]:
    reads = [dependency("a.one"), dependency("a.two")]
    plan = plan_of(staging_query("t.s.x__1", dependencies=reads), settings=Settings.model_validate(settings))
    whole = TreeFacts(TreeState.WHOLE, plans={plan.dag_id: plan}, ids=frozenset({plan.dag_id}))
    return list(findings(HERE, tree or whole, with_dag(airflow or AirflowFacts()), state or KNOWN, now=NOW))


def test_there_is_nothing_to_say_of_a_good_tree() -> None:
    assert reports(airflow=AirflowFacts(settings=AirflowSettings(500, 1000, 32))) == []


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        pytest.param(AirflowSettings(max_dagruns_per_loop=20), "[scheduler]", id="replays starve"),
        pytest.param(AirflowSettings(triggerer_capacity=1), "[triggerer] capacity", id="fewer triggers than waits"),
    ],
)
def test_airflow_settings_that_will_hurt(settings: AirflowSettings, field: str) -> None:
    (report,) = reports(airflow=AirflowFacts(settings=settings))
    assert (report.severity, report.fault.field) == (Severity.WARNING, field)


def test_a_scheduler_that_passes_over_waiting_runs_may_look_at_few() -> None:
    assert reports(airflow=AirflowFacts(settings=AirflowSettings(20, passes_over_waiting_runs=True))) == []


@pytest.mark.parametrize(
    ("slots", "catchup", "warns"), [(15, True, False), (16, True, True), (16, False, False)], ids=str
)
def test_a_schedule_that_may_hold_up_all_others_while_it_catches_up(slots: int, catchup: bool, warns: bool) -> None:
    found = reports(
        airflow=AirflowFacts(settings=AirflowSettings(parallelism=32)),
        max_active_runs=slots,
        catchup=catchup,
        start_date="2026-06-01",
    )  # H17
    assert [report.fault.field for report in found] == ["[core] parallelism"] * warns
    assert all("staging_query.t.s.x__1" in report.fault.message for report in found)


def test_an_empty_state_folder_beside_dags_is_reported() -> None:
    known = KnownDag("staging_query.t.s.x__1", frozenset({"chronon", "branch:main"}), bundle="dags-folder")
    (report,) = reports(airflow=AirflowFacts(dags={known.dag_id: known}), state=StateFacts())
    assert (report.severity, report.fault.field) == (Severity.WARNING, "state folder")
    assert "Airflow has 1 DAGs of this branch" in report.fault.message


def lacking(
    dags: Mapping[str, KnownDag], *names: str, known: bool = True, bundle: str = "dags-folder"
) -> list[tuple[str, str, str]]:
    """The reports of good confs without a live DAG: severity, conf and text."""
    plans = [plan_of(staging_query(name)) for name in names]
    tree = TreeFacts(TreeState.WHOLE, plans={plan.dag_id: plan for plan in plans})
    records = {plan.dag_id: DeploymentRecord(plan.dag_id, None, NOW) for plan in plans} if known else {}
    found = findings(Deployment("main", bundle), tree, AirflowFacts(dags=dags), StateFacts(records), now=NOW)
    return [(each.severity.value, each.conf, str(each.fault)) for each in found if each.fault.rule == "C23"]


class TestGoodConfsWithoutALiveDag:  # C23
    X, Y = "t.s.x__1", "t.s.y__1"
    OTHER = "staging_query.t.s.y__1"

    def test_what_a_split_of_loader_files_leaves_out_is_named(self) -> None:
        (report,) = lacking(live(), self.X, self.Y)
        assert report[:2] == ("warning", self.OTHER)
        assert "no loader file has produced it yet" in report[2] and "team or match" in report[2]

    def test_of_a_new_conf_it_is_a_note(self) -> None:
        (report,) = lacking(live(), self.X, self.Y, known=False)
        assert report[0] == "note" and "Wait for the next parse" in report[2]

    @pytest.mark.parametrize(
        ("dag", "says"),
        [
            (live(OTHER, is_stale=True), "no loader file produces its DAG any more"),
            (live(OTHER, is_stale=True, has_import_errors=True), "its loader file cannot be imported now"),
            (live(OTHER, bundle="another"), "its DAG is that of the branch main in the DAG bundle another"),
        ],
        ids=["stale", "import error", "another bundle"],
    )
    def test_why_is_told(self, dag: dict[str, KnownDag], says: str) -> None:
        (report,) = lacking({**live(), **dag}, self.X, self.Y)
        assert report[:2] == ("warning", self.OTHER) and says in report[2]

    def test_an_airflow_without_any_is_one_report(self) -> None:
        (report,) = lacking({}, self.X, self.Y, bundle="git")
        assert "none of the DAGs of the 2 good confs" in report[2] and "DAG bundle git" in report[2]

    def test_what_is_live_or_left_out_on_purpose_is_not_named(self) -> None:
        assert lacking(live(), self.X) == []
        plan = plan_of(
            staging_query(self.Y, schedule="@never"), settings=Settings.model_validate({"unscheduled": "omit"})
        )
        tree = TreeFacts(TreeState.WHOLE, plans={plan.dag_id: plan})
        found = findings(HERE, tree, AirflowFacts(dags=live()), StateFacts(), now=NOW)
        assert [each for each in found if each.fault.rule == "C23"] == []


def test_what_is_odd_in_the_settings_file_is_a_warning() -> None:
    odd = Fault("settings", "chronon.yaml overrides[0]", "'x' matches no conf and no job", "mend it")
    assert reports(tree=TreeFacts(TreeState.WHOLE, warnings=(odd,))) == [Report(Severity.WARNING, odd)]


def test_a_pending_run_limit_that_is_narrower_than_the_work_slots() -> None:
    (report,) = reports(max_pending_runs=2)
    assert report.fault.field == "max_pending_runs" and report.conf == "staging_query.t.s.x__1"


def test_a_table_that_another_branch_writes_too() -> None:  # C24
    (report,) = reports(state=replace(KNOWN, other_tables={"ns.t_s_x__1": "try"}))
    assert (report.severity, report.conf) == (Severity.WARNING, "branch try")
    assert "1 of the tables of this branch too: ns.t_s_x__1" in report.fault.message


def test_a_table_that_was_begun_on_another_grid() -> None:  # C22
    (report,) = reports(airflow=AirflowFacts(contracts={"staging_query.t.s.x__1": "3h"}))
    assert (report.severity, report.fault.rule) == (Severity.ERROR, "C22")


def test_only_branches_that_nobody_produces_are_leftovers() -> None:  # C24
    def dag(branch: str, number: int, *, is_stale: bool) -> KnownDag:
        return KnownDag(f"{branch}{number}", frozenset({"chronon", f"branch:{branch}"}), is_stale=is_stale)

    dags = [
        dag("merged", 1, is_stale=True),
        dag("merged", 2, is_stale=True),
        dag("alive", 1, is_stale=True),
        dag("alive", 2, is_stale=False),
        dag("main", 1, is_stale=True),
    ]
    found = reports(airflow=AirflowFacts(dags={each.dag_id: each for each in dags}))
    assert [report.conf for report in found] == ["branch merged"]


@pytest.mark.parametrize(
    ("state", "severity"), [(TreeState.UNREADABLE, Severity.ERROR), (TreeState.EMPTY, Severity.WARNING)]
)
def test_a_tree_that_cannot_be_read_is_an_error_and_an_empty_one_is_not(state: TreeState, severity: Severity) -> None:
    fault = Fault("input", "", "what is wrong")
    assert reports(tree=TreeFacts(state, (fault,))) == [Report(severity, fault)]


def test_a_new_chain_is_told_what_it_passes_over_and_how_to_have_it() -> None:  # C30
    hourly = staging_query("t.s.hourly__1", schedule="5 * * * *", interval="1h")
    reads = [dependency("ns.t_s_hourly__1", "1h")]
    threes = staging_query("t.s.threes__1", schedule="15 */3 * * *", interval="3h", dependencies=reads)
    plans = {plan.dag_id: plan for verdict in judge(hourly, threes).values() if (plan := verdict.plan) is not None}
    tree = TreeFacts(TreeState.WHOLE, plans=plans, ids=frozenset(plans))
    told = [report for report in reports(tree=tree) if report.fault.rule == "C30"]
    assert [(report.severity, report.conf) for report in told] == [(Severity.NOTE, "staging_query.t.s.threes__1")]
    assert "airflow-chronon backfill staging_query.t.s.hourly__1" in told[0].fault.remedy
