"""Which runs a schedule makes and what each of them writes (C8 to C12, C29)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_chronon.core.confs.plan import OtherEnvironment
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.settings.model import Covers, Environment, Settings
from tests.support.confs import (
    Document,
    events,
    faults_of,
    group_by,
    join,
    plan_of,
    rules_broken,
    runs_of,
    staging_query,
    verdict_on,
    waits_of,
)


def partitions(run: Document, mode: str = "backfill") -> list[str]:
    labels: list[str] = run["modes"][mode]["partitions"]
    return labels


def online(**of: Any) -> Document:
    return group_by("t.g.x__1", **of)


class TestOnePartitionPerFire:  # C8
    @pytest.mark.parametrize(
        ("conf", "fire", "label"),
        [
            pytest.param(
                {"schedule": "15 1-22/3 * * *", "offset": "1h"},
                "2026-06-01T04:15:00Z",
                "2026-06-01-01-00",
                id="3h@1h at 04:15",
            ),
            pytest.param(
                {"schedule": "0 * * * *"}, "2026-06-01T05:00:00Z", "2026-06-01-04-00", id="hourly on the hour"
            ),
            pytest.param(
                {"schedule": "5/15 * * * *"}, "2026-06-01T05:05:00Z", "2026-06-01-04-45", id="five minutes late"
            ),
            pytest.param({"schedule": "0 2 * * *"}, "2026-06-01T02:00:00Z", "2026-05-31", id="daily at two"),
            pytest.param(
                {"schedule": "0 1 * * *", "offset": "2h"},
                "2026-06-02T01:00:00Z",
                "2026-05-31-02-00",
                id="a day before its boundary",
            ),
        ],
    )
    def test_a_fire_writes_the_newest_closed_partition(self, conf: Document, fire: str, label: str) -> None:
        runs = {run["fire"]: run for run in runs_of(plan_of(staging_query(**conf)), "2026-06-01", "2026-06-03")}
        assert runs[fire]["partition_key"] == label and partitions(runs[fire]) == [label]

    def test_the_cron_phase_never_moves_the_window(self) -> None:
        (run,) = runs_of(
            plan_of(staging_query(schedule="15 1-22/3 * * *", offset="1h")), "2026-06-01 04:00", "2026-06-01 07:00"
        )
        assert (run["start"], run["end"]) == ("2026-06-01T01:00:00Z", "2026-06-01T04:00:00Z")

    def test_a_run_belongs_to_the_range_of_its_fire(self) -> None:
        plan = plan_of(staging_query(schedule="15 1-22/3 * * *", offset="1h"))
        assert [run["fire"] for run in runs_of(plan, "2026-06-01 04:16", "2026-06-01 07:15")] == []
        assert [run["fire"] for run in runs_of(plan, "2026-06-01 04:15", "2026-06-01 07:16")] == [
            "2026-06-01T04:15:00Z",
            "2026-06-01T07:15:00Z",
        ]


class TestCoarseSchedules:  # C9
    def test_a_weekly_run_writes_the_seven_days_since_the_last(self) -> None:
        first, second = runs_of(plan_of(staging_query(schedule="0 6 * * MON")), "2026-06-01", "2026-06-15")
        assert partitions(first) == [f"2026-05-{day}" for day in range(25, 32)]
        assert partitions(second) == [f"2026-06-{day:02d}" for day in range(1, 8)]
        assert second["partition_key"] == "2026-06-07" and first["end"] == second["start"]

    def test_a_monthly_run_writes_the_month(self) -> None:
        (run,) = runs_of(plan_of(staging_query(schedule="0 6 1 * *")), "2026-06-01", "2026-06-30")
        assert (
            len(partitions(run)) == 31 and partitions(run)[0] == "2026-05-01" and run["partition_key"] == "2026-05-31"
        )

    def test_the_first_one_is_cut_at_the_start_date(self) -> None:
        plan = plan_of(staging_query(schedule="0 6 * * MON"), settings=Settings(start_date="2026-06-04"))
        first, second = runs_of(plan, "2026-06-01", "2026-06-16")
        assert partitions(first) == [f"2026-06-{day:02d}" for day in range(4, 8)]
        assert first["start"] == "2026-06-04T00:00:00Z" and len(partitions(second)) == 7

    def test_covers_newest_writes_only_the_newest(self) -> None:
        plan = plan_of(staging_query(schedule="0 6 * * MON"), settings=Settings(covers=Covers.NEWEST))
        (run,) = runs_of(plan, "2026-06-01", "2026-06-08")
        assert partitions(run) == ["2026-05-31"] and run["start"] == "2026-05-25T00:00:00Z"

    @pytest.mark.parametrize(
        ("build", "flag", "newest"),
        [
            pytest.param(join, 0, True, id="a Join without history"),
            pytest.param(join, 1, False, id="a Join with history"),
            pytest.param(join, None, False, id="a Join that says nothing"),
            pytest.param(group_by, 1, True, id="a GroupBy's flag is stored negated: 1 is without history"),
            pytest.param(group_by, 0, False, id="a GroupBy's 0 is the normal case"),
            pytest.param(staging_query, 0, False, id="a staging query has no such flag"),
        ],
    )
    def test_historical_backfill(self, build: Any, flag: int | None, newest: bool) -> None:
        execution = {} if flag is None else {"historicalBackfill": flag}
        (run,) = runs_of(plan_of(build(schedule="0 6 * * MON", execution=execution)), "2026-06-01", "2026-06-08")
        assert len(partitions(run)) == (1 if newest else 7)

    def test_a_replay_is_one_label_whatever_the_schedule(self) -> None:
        plan = plan_of(staging_query(schedule="0 6 * * MON"))
        run = plan.schedule.replay(plan.schedule.partition(plan.spec.start_of("2026-06-03")))
        assert plan.schedule.key_of(run) == "2026-06-03"
        assert plan.spec.labels(run.modes[Mode.BACKFILL].window.start, run.modes[Mode.BACKFILL].window.end) == (
            "2026-06-03",
        )


class TestTwoSchedules:  # C10
    WEEKLY_IN_DAILY = online(schedule="0 6 * * MON", online="@daily", sources=[events()], windows=["1d"])

    def test_a_weekly_backfill_inside_daily_online_runs(self) -> None:
        runs = runs_of(plan_of(self.WEEKLY_IN_DAILY), "2026-06-06", "2026-06-10")
        assert [(run["partition_key"], sorted(run["modes"])) for run in runs] == [
            ("2026-06-05", ["upload"]),
            ("2026-06-06", ["upload"]),
            ("2026-06-07", ["backfill", "upload"]),
            ("2026-06-08", ["upload"]),
        ]
        monday = runs[2]
        assert partitions(monday) == [f"2026-06-{day:02d}" for day in range(1, 8)]
        assert partitions(monday, "upload") == ["2026-06-07"]
        assert (monday["start"], monday["end"]) == ("2026-06-07T00:00:00Z", "2026-06-08T00:00:00Z")

    def test_a_mode_that_fires_later_keeps_its_own_fire(self) -> None:
        monday = runs_of(plan_of(self.WEEKLY_IN_DAILY), "2026-06-08", "2026-06-09")[0]
        assert monday["fire"] == monday["modes"]["upload"]["fire"] == "2026-06-08T00:00:00Z"
        assert monday["modes"]["backfill"]["fire"] == "2026-06-08T06:00:00Z"

    def test_each_mode_waits_for_what_it_needs_itself(self) -> None:
        monday = runs_of(plan_of(self.WEEKLY_IN_DAILY), "2026-06-08", "2026-06-09")[0]
        waits = {name: mode["waits"][0]["labels"] for name, mode in monday["modes"].items()}
        assert waits["upload"] == ["2026-06-07"] and len(waits["backfill"]) == 7

    def test_two_daily_times_are_one_run(self) -> None:
        (run,) = runs_of(plan_of(online(schedule="0 2 * * *", online="0 7 * * *")), "2026-06-02", "2026-06-03")
        assert {name: mode["fire"][11:16] for name, mode in run["modes"].items()} == {
            "backfill": "02:00",
            "upload": "07:00",
        }

    @pytest.mark.parametrize("text", ["0 * * * *", " 0 * * * * "])
    def test_on_a_sub_daily_grid_the_same_schedule_is_fine(self, text: str) -> None:
        assert rules_broken(online(sources=[events(interval="1h")], schedule="0 * * * *", online=text)) == []

    def test_on_a_sub_daily_grid_another_schedule_is_refused(self) -> None:
        (fault,) = faults_of(online(sources=[events(interval="1h")], schedule="0 * * * *", online="30 * * * *"))
        assert fault.rule == "C10" and "30 * * * *" in fault.message

    def test_an_online_schedule_may_stand_alone_on_a_sub_daily_grid(self) -> None:
        plan = plan_of(online(sources=[events(interval="1h")], schedule="@never", online="0 * * * *", interval="1h"))
        assert plan.modes == (Mode.UPLOAD,)

    @pytest.mark.parametrize("conf", [group_by(schedule="@daily"), join()], ids=["GroupBy", "Join"])
    def test_without_one_an_online_conf_uploads_nothing(self, conf: Document) -> None:
        conf["metaData"]["online"] = 1
        assert plan_of(conf).modes == (Mode.BACKFILL,)

    @pytest.mark.parametrize("flag", [0, None, False, "0", ""])
    def test_it_counts_only_when_the_conf_is_online(self, flag: object) -> None:
        conf = group_by(schedule="@daily", execution={"onlineSchedule": "not even a cron"})
        conf["metaData"]["online"] = flag
        assert plan_of(conf).modes == (Mode.BACKFILL,)


class TestModes:  # C11
    @pytest.mark.parametrize(
        ("conf", "modes"),
        [
            pytest.param(staging_query(), [Mode.BACKFILL], id="a staging query"),
            pytest.param(staging_query(online="@daily"), [Mode.BACKFILL], id="a staging query is never online"),
            pytest.param(group_by(schedule="@daily"), [Mode.BACKFILL], id="an offline GroupBy"),
            pytest.param(
                group_by(schedule="@daily", online="@daily"), [Mode.BACKFILL, Mode.UPLOAD], id="an online GroupBy"
            ),
            pytest.param(group_by(online="@daily"), [Mode.UPLOAD], id="an online GroupBy without backfill"),
            pytest.param(
                group_by(schedule="@daily", online="@never"),
                [Mode.BACKFILL],
                id="an online GroupBy whose upload is off",
            ),
            pytest.param(join(), [Mode.BACKFILL], id="an offline Join"),
            pytest.param(join(online="@daily"), [Mode.BACKFILL, Mode.METADATA_UPLOAD], id="an online Join"),
            pytest.param(join(schedule="@never"), [], id="a Join that is off"),
        ],
    )
    def test_which_jobs_a_conf_has(self, conf: Document, modes: list[Mode]) -> None:
        assert list(plan_of(conf).modes) == modes

    def test_an_upload_writes_only_the_newest_partition(self) -> None:
        (run,) = runs_of(plan_of(group_by(online="0 6 * * MON")), "2026-06-01", "2026-06-08")
        assert partitions(run, "upload") == ["2026-05-31"] and run["start"] == "2026-05-25T00:00:00Z"

    def test_a_metadata_upload_waits_for_the_uploads_of_its_online_parts_only(self) -> None:
        deployed = group_by("t.g.hourly__1", sources=[events(interval="1h")], schedule="0 * * * *", online="0 * * * *")
        offline = group_by("t.g.offline__1", schedule="@daily")
        canary = group_by("t.g.canary__1", online="@daily", environments=[1])
        off = group_by("t.g.off__1", schedule="@daily", online="@never")
        gone = group_by("t.g.gone__1", online="@daily")
        parts = [deployed, offline, canary, off, gone]
        plan = plan_of(join(online="@daily", parts=parts), deployed, offline, canary, off)
        (run,) = runs_of(plan, "2026-06-02", "2026-06-03")
        assert run["modes"]["metadata_upload"]["waits"] == [
            {"table": "ns.t_g_hourly__1__upload", "column": "ds", "labels": ["2026-06-01-23-00"], "sub": []}
        ]

    def test_a_rejected_part_does_not_reject_the_joins_metadata_upload(self) -> None:
        bad = group_by("t.g.bad__1", online="0 */5 * * *")
        plan = plan_of(join(online="@daily", parts=[bad]), bad)
        (run,) = runs_of(plan, "2026-06-02", "2026-06-03")
        assert run["modes"]["metadata_upload"]["waits"] == []


class TestOff:  # C12
    @pytest.mark.parametrize("schedule", [None, "@never", "none", ""])
    def test_a_conf_without_a_schedule_never_fires_but_can_be_replayed(self, schedule: str | None) -> None:
        plan = plan_of(staging_query(schedule=schedule))
        assert plan.modes == () and "unscheduled" in plan.tags
        assert runs_of(plan, "2026-06-01", "2026-07-01") == []
        assert plan.schedule.next_run(None, 1_780_000_000) is None and plan.schedule.last_run(1_780_000_000) is None
        run = plan.schedule.replay(plan.schedule.partition(plan.spec.start_of("2026-06-01")))
        assert list(run.modes) == [Mode.BACKFILL] and waits_of(plan, "2026-06-01") == []

    def test_a_disabled_conf_keeps_its_modes_for_replays(self) -> None:  # H14
        plan = plan_of(group_by(schedule="@daily", online="@daily"), settings=Settings(enabled=False))
        assert plan.modes == () and "unscheduled" in plan.tags
        run = plan.schedule.replay(plan.schedule.partition(plan.spec.start_of("2026-06-01")))
        assert list(run.modes) == [Mode.BACKFILL, Mode.UPLOAD]


class TestDates:  # C29
    @pytest.mark.parametrize(
        ("start", "first"),
        [
            pytest.param("2026-06-03", "2026-06-02-22-00", id="a day is floored to the grid (C27)"),
            pytest.param("2026-06-03-04-00", "2026-06-03-04-00", id="a label"),
            pytest.param("2026-06-03T04:00:00Z", "2026-06-03-04-00", id="an instant on the grid"),
            pytest.param(
                "2026-06-03T04:00:01Z", "2026-06-03-07-00", id="an instant after a boundary: the next whole partition"
            ),
            pytest.param("2026-06-03T06:00:00+02:00", "2026-06-03-04-00", id="an instant with an offset"),
        ],
    )
    def test_the_start_date_is_the_earliest_partition_start(self, start: str, first: str) -> None:
        plan = plan_of(staging_query(schedule="15 1-22/3 * * *", offset="1h"), settings=Settings(start_date=start))
        run = runs_of(plan, "2026-05-01", "2026-06-05")[0]
        assert run["partition_key"] == first

    @pytest.mark.parametrize(
        ("end", "last"),
        [("2026-06-03", "2026-06-03"), ("2026-06-03T00:00:00Z", "2026-06-02"), ("2026-06-03T23:59:59Z", "2026-06-02")],
    )
    def test_no_partition_ends_after_the_end_date(self, end: str, last: str) -> None:
        plan = plan_of(staging_query(), settings=Settings(end_date=end))
        assert runs_of(plan, "2026-06-01", "2026-06-10")[-1]["partition_key"] == last

    def test_catch_up_without_a_start_date_is_refused(self) -> None:
        (fault,) = faults_of(staging_query(), settings=Settings(catchup=True))
        assert fault.rule == "C29" and "start_date" in fault.remedy

    @pytest.mark.parametrize("field", ["start_date", "end_date", "skip_to_date"])
    @pytest.mark.parametrize(
        "text", ["yesterday", "2026-06-03-05-00", "20260603", "2026-13-01", "0001-01-01", "9999-12-31T00:00:00Z"]
    )
    def test_a_date_that_nobody_can_mean_is_refused(self, field: str, text: str) -> None:
        conf = staging_query(schedule="15 1-22/3 * * *", offset="1h")
        (fault,) = faults_of(conf, settings=Settings.model_validate({field: text}))
        assert fault.rule == "C29" and fault.field == field and text in fault.message

    def test_an_end_before_the_start_is_refused(self) -> None:
        (fault,) = faults_of(staging_query(), settings=Settings(start_date="2026-06-03", end_date="2026-06-01"))
        assert fault.rule == "C29" and "2026-06-01" in fault.message and "2026-06-03" in fault.message

    def test_a_confs_own_date_is_reported_where_it_stands(self) -> None:
        conf = staging_query(customJson=json.dumps({"airflow": {"start_date": "soon"}}))
        (fault,) = faults_of(conf)
        assert fault.rule == "C29" and "'soon'" in fault.message


class TestEnvironments:  # C12
    @pytest.mark.parametrize(
        ("environments", "prod", "canary"),
        [
            (None, True, False),
            ([], True, False),
            ([0], True, False),
            ([1], False, True),
            ([0, 1], True, True),
            ([7], False, False),
        ],
    )
    def test_a_conf_is_deployed_where_it_says_and_in_production_when_silent(
        self, environments: list[int] | None, prod: bool, canary: bool
    ) -> None:
        conf = staging_query() if environments is None else staging_query(environments=environments)
        for environment, deployed in ((Environment.PROD, prod), (Environment.CANARY, canary)):
            verdict = verdict_on(conf, settings=Settings(environment=environment))
            assert isinstance(verdict, OtherEnvironment) is not deployed
