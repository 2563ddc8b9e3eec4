"""Schedule texts and what a grid makes of them (C1, C2, C3, C6)."""

from __future__ import annotations

import pytest

from airflow_chronon.core.calendar.instants import HOUR, MINUTE
from airflow_chronon.core.schedules.chronon import parse_schedule
from airflow_chronon.errors import ChrononError
from tests.support.confs import events, faults_of, group_by, plan_of, rules_broken, staging_query


class TestText:  # C1
    @pytest.mark.parametrize("text", [None, "", "   ", "none", "None", "NULL", "null", "@never", "@Never", " @NEVER "])
    def test_many_texts_mean_off(self, text: str | None) -> None:
        assert parse_schedule(text) is None

    @pytest.mark.parametrize("text", ["@daily", " @DAILY ", "0 0 * * *", "0  0 *  * *", "0 */24 * * *"])
    def test_daily_is_midnight(self, text: str) -> None:
        schedule = parse_schedule(text)
        assert schedule is not None and schedule.interval is None
        assert schedule.first_at_or_after(1) == 86400

    @pytest.mark.parametrize("text", ["0 0 * * \u017fun", "0 0 1 o\u212at *", "@dai\u017fly"])
    def test_letters_of_other_scripts_are_refused(self, text: str) -> None:  # some are ASCII ones in the other case
        with pytest.raises(ChrononError, match=r"other characters.*C1"):
            parse_schedule(text)

    @pytest.mark.parametrize("text", ["@hourly", "@weekly", "@monthly", "@once", "@reboot", "@midnight", "@"])
    def test_every_other_alias_is_refused(self, text: str) -> None:
        with pytest.raises(ChrononError) as refused:
            parse_schedule(text)
        assert refused.value.fault.rule == "C1" and repr(text) in refused.value.fault.message


class TestKinds:  # C2
    @pytest.mark.parametrize(
        ("text", "interval"),
        [
            ("0 * * * *", HOUR),
            ("*/15 * * * *", 15 * MINUTE),
            ("5/15 * * * *", 15 * MINUTE),
            ("15 1-22/3 * * *", 3 * HOUR),
            ("0 0,12 * * *", 12 * HOUR),
            ("30 11,23 * * *", 12 * HOUR),
            ("* * * * *", MINUTE),
            ("*/60 * * * *", HOUR),
            ("0 0-23 * * *", HOUR),
            ("0 * 1-31 * *", HOUR),
            ("0 * * * 0-6", HOUR),
            ("0 * * 1-12 *", HOUR),
            ("0 * ? * *", HOUR),
        ],
    )
    def test_a_sub_daily_schedule_is_as_long_as_its_gap(self, text: str, interval: int) -> None:
        schedule = parse_schedule(text)
        assert schedule is not None and schedule.interval == interval

    @pytest.mark.parametrize(
        "text", ["0 2 * * *", "0 6 * * MON", "0 6 1 * *", "0 6 1,15 * MON", "0 6 L * *", "0 6 * JAN *"]
    )
    def test_once_a_day_at_most_leaves_the_day_fields_free(self, text: str) -> None:
        schedule = parse_schedule(text)
        assert schedule is not None and schedule.interval is None

    @pytest.mark.parametrize(
        "text", ["0 */5 * * *", "*/45 * * * *", "*/7 * * * *", "0 9,17 * * *", "*/15 9-17 * * *", "0,30 1 * * *"]
    )
    def test_uneven_gaps_are_refused(self, text: str) -> None:
        with pytest.raises(ChrononError, match="gaps of") as refused:
            parse_schedule(text)
        assert refused.value.fault.rule == "C2"

    @pytest.mark.parametrize(
        "text", ["0 */2 * * MON", "0 0,12 1 * *", "0 * * 6 *", "0 */2 1-30 * *", "0 */2 L * *", "0 */2 * * mon#1"]
    )
    def test_sub_daily_on_some_days_only_is_refused(self, text: str) -> None:
        with pytest.raises(ChrononError, match="not every day") as refused:
            parse_schedule(text)
        assert refused.value.fault.rule == "C2"


class TestGrid:  # C3
    @pytest.mark.parametrize(
        ("declared", "offset", "schedule", "grid"),
        [
            pytest.param(None, None, None, "1d", id="nothing said"),
            pytest.param(None, None, "@daily", "1d", id="daily"),
            pytest.param(None, None, "0 6 * * MON", "1d", id="weekly is over days"),
            pytest.param(None, None, "15 1-22/3 * * *", "3h", id="the cron gap, never its phase"),
            pytest.param(None, "2h", None, "1d@2h", id="an offset alone is a day's"),
            pytest.param(None, "2h", "@daily", "1d@2h", id="a daily schedule and an offset"),
            pytest.param(None, "1h", "0 */3 * * *", "3h@1h", id="an offset on the cron gap"),
            pytest.param("3h", "1h", None, "3h@1h", id="declared, unscheduled"),
            pytest.param("60m", "0h", "0 * * * *", "1h", id="60m is 1h, and an explicit offset of 0 the same grid"),
            pytest.param("24h", None, "@daily", "1d", id="24h is 1d"),
        ],
    )
    def test_declared_else_the_cron_gap_else_a_day(
        self, declared: str | None, offset: str | None, schedule: str | None, grid: str
    ) -> None:
        conf = group_by(sources=[events(interval="1m")], schedule=schedule, interval=declared, offset=offset)
        assert str(plan_of(conf).spec.grid) == grid


class TestScheduleOverGrid:  # C6
    @pytest.mark.parametrize("schedule", ["@daily", "0 6 * * MON", "0 6 1 * *"])
    def test_a_coarse_schedule_on_a_sub_daily_grid_is_ambiguous(self, schedule: str) -> None:
        (fault,) = faults_of(staging_query(schedule=schedule, interval="3h"))
        assert fault.rule == "C6" and "3h" in fault.message and "ambiguous" in fault.message
        assert repr(schedule) in fault.message  # as it is written

    def test_the_schedule_is_quoted_as_it_is_written(self) -> None:
        (fault,) = faults_of(group_by(sources=[events(interval="1h")], schedule="@Daily", interval="1h"))
        assert fault.message.startswith("schedule '@Daily' is daily")

    @pytest.mark.parametrize(
        ("schedule", "interval"), [("0 * * * *", "3h"), ("0 */3 * * *", "1d"), ("*/15 * * * *", "30m")]
    )
    def test_a_cron_gap_other_than_the_interval_is_refused(self, schedule: str, interval: str) -> None:
        (fault,) = faults_of(staging_query(schedule=schedule, interval=interval))
        assert fault.rule == "C6" and repr(schedule) in fault.message

    def test_a_schedule_that_is_off_may_stand_on_any_grid(self) -> None:
        assert rules_broken(staging_query(schedule="@never", interval="3h")) == []

    def test_a_team_schedule_over_a_declared_grid_is_checked_too(self) -> None:
        # the compiler merges team defaults unchecked: a daily cron on an inherited 2h grid
        assert rules_broken(group_by(sources=[events(interval="1h")], schedule="0 2 * * *", interval="2h")) == ["C6"]

    def test_the_daily_that_the_compiler_writes_itself_is_explained(self) -> None:
        conf = group_by(sources=[events(interval="1h")], online="@daily", interval="3h")
        (fault,) = faults_of(conf)
        assert fault.rule == "C6" and "compiler wrote it" in fault.message
        assert fault.remedy == "set a sub-daily schedule, or online_schedule='@never'"

    def test_both_schedules_are_checked_and_both_faults_reported(self) -> None:
        conf = group_by(sources=[events(interval="1h")], schedule="0 */5 * * *", online="@weekly", interval="3h")
        fields = {fault.rule: fault.field for fault in faults_of(conf)}
        assert fields == {"C2": "metaData.executionInfo.offlineSchedule", "C1": "metaData.executionInfo.onlineSchedule"}

    def test_a_bad_grid_does_not_hide_a_bad_schedule(self) -> None:
        assert rules_broken(staging_query(schedule="@hourly", interval="45m")) == ["C1", "C4"]
