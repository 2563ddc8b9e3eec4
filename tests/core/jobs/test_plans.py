"""What conf plans and job plans answer alike, and what is said of those that have no plan."""

from __future__ import annotations

import pytest

from airflow_chronon.core.calendar.instants import TimeWindow
from airflow_chronon.core.confs.plan import Plan, good_plans
from airflow_chronon.core.settings.model import Settings
from airflow_chronon.errors import ChrononError
from tests.support.confs import at, dependency, join, judge, plan_of, staging_query, verdict_on
from tests.support.jobs import HEAD
from tests.support.jobs import plan_of as job_plan_of

NOW = at("2026-06-10 00:30")
HOURLY = f"{HEAD}schedule: {{cron_expression: '@hourly'}}\n"


@pytest.fixture(params=["conf", "job"])
def hourly(request: pytest.FixtureRequest) -> Plan:
    """An hourly conf, and an hourly job."""
    return plan_of(staging_query(schedule="0 * * * *")) if request.param == "conf" else job_plan_of(HOURLY)


class TestRanges:
    def test_both_ends_of_a_range_are_inclusive(self, hourly: Plan) -> None:  # C27
        first, last = (hourly.need_schedule().label(at(f"2026-06-01 {hour}:00")) for hour in ("04", "06"))
        wanted = TimeWindow(at("2026-06-01 04:00"), at("2026-06-01 07:00"))
        assert hourly.read_range(first, last) == hourly.read_range(first, last, now=NOW) == wanted

    def test_what_has_not_ended_is_refused_only_when_it_matters(self, hourly: Plan) -> None:  # C27
        label = hourly.need_schedule().label(at("2026-06-10 00:00"))
        assert hourly.read_range(label, label).end == at("2026-06-10 01:00")
        with pytest.raises(ChrononError, match="C27"):
            hourly.read_range(label, label, now=NOW)

    def test_more_than_anyone_can_look_at_is_refused(self, hourly: Plan) -> None:
        with pytest.raises(ChrononError, match=r"these are more than 500000 (partitions|intervals)"):
            hourly.read_range("1980-01-01", "2190-01-01")


def test_only_what_fills_a_table_has_partitions_that_a_catalog_lists() -> None:
    conf, job = plan_of(join("t.j.x__1")), job_plan_of(HOURLY)
    assert (str(conf.grid), conf.tables, conf.has_partitions) == ("1d", ("ns.t_j_x__1", "ns.t_j_x__1__derived"), True)
    assert (job.grid, job.tables, job.has_partitions) == (None, (), False)


def test_a_replay_of_a_conf_waits_for_its_tables_and_one_of_a_job_for_nothing() -> None:
    conf = plan_of(staging_query(dependencies=[dependency("vendor.orders")]))
    assert [(wait.table, wait.labels) for wait in conf.replay_waits(at("2026-06-01"))] == [
        ("vendor.orders", ("2026-06-01",))
    ]
    assert list(job_plan_of(HOURLY).replay_waits(at("2026-06-01"))) == []


@pytest.mark.parametrize(("schedule", "is_left_out"), [("@daily", False), ("@never", True)])
def test_only_an_unscheduled_conf_is_left_out_where_the_settings_say_so(schedule: str, is_left_out: bool) -> None:
    omit = Settings.model_validate({"unscheduled": "omit"})  # C12
    assert plan_of(staging_query(schedule=schedule), settings=omit).is_left_out is is_left_out
    assert not job_plan_of(HEAD, omit).is_left_out
    assert not plan_of(staging_query(schedule=schedule)).is_left_out


class TestWithoutAPlan:
    def test_a_rejected_conf_says_every_fault(self) -> None:
        verdict = verdict_on(staging_query(schedule="@weekly", interval="5h"))
        assert verdict.plan is None and {fault.rule for fault in verdict.faults} == {"C1", "C4"}
        with pytest.raises(ChrononError, match=r"^staging_query/t.s.x__1: .*C4.*C1"):
            verdict.need_plan()

    def test_a_conf_of_another_environment_says_so(self) -> None:  # C12
        verdict = verdict_on(staging_query(environments=[1]))
        assert verdict.plan is None and verdict.faults == () and verdict.status == "other environment"
        with pytest.raises(ChrononError, match="as-typed is not deployed in this environment"):
            verdict.need_plan(named="as-typed")

    def test_a_job_without_a_schedule_has_no_intervals(self) -> None:
        with pytest.raises(ChrononError, match="a job without a schedule, so it has no intervals"):
            job_plan_of(HEAD).need_schedule()

    def test_the_good_plans_of_a_tree_are_the_others(self) -> None:
        good, bad = staging_query("t.s.good__1"), staging_query("t.s.bad__1", schedule="@weekly")
        elsewhere = staging_query("t.s.other__1", environments=[1])
        assert [plan.key for plan in good_plans(judge(bad, good, elsewhere))] == ["staging_query/t.s.good__1"]
