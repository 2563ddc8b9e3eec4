"""Runs that would be left without inputs are named before anything is deployed (C30)."""

from __future__ import annotations

from airflow_chronon.core.confs.inputs import begins_later
from airflow_chronon.core.confs.plan import Plan
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.settings.model import Override, Settings
from airflow_chronon.errors import Fault
from tests.support.confs import at, dependency, events, group_by, judge, staging_query

PRODUCER = staging_query("t.s.hourly__1", schedule="5 * * * *", interval="1h")
CONSUMER = staging_query(
    "t.s.threes__1",
    schedule="15 */3 * * *",
    interval="3h",
    dependencies=[dependency("ns.t_s_hourly__1", "1h")],
)
HOURLY, THREES = "staging_query.t.s.hourly__1", "staging_query.t.s.threes__1"


def plans(*overrides: Override, **settings: object) -> dict[str, Plan]:
    found = judge(PRODUCER, CONSUMER, settings=Settings(overrides=overrides, **settings))  # type: ignore[arg-type]
    return {plan.dag_id: plan for verdict in found.values() if (plan := verdict.plan) is not None}


def warned(found: dict[str, Plan]) -> list[Fault]:
    return [fault for fault in found[THREES].warnings if fault.rule == "C30"]


class TestCatchUp:
    def test_before_a_producer_that_does_not_catch_up(self) -> None:
        only = Override(match="staging_query/t.s.threes*", catchup=True, start_date="2026-06-01")
        (fault,) = warned(plans(only))
        assert "it catches up from 2026-06-01-00-00" in fault.message and "does not catch up" in fault.message
        assert f"airflow-chronon backfill {HOURLY} --start-ds 2026-06-01-00-00" in fault.remedy

    def test_before_a_producer_that_begins_later(self) -> None:
        later = Override(match="staging_query/t.s.hourly*", start_date="2026-06-02")
        (fault,) = warned(plans(later, catchup=True, start_date="2026-06-01"))
        assert f"{HOURLY} begins with 2026-06-02-00-00" in fault.message
        assert fault.remedy.endswith("--start-ds 2026-06-01-00-00 --end-ds 2026-06-01-23-00")

    def test_with_a_producer_that_begins_in_time(self) -> None:
        assert warned(plans(catchup=True, start_date="2026-06-01")) == []

    def test_of_a_producer_that_is_off_nothing_is_known(self) -> None:  # C12: it may run by hand
        off = Override(match="staging_query/t.s.hourly*", enabled=False)
        assert warned(plans(off, catchup=True, start_date="2026-06-01")) == []


class TestANewChain:
    NOW = at("2026-06-01 12:20")

    def begins(self, new: set[str]) -> list[Fault]:
        plan = plans()[THREES]
        assert isinstance(plan, ConfPlan)
        return list(begins_later(plan, new=new, now=self.NOW))

    def test_names_what_is_skipped_and_the_command_that_cures_it(self) -> None:
        (fault,) = self.begins({HOURLY, THREES})
        assert "2026-06-01-09-00, its first partition, needs 2026-06-01-09-00 to 2026-06-01-10-00" in fault.message
        assert (
            f"airflow-chronon backfill {HOURLY} --start-ds 2026-06-01-09-00 --end-ds 2026-06-01-10-00" in fault.remedy
        )

    def test_with_catch_up_its_run_fails(self) -> None:
        capped = Override(match="staging_query/t.s.hourly*", max_catchup_runs=1)
        plan = plans(capped, catchup=True, start_date="2026-05-01", max_catchup_runs=2)[THREES]
        assert isinstance(plan, ConfPlan) and not warned({THREES: plan})  # where it begins depends on when
        (fault,) = begins_later(plan, new={HOURLY, THREES}, now=self.NOW)
        assert fault.message.endswith("its run fails")

    def test_names_a_table_once_however_many_modes_read_it(self) -> None:
        reads = [events("ns.t_s_hourly__1", "1h")]
        reader = group_by(
            "t.g.x__1", sources=reads, windows=["3h"], schedule="15 */3 * * *", online="15 */3 * * *", interval="3h"
        )
        found = {
            plan.dag_id: plan for verdict in judge(PRODUCER, reader).values() if (plan := verdict.plan) is not None
        }
        plan = found["group_by.t.g.x__1"]
        assert isinstance(plan, ConfPlan) and len(plan.modes) > 1
        (fault,) = begins_later(plan, new=set(found), now=self.NOW)
        assert "2026-06-01-09-00 to 2026-06-01-10-00 of ns.t_s_hourly__1" in fault.message

    def test_names_a_single_partition_once(self) -> None:
        reads = [dependency("ns.t_s_hourly__1", "1h")]
        reader = staging_query("t.s.twos__1", schedule="15 */2 * * *", interval="2h", dependencies=reads)
        found = {
            plan.dag_id: plan for verdict in judge(PRODUCER, reader).values() if (plan := verdict.plan) is not None
        }
        plan = found["staging_query.t.s.twos__1"]
        assert isinstance(plan, ConfPlan)
        (fault,) = begins_later(plan, new=set(found), now=self.NOW)
        assert "its first partition, needs 2026-06-01-10-00 of ns.t_s_hourly__1" in fault.message

    def test_of_a_producer_that_runs_already_is_not_judged(self) -> None:
        assert self.begins({THREES}) == []


def test_a_conf_that_reads_itself_is_known_to_wait_for_itself() -> None:
    own = staging_query(
        "t.s.own__1", schedule="5 * * * *", interval="1h", dependencies=[dependency("ns.t_s_own__1", "1h")]
    )
    own["tableDependencies"][0] |= {
        "startOffset": {"length": 1, "timeUnit": 0},
        "endOffset": {"length": 1, "timeUnit": 0},
    }
    (verdict,) = judge(own).values()
    assert isinstance(verdict, ConfPlan)
    assert [writer.is_in_a_cycle for writer in verdict.writers["ns.t_s_own__1"]] == [True]
