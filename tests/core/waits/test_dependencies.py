"""What a run waits for on each of its tables (C16 to C20)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_chronon.core.calendar.instants import DAY, MINUTE
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.settings.model import Settings
from airflow_chronon.core.waits.dependencies import Binding, Lookback, TableDependency, merged
from airflow_chronon.errors import ChrononError
from tests.support.confs import (
    Document,
    at,
    dependency,
    entities,
    events,
    faults_of,
    group_by,
    join,
    labels_waited,
    plan_of,
    rules_broken,
    staging_query,
    waits_of,
)
from tests.support.schedules import spec_of

MINUTES = TableDependency("data.minutes", "ds", spec_of(MINUTE))


class TestARunOfManyPartitions:  # S7
    def test_over_a_finer_table_is_refused_before_its_labels_are_written(self) -> None:
        with pytest.raises(ChrononError, match=r"72000000 partitions of data\.minutes, .* at most 600000 \(S7\)"):
            merged(MINUTES.waits(0, 50_000 * DAY - 1, grid=PartitionGrid(DAY)))

    def test_of_a_year_over_minutes_is_one_wait(self) -> None:
        (wait,) = merged(MINUTES.waits(0, 366 * DAY, grid=PartitionGrid(DAY)))
        assert len(wait.labels) == 366 * 1440

    def test_takes_each_snapshot_once(self) -> None:
        daily = TableDependency("data.users", "ds", spec_of(DAY), Binding.PARTITION_SNAPSHOT, PartitionGrid(DAY))
        found = tuple(daily.waits(10 * DAY, 12 * DAY, grid=PartitionGrid(MINUTE)))
        assert [wait.labels for wait in found] == [("1970-01-10",), ("1970-01-11",), ("1970-01-12",)]

    def test_over_as_many_snapshots_is_united_at_once(self) -> None:
        each = TableDependency("data.users", "ds", spec_of(MINUTE), Binding.PARTITION_SNAPSHOT, PartitionGrid(MINUTE))
        (wait,) = merged(each.waits(0, 30 * DAY, grid=PartitionGrid(MINUTE)))
        assert len(wait.labels) == 30 * 1440


def only_wait(document: Document, label: str = "2026-06-10", *others: Document) -> Document | None:
    """The one wait of a conf for one partition, or None when it waits for nothing."""
    waits = waits_of(plan_of(document, *others), label)
    assert len(waits) <= 1
    return waits[0] if waits else None


def dependent(**of: object) -> Document:
    return staging_query(dependencies=[dependency("data.x", **of)])  # type: ignore[arg-type]


class TestStagingQueryRanges:  # C16, C17
    @pytest.mark.parametrize(
        ("start", "end", "labels", "lookback"),
        [
            pytest.param("0d", "0d", ["2026-06-10"], None, id="the same day"),
            pytest.param("1d", "1d", ["2026-06-09"], None, id="the day before"),
            pytest.param("7d", "0d", ["2026-06-10"], {"from": "2026-06-03", "to": "2026-06-09"}, id="a week behind it"),
            pytest.param(
                "7d", "2d", ["2026-06-08"], {"from": "2026-06-03", "to": "2026-06-07"}, id="a week, two days late"
            ),
            pytest.param(None, "0d", ["2026-06-10"], {"from": None, "to": "2026-06-09"}, id="everything"),
            pytest.param("0d", "-1d", ["2026-06-11"], {"from": "2026-06-10", "to": "2026-06-10"}, id="a day ahead"),
            pytest.param("0d", "5d", [], None, id="the range ends before it starts"),
        ],
    )
    def test_the_slice_that_the_run_adds_is_awaited_and_the_rest_is_lookback(
        self, start: str | None, end: str, labels: list[str], lookback: Document | None
    ) -> None:
        wait = only_wait(dependent(start=start, end=end))
        if not labels:
            assert wait is None
        else:
            assert wait is not None and wait["labels"] == labels and wait.get("lookback") == lookback

    @pytest.mark.parametrize(
        ("cuts", "labels", "lookback"),
        [
            pytest.param(
                {"start_cut": "2026-06-05"}, ["2026-06-10"], ("2026-06-05", "2026-06-09"), id="a start cut-off clips"
            ),
            pytest.param({"start_cut": "2026-06-10"}, ["2026-06-10"], None, id="a start cut-off is inclusive"),
            pytest.param({"start_cut": "2026-06-11"}, None, None, id="before the start cut-off nothing is needed"),
            pytest.param(
                {"end_cut": "2026-06-10"},
                ["2026-06-10"],
                ("2026-06-03", "2026-06-09"),
                id="an end cut-off is inclusive",
            ),
            pytest.param(
                {"end_cut": "2026-06-08"}, ["2026-06-08"], ("2026-06-03", "2026-06-07"), id="past it the last valid one"
            ),
            pytest.param({"end_cut": "2026-06-02"}, None, None, id="past it and beyond the range nothing"),
            pytest.param(
                {"start_cut": "2026-06-06", "end_cut": "2026-06-08"},
                ["2026-06-08"],
                ("2026-06-06", "2026-06-07"),
                id="both",
            ),
            pytest.param({"start_cut": "20260605"}, ["2026-06-10"], ("2026-06-05", "2026-06-09"), id="a compact day"),
        ],
    )
    def test_cut_offs_clip_the_range(
        self, cuts: dict[str, str], labels: list[str] | None, lookback: tuple[str, str] | None
    ) -> None:
        wait = only_wait(dependent(start="7d", **cuts))
        if labels is None:
            assert wait is None
            return
        assert wait is not None and wait["labels"] == labels
        assert wait.get("lookback") == (lookback and {"from": lookback[0], "to": lookback[1]})

    def test_past_an_end_cut_off_with_no_lookback_nothing_is_needed(self) -> None:
        assert only_wait(dependent(end_cut="2026-06-08")) is None

    def test_without_a_start_offset_the_last_valid_partition_is_awaited_for_ever(self) -> None:
        wait = only_wait(dependent(start=None, end_cut="2026-01-31"))
        assert (
            wait is not None
            and wait["labels"] == ["2026-01-31"]
            and wait["lookback"] == {"from": None, "to": "2026-01-30"}
        )

    @pytest.mark.parametrize("cut", ["not-a-date", "2026-06-01-00-00", "2026/06/01", "2026-02-30", "20260601 "])
    def test_a_cut_off_that_is_neither_a_label_nor_a_day_is_refused(self, cut: str) -> None:
        (fault,) = faults_of(dependent(end_cut=cut))
        assert fault.rule == "C16" and repr(cut) in fault.message and "2026-01-01" in fault.remedy

    def test_a_cut_off_in_the_tables_own_format_is_one_partition(self) -> None:
        hourly = dependent(interval="1h", start="1d", end_cut="2026-06-10-05-00")
        wait = only_wait(hourly)
        assert wait is not None and wait["labels"] == [f"2026-06-10-{hour:02d}-00" for hour in range(6)]

    def test_a_day_as_cut_off_of_an_hourly_table_means_the_whole_day(self) -> None:
        wait = only_wait(dependent(interval="1h", start="1d", end_cut="2026-06-09"))
        assert wait is not None and wait["labels"] == ["2026-06-09-23-00"]
        wait = only_wait(dependent(interval="1h", start="1d", start_cut="2026-06-10"))
        assert wait is not None and "lookback" not in wait

    def test_labels_are_written_in_the_tables_own_grid_format_and_column(self) -> None:
        wait = only_wait(dependent(interval="6h", partitionFormat="yyyy/MM/dd HH", partitionColumn="hr"))
        assert wait is not None and wait["column"] == "hr"
        assert wait["labels"] == [f"2026/06/10 {hour:02d}" for hour in (0, 6, 12, 18)]

    def test_the_column_is_the_confs_then_the_teams_then_ds(self) -> None:  # C7
        team: dict[str, Any] = {
            "common": {"spark.chronon.partition.column": "part_dt", "spark.chronon.partition.format": "yyyyMMdd"}
        }
        plan = plan_of(
            staging_query(dependencies=[dependency("data.x"), dependency("data.y", partitionColumn="dt")], **team)
        )
        assert (plan.spec.column, plan.spec.format.pattern) == ("part_dt", "yyyyMMdd")
        columns = {wait["table"]: (wait["column"], wait["labels"]) for wait in waits_of(plan, "20260610")}
        assert columns == {"data.x": ("part_dt", ["20260610"]), "data.y": ("dt", ["20260610"])}

    def test_the_teams_format_is_only_for_legacy_days(self) -> None:  # C7
        conf = staging_query(schedule="0 * * * *", common={"spark.chronon.partition.format": "yyyyMMdd"})
        assert plan_of(conf).spec.format.pattern == "yyyy-MM-dd-HH-mm"

    @pytest.mark.parametrize(("start", "end"), [("90m", "90m"), ("1h", "0h")])
    def test_offsets_that_are_no_whole_partitions_widen_with_a_warning(self, start: str, end: str) -> None:
        plan = plan_of(dependent(interval="6h", start=start, end=end))
        assert "C16" in [warning.rule for warning in plan.warnings]
        (wait,) = waits_of(plan, "2026-06-10")
        assert wait["labels"][-1] == "2026-06-10-18-00"
        touched = wait["labels"][0] if start == end else wait["lookback"]["from"]
        assert touched == "2026-06-09-18-00"

    def test_a_cumulative_table_is_needed_in_its_newest_partition_only(self) -> None:
        wait = only_wait(dependent(start="30d", interval="1h", isCumulative=1))
        assert wait is not None and wait["labels"] == ["2026-06-10-23-00"] and "lookback" not in wait

    def test_a_trigger_expression_replaces_the_labels(self) -> None:  # C19
        assert only_wait(dependent(triggerExpr="max(ds)")) == {"table": "data.x", "expression": "max(ds)"}

    def test_where_nothing_is_needed_no_expression_is_asked(self) -> None:  # C19
        assert only_wait(dependent(triggerExpr="max(ds)", start_cut="2026-06-11")) is None

    def test_what_the_expression_is_compared_with_is_kept(self) -> None:  # C19
        plan = plan_of(dependent(interval="6h", triggerExpr="max(ds)"))
        ((wait,),) = plan.waits(plan.schedule.replay(plan.schedule.partition(at("2026-06-10")))).values()
        assert max(wait.labels) == "2026-06-10-18-00" and wait.spec is not None


class TestSubPartitions:  # C20
    def test_they_are_awaited_under_each_label(self) -> None:
        wait = only_wait(group_by(sources=[events(subPartitionsToWaitFor=["a=1", "a=2/b=3"])], windows=["1d"]))
        assert wait is not None and wait["sub"] == ["a=1", "a=2/b=3"]

    def test_those_in_the_tables_text_come_first(self) -> None:
        wait = only_wait(group_by(sources=[events("data.x/sys=web", subPartitionsToWaitFor=["a=1"])], windows=["1d"]))
        assert wait is not None and wait["table"] == "data.x" and wait["sub"] == ["sys=web/a=1"]


class TestGroupByRanges:  # C16
    @pytest.mark.parametrize(
        ("windows", "lag", "labels", "lookback"),
        [
            pytest.param(["7d", "1d"], None, ["2026-06-10"], ("2026-06-03", "2026-06-09"), id="the largest window"),
            pytest.param(["7d"], "1d", ["2026-06-09"], ("2026-06-02", "2026-06-08"), id="window and lag"),
            pytest.param(
                [], None, ["2026-06-10"], (None, "2026-06-09"), id="an unwindowed aggregation reads everything"
            ),
            pytest.param(None, None, ["2026-06-10"], (None, "2026-06-09"), id="no aggregation reads everything"),
        ],
    )
    def test_events_reach_back_by_window_and_lag(
        self, windows: list[str] | None, lag: str | None, labels: list[str], lookback: tuple[str | None, str]
    ) -> None:
        wait = only_wait(group_by(sources=[events(lag=lag)], windows=windows))
        assert wait is not None and wait["labels"] == labels
        assert wait["lookback"] == {"from": lookback[0], "to": lookback[1]}

    def test_an_unbounded_range_begins_at_the_start_partition(self) -> None:
        wait = only_wait(group_by(sources=[events(startPartition="2023-01-01")]))
        assert wait is not None and wait["lookback"] == {"from": "2023-01-01", "to": "2026-06-09"}

    def test_entities_need_the_one_snapshot_at_the_lag(self) -> None:
        wait = only_wait(group_by(sources=[entities(lag="2d", mutations="data.mutations")], windows=["30d"]))
        assert (
            wait is not None
            and wait["table"] == "data.accounts"
            and wait["labels"] == ["2026-06-08"]
            and "lookback" not in wait
        )

    def test_cumulative_events_need_only_the_newest_label(self) -> None:
        wait = only_wait(group_by(sources=[events(interval="1h", isCumulative=1)], windows=["30d"]))
        assert wait is not None and wait["labels"] == ["2026-06-10-23-00"] and "lookback" not in wait

    def test_a_join_source_reads_the_inner_joins_output_not_its_derived_table(self) -> None:
        inner = join("t.j.inner__1")
        reader = group_by(sources=[{"joinSource": {"join": inner}}], windows=["1d"])
        assert labels_waited(plan_of(reader, inner), "2026-06-10") == {"ns.t_j_inner__1": ["2026-06-10"]}

    @pytest.mark.parametrize(
        ("info", "labels"),
        [
            pytest.param(None, ["2026-06-10"], id="daily when it says nothing"),
            pytest.param(
                {"partitionInterval": {"length": 12, "timeUnit": 0}},
                ["2026-06-10-00-00", "2026-06-10-12-00"],
                id="its own grid",
            ),
        ],
    )
    def test_a_model_transforms_source_is_read_on_its_own_grid(self, info: Document | None, labels: list[str]) -> None:
        execution = {"outputTableInfo": info} if info else {}
        transforms = {"metaData": {"name": "t.m.scores__1", "outputNamespace": "ns", "executionInfo": execution}}
        reader = group_by(sources=[{"modelTransforms": transforms}], windows=["1d"])
        assert labels_waited(plan_of(reader), "2026-06-10") == {"ns.t_m_scores__1": labels}

    def test_one_table_in_two_sources_is_one_wait(self) -> None:
        conf = group_by(sources=[events(lag="1d"), events()], windows=["2d"])
        wait = only_wait(conf)
        assert wait is not None and wait["labels"] == ["2026-06-09", "2026-06-10"]
        assert wait["lookback"] == {"from": "2026-06-07", "to": "2026-06-09"}

    def test_one_table_in_two_formats_is_awaited_in_the_first(self) -> None:
        conf = group_by(sources=[events(lag="1d"), events(partitionFormat="yyyyMMdd")], windows=["2d"])
        wait = only_wait(conf)
        assert wait is not None and wait["labels"] == ["2026-06-09", "2026-06-10"]
        assert wait["lookback"] == {"from": "2026-06-07", "to": "2026-06-09"}


class TestLookbackPolicy:  # C17
    PRODUCER = staging_query("t.s.made__1")

    def policies(self, settings: Settings, **meta: Any) -> dict[str, Lookback]:
        sources = [dependency("ns.t_s_made__1", start="3d"), dependency("data.x", start="3d")]
        plan = plan_of(staging_query(dependencies=sources, **meta), self.PRODUCER, settings=settings)
        waits = plan.waits(plan.schedule.replay(plan.schedule.partition(at("2026-06-10"))))
        return {wait.table: wait.policy for found in waits.values() for wait in found}

    def test_a_produced_table_is_required_and_any_other_warned_about(self) -> None:
        assert self.policies(Settings()) == {"ns.t_s_made__1": Lookback.REQUIRE, "data.x": Lookback.WARN}

    @pytest.mark.parametrize("policy", list(Lookback))
    def test_the_setting_holds_for_every_table(self, policy: Lookback) -> None:
        assert set(self.policies(Settings(lookback=policy)).values()) == {policy}

    def test_a_conf_may_set_its_own(self) -> None:
        own = json.dumps({"airflow": {"lookback": "ignore"}})
        assert set(self.policies(Settings(lookback=Lookback.WARN), customJson=own).values()) == {Lookback.IGNORE}


class TestTimePartitioned:  # C18
    def test_its_newest_value_must_reach_the_end_of_the_range(self) -> None:
        wait = only_wait(
            group_by(sources=[events(timePartitioned=1, partitionColumn="event_ts", lag="1h")], windows=["7d"])
        )
        assert wait == {"table": "data.events", "column": "event_ts", "until": "2026-06-10T23:00:00Z"}

    @pytest.mark.parametrize(
        ("cut", "until"),
        [
            pytest.param("2026-06-10", "2026-06-11T00:00:00Z", id="the end is not clipped"),
            pytest.param("2026-06-08", "2026-06-08T00:00:00Z", id="the start of the last day inside"),
        ],
    )
    def test_an_end_cut_off_asks_for_the_start_of_its_last_day(self, cut: str, until: str) -> None:
        wait = only_wait(group_by(sources=[events(timePartitioned=1, endPartition=cut)], windows=["7d"]))
        assert wait is not None and wait["until"] == until

    def test_beyond_its_range_it_is_not_awaited(self) -> None:
        assert (
            only_wait(group_by(sources=[events(timePartitioned=1, endPartition="2026-05-01")], windows=["7d"])) is None
        )

    def test_a_sub_daily_consumer_slices_it_on_its_own_grid(self) -> None:
        conf = group_by(
            sources=[events(timePartitioned=1, endPartition="2026-06-10-04-00")], windows=["1d"], schedule="0 */2 * * *"
        )
        wait = only_wait(conf, "2026-06-10-06-00")
        assert wait is not None and wait["until"] == "2026-06-10T04:00:00Z"


class TestDictDependencies:  # C16
    @staticmethod
    def query(*specs: str, **of: object) -> Document:
        custom = json.dumps({"airflowDependencies": [{"name": "n", "spec": spec} for spec in specs]})
        return staging_query(customJson=custom, **of)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("spec", "wait"),
        [
            ("data.x/ds={{ ds }}", {"column": "ds", "labels": ["2026-06-10"], "sub": []}),
            ("data.x/ds={{ds}}", {"column": "ds", "labels": ["2026-06-10"], "sub": []}),
            ("data.x/dt={{ ds_nodash }}", {"column": "dt", "labels": ["20260610"], "sub": []}),
            ("data.x/ds={{ macros.ds_add(ds, -2) }}", {"column": "ds", "labels": ["2026-06-08"], "sub": []}),
            (
                "data.x/ds={{ macros.ds_add(ds, 1) }}/_HR=23:00",
                {"column": "ds", "labels": ["2026-06-11"], "sub": ["_HR=23:00"]},
            ),
            ("data.x/ds=2024-01-01", {"column": "ds", "labels": ["2024-01-01"], "sub": []}),
        ],
    )
    def test_templates_are_worked_out_from_the_runs_partitions(self, spec: str, wait: Document) -> None:
        assert only_wait(self.query(spec)) == {"table": "data.x", **wait}

    def test_an_hourly_query_waits_for_the_day_of_its_partition(self) -> None:
        assert labels_waited(plan_of(self.query("data.x/ds={{ ds }}", schedule="0 * * * *")), "2026-06-10-05-00") == {
            "data.x": ["2026-06-10"]
        }

    def test_a_table_that_a_dependency_names_is_not_read_twice(self) -> None:
        conf = self.query("data.x/ds={{ ds }}", dependencies=[dependency("data.x/sys=web", end="1d", start="1d")])
        assert labels_waited(plan_of(conf), "2026-06-10") == {"data.x": ["2026-06-09"]}

    def test_other_confs_do_not_read_them(self) -> None:
        custom = json.dumps({"airflowDependencies": [{"name": "n", "spec": "data.raw/ds={{ ds }}"}]})
        assert list(labels_waited(plan_of(group_by(customJson=custom)), "2026-06-10")) == ["data.events"]

    @pytest.mark.parametrize(
        "spec",
        [
            "data.x",
            "data.x/ds={{ ds.year }}",
            "data.x/{{ ds }}",
            "data.x/ds={{ macros.ds_add(ds, 1.5) }}",
            "data.x/ds={{ macros.ds_add(ds, 99999999) }}",
        ],
    )
    def test_what_cannot_be_worked_out_is_refused(self, spec: str) -> None:
        (fault,) = faults_of(self.query(spec))
        assert fault.rule == "C16" and repr(spec) in fault.message

    @pytest.mark.parametrize(
        "text", ["[]", "3", "{", '{"airflowDependencies": 3}', '{"airflowDependencies": [3]}', "[" * 100_000]
    )
    def test_custom_json_of_another_shape_is_refused(self, text: str) -> None:
        assert rules_broken(staging_query(customJson=text)) == ["C16"]
