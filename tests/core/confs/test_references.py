"""Which tables a conf reads, on whose grid, and what is wrong with a reference (C13 to C15)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from airflow_chronon.core.confs.plan import RejectedConf
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.errors import Rejected
from tests.support.confs import (
    Document,
    conf_of,
    dependency,
    entities,
    events,
    faults_of,
    group_by,
    join,
    judge,
    labels_waited,
    plan_of,
    rules_broken,
    staging_query,
    waits_of,
)

THREE_HOURS: Document = {"schedule": "15 1-22/3 * * *", "interval": "3h", "offset": "1h"}
SIX_AT_TWO: Document = {"schedule": "0 2-20/6 * * *", "interval": "6h", "offset": "2h"}
SIX_AT_FOUR: Document = {"schedule": "0 4-22/6 * * *", "interval": "6h", "offset": "4h"}


class TestWholePartitionReads:  # C13
    @pytest.mark.parametrize(
        "misaligned",
        [
            pytest.param(group_by(sources=[events(interval="3h", offset="1h")], **SIX_AT_TWO), id="a GroupBy's events"),
            pytest.param(
                group_by(sources=[entities(interval="3h", offset="1h")], **SIX_AT_TWO), id="a GroupBy's snapshots"
            ),
            pytest.param(
                staging_query(dependencies=[dependency("data.x", "3h", offset="1h")], **SIX_AT_TWO), id="a dependency"
            ),
            pytest.param(join(left=events(interval="3h", offset="1h"), **SIX_AT_TWO), id="a Join's left"),
        ],
    )
    def test_a_read_that_cuts_partitions_is_refused(self, misaligned: Document) -> None:
        (fault,) = faults_of(misaligned)
        assert fault.rule == "C13"
        assert (
            "6h@2h" in fault.message
            and "3h@1h" in fault.message
            and "02:00 cuts the partition [01:00, 04:00)" in fault.message
        )
        assert "would fit" in fault.remedy

    @pytest.mark.parametrize(
        ("offset", "shown"),
        [(None, "12:00 cuts the partition [00:00, 24:00)"), ("2h", "[02:00, 02:00 the next day)")],
    )
    def test_a_whole_day_is_shown_as_one(self, offset: str | None, shown: str) -> None:
        (fault,) = faults_of(group_by(sources=[events(interval="1d", offset=offset)], schedule="0 */12 * * *"))
        assert shown in fault.message

    def test_boundaries_that_line_up_pass(self) -> None:
        assert rules_broken(group_by(sources=[events(interval="3h", offset="1h")], **SIX_AT_FOUR)) == []

    @pytest.mark.parametrize(
        "free",
        [
            pytest.param(
                join(left=events(interval="6h", offset="2h"), parts=[group_by(**THREE_HOURS)], **SIX_AT_TWO),
                id="a right part",
            ),
            pytest.param(
                join(left=events(interval="6h", offset="2h"), bootstraps=[{"table": "data.boot"}], **SIX_AT_TWO),
                id="a bootstrap part",
            ),
            pytest.param(group_by(sources=[events(timePartitioned=1)], **SIX_AT_TWO), id="a time-partitioned table"),
        ],
    )
    def test_what_is_not_read_as_whole_partitions_need_not_line_up(self, free: Document) -> None:
        assert rules_broken(free) == []

    def test_the_producers_real_grid_counts_not_the_text(self) -> None:
        producer = staging_query("t.s.three__1", **THREE_HOURS)
        assert rules_broken(staging_query(dependencies=[dependency("ns.t_s_three__1")], **SIX_AT_TWO), producer) == [
            "C13"
        ]
        assert rules_broken(staging_query(dependencies=[dependency("ns.t_s_three__1")], **SIX_AT_FOUR), producer) == []

    def test_every_misaligned_source_is_reported(self) -> None:
        conf = group_by(
            sources=[events("a.a", "3h"), events("b.b", "3h", offset="1h"), events("c.c", "4h")], **SIX_AT_TWO
        )
        assert [fault.field for fault in faults_of(conf)] == [f"sources[{n}].events.query" for n in range(3)]


class TestGridsOfSources:  # C4, C5
    @pytest.mark.parametrize(
        ("interval", "offset", "rule"),
        [("45m", None, "C4"), ("7d", None, "C4"), ("5h", None, "C4"), ("3h", "3h", "C5"), ("3h", "-1h", "C5")],
    )
    def test_the_compiler_does_not_check_them_so_we_do(self, interval: str, offset: str | None, rule: str) -> None:
        assert rules_broken(group_by(sources=[events(interval=interval, offset=offset)])) == [rule]
        assert rules_broken(staging_query(dependencies=[dependency("data.x", interval, offset=offset)])) == [rule]

    def test_mutation_tables_are_checked_although_nothing_waits_for_them(self) -> None:
        producer = staging_query("t.s.hourly__1", schedule="0 * * * *")
        conf = group_by(sources=[entities(mutations="ns.t_s_hourly__1", interval="3h")])
        assert rules_broken(conf, producer) == ["C15"]


class TestExternalTables:  # C14
    @pytest.mark.parametrize(
        "silent",
        [
            pytest.param(group_by(sources=[events()], schedule="0 * * * *"), id="a GroupBy source"),
            pytest.param(group_by(sources=[events()], offset="2h"), id="a day on an offset"),
            pytest.param(join(left=events(), schedule="0 * * * *"), id="a Join's left"),
            pytest.param(
                staging_query(dependencies=[dependency("data.x", None)], schedule="0 * * * *"), id="a dependency"
            ),
        ],
    )
    def test_a_silent_table_under_a_grid_that_is_not_days_is_refused(self, silent: Document) -> None:
        (fault,) = faults_of(silent)
        assert fault.rule == "C14" and "partition_interval" in fault.remedy

    def test_it_may_be_silent_under_midnight_days_and_when_time_partitioned(self) -> None:
        assert rules_broken(group_by(sources=[events()])) == []
        assert rules_broken(group_by(sources=[events(timePartitioned=1)], schedule="0 * * * *")) == []

    def test_a_bad_format_does_not_hide_it(self) -> None:
        assert rules_broken(group_by(sources=[events(partitionFormat="MMM")], schedule="0 * * * *")) == ["C14", "C7"]


class TestProducedTables:  # C15
    HOURLY = staging_query(
        "t.s.hourly__1", schedule="0 * * * *", info={"partitionColumn": "hr", "partitionFormat": "yyyyMMddHH"}
    )

    def test_they_carry_their_producers_grid_format_and_column(self) -> None:
        (wait,) = waits_of(plan_of(group_by(sources=[events("ns.t_s_hourly__1")]), self.HOURLY), "2026-06-01")
        assert wait["column"] == "hr"
        assert wait["labels"] == [f"20260601{hour:02d}" for hour in range(24)]

    @pytest.mark.parametrize("suffix", ["__derived", "__upload", "/region=eu", "__derived/region=eu"])
    def test_suffixes_and_sub_partitions_are_understood(self, suffix: str) -> None:
        (wait,) = waits_of(
            plan_of(staging_query(dependencies=[dependency("ns.t_s_hourly__1" + suffix)]), self.HOURLY), "2026-06-01"
        )
        assert wait["table"] == "ns.t_s_hourly__1" + suffix.partition("/")[0]
        assert len(wait["labels"]) == 24
        assert wait["sub"] == (["region=eu"] if "/" in suffix else [])

    def test_a_placeholder_namespace_is_linked_by_name_with_a_warning(self) -> None:
        producer = staging_query("t.s.hourly__1", schedule="0 * * * *", outputNamespace="elsewhere")
        plan = plan_of(staging_query(dependencies=[dependency("ns.t_s_hourly__1", "1h")]), producer)
        assert list(labels_waited(plan, "2026-06-01")) == ["elsewhere.t_s_hourly__1"]
        (warning,) = plan.warnings
        assert warning.rule == "C15" and "elsewhere.t_s_hourly__1" in warning.message

    def test_another_namespace_is_never_guessed(self) -> None:
        producer = staging_query("t.s.hourly__1", schedule="0 * * * *", outputNamespace="elsewhere")
        plan = plan_of(staging_query(dependencies=[dependency("third.t_s_hourly__1")]), producer)
        assert plan.producers == () and list(labels_waited(plan, "2026-06-01")) == ["third.t_s_hourly__1"]

    def test_a_placeholder_that_two_confs_could_mean_stays_external(self) -> None:
        one = staging_query("t.s.x_y__1", outputNamespace="one")
        other = staging_query("t.s_x.y__1", outputNamespace="two")
        plan = plan_of(staging_query("t.s.reader__1", dependencies=[dependency("ns.t_s_x_y__1")]), one, other)
        assert plan.producers == () and plan.warnings == ()

    def test_a_placeholder_never_means_the_reader_itself(self) -> None:
        # the copy of the part in the join is older than the tree's, which has moved to another namespace
        copy = group_by("t.g.part__1", sources=[events("old.t_g_part__1")], outputNamespace="old")
        plan = plan_of(join(parts=[copy]), group_by("t.g.part__1"))
        assert "old.t_g_part__1" in labels_waited(plan, "2026-06-01") and plan.producers == ()

    def test_a_declared_grid_that_contradicts_is_refused(self) -> None:
        (fault,) = faults_of(group_by(sources=[events("ns.t_s_hourly__1", "3h")]), self.HOURLY)
        assert fault.rule == "C15" and "grid 3h contradicts" in fault.message and "writes 1h" in fault.message

    def test_a_query_that_declares_1d_over_an_hourly_table_contradicts(self) -> None:
        assert rules_broken(group_by(sources=[events("ns.t_s_hourly__1", "1d")]), self.HOURLY) == ["C15"]

    def test_a_dependencys_1d_is_the_compilers_default_and_declares_nothing(self) -> None:
        plan = plan_of(staging_query(dependencies=[dependency("ns.t_s_hourly__1", "1d")]), self.HOURLY)
        assert len(labels_waited(plan, "2026-06-01")["ns.t_s_hourly__1"]) == 24
        assert [warning.rule for warning in plan.warnings] == ["C15"]

    @pytest.mark.parametrize("spelled", ["60m", "1h"])
    def test_the_same_grid_in_another_spelling_does_not_contradict(self, spelled: str) -> None:
        assert rules_broken(group_by(sources=[events("ns.t_s_hourly__1", spelled)]), self.HOURLY) == []

    def test_a_reader_of_a_conf_without_a_legal_grid_is_rejected_and_says_why(self) -> None:
        bad = staging_query("t.s.bad__1", schedule="@never", interval="45m")
        (fault,) = faults_of(staging_query(dependencies=[dependency("ns.t_s_bad__1")]), bad)
        assert fault.rule == "C4" and "producer staging_query/t.s.bad__1 is rejected" in fault.message

    def test_a_producer_with_a_bad_schedule_but_a_declared_grid_does_not_drag_its_readers_down(self) -> None:
        bad = staging_query("t.s.bad__1", schedule="@hourly", interval="1h")
        verdicts = judge(staging_query(dependencies=[dependency("ns.t_s_bad__1", "1h")]), bad)
        assert isinstance(verdicts["staging_query/t.s.x__1"], ConfPlan)
        assert isinstance(verdicts["staging_query/t.s.bad__1"], RejectedConf)

    @pytest.mark.parametrize(
        ("read", "written"),
        [
            pytest.param("ns.t_s_hourly__3", "ns.t_s_hourly__1", id="another version"),
            pytest.param("ns.t_s_hourly", "ns.t_s_hourly__1", id="no version"),
            pytest.param("ns.t_s_hourly__3__derived/region=eu", "ns.t_s_hourly__1", id="another version's derived"),
            pytest.param("ns.t_s_hourly__1__derived", "ns.t_s_hourly__1", id="derived of what derives nothing"),
            pytest.param("`ns`.`t_s_hourly__3`", "ns.t_s_hourly__1", id="in backticks"),
        ],
    )
    def test_a_table_that_only_looks_like_a_written_one_is_warned_of(self, read: str, written: str) -> None:
        plan = plan_of(group_by(sources=[events(read)]), self.HOURLY)
        name = read.replace("`", "").partition("/")[0]
        (warning,) = plan.warnings
        assert warning.rule == "C15"
        assert warning.message == f"{name} is written by nobody; this tree writes {written}"

    @pytest.mark.parametrize(
        "read", ["ns.t_s_hourly__1", "ns.t_s_other__1", "data.t_s_hourly__3", "ns.t_s_hourly_x__1"]
    )
    def test_what_is_written_or_looks_like_nothing_is_not(self, read: str) -> None:
        assert plan_of(group_by(sources=[events(read)]), self.HOURLY).warnings == ()

    def test_the_derived_table_of_a_join_is_written_where_it_derives_something(self) -> None:
        reader = group_by(sources=[events("ns.t_j_x__1__derived")])
        plain, deriving = join(), {**join(), "derivations": [{"name": "a", "expression": "b"}]}
        assert len(plan_of(reader, plain).warnings) == 1 and plan_of(reader, deriving).warnings == ()

    @pytest.mark.parametrize("quoted", ["`ns`.`t_s_hourly__1`", "`ns.t_s_hourly__1`", '"ns"."t_s_hourly__1"'])
    def test_a_name_in_quotes_means_what_it_means_without(self, quoted: str) -> None:
        for reader in (group_by(sources=[events(quoted)]), staging_query(dependencies=[dependency(quoted, "1h")])):
            plan = plan_of(reader, self.HOURLY)
            assert [str(key) for key in plan.producers] == ["staging_query/t.s.hourly__1"]
            assert len(labels_waited(plan, "2026-06-01")["ns.t_s_hourly__1"]) == 24


class TestCompilersOfEarly2026:  # C16: what they leave out
    def test_an_offset_without_a_length_is_zero(self) -> None:
        zero = {"timeUnit": 1}
        told = {**dependency("data.x", start=None, end=None), "startOffset": zero, "endOffset": zero}
        assert waits_of(plan_of(staging_query(dependencies=[told])), "2026-06-01") == waits_of(
            plan_of(staging_query(dependencies=[dependency("data.x")])), "2026-06-01"
        )

    def test_an_interval_without_a_length_is_none_that_a_table_may_have(self) -> None:
        silent = group_by(info={"partitionInterval": {"timeUnit": 1}})
        assert rules_broken(silent) == ["C4"]

    def test_a_right_part_needs_no_namespace_and_reads_what_it_reads_with_one(self) -> None:
        producer = staging_query("t.s.hourly__1", schedule="0 * * * *")
        part = group_by("t.g.part__1", sources=[events("ns.t_s_hourly__1"), events("t_s_hourly__1")])
        bare = {**part, "metaData": {key: v for key, v in part["metaData"].items() if key != "outputNamespace"}}
        told, untold = (labels_waited(plan_of(join(parts=[each]), producer), "2026-06-01") for each in (part, bare))
        assert told == untold and len(told["ns.t_s_hourly__1"]) == 24

    @pytest.mark.parametrize(
        ("silent", "field"),
        [
            pytest.param(lambda meta: {**staging_query(), "metaData": meta}, "metaData", id="a conf"),
            pytest.param(
                lambda meta: group_by(sources=[{"joinSource": {"join": {**join(), "metaData": meta}}}]),
                "sources[0].joinSource.join.metaData",
                id="an inner join",
            ),
        ],
    )
    def test_it_is_needed_where_a_table_is_named_after_it(
        self, silent: Callable[[Document], Document], field: str
    ) -> None:
        with pytest.raises(Rejected) as refused:
            conf_of(silent({"name": "t.s.x__1", "version": "1"}))
        (fault,) = refused.value.faults
        assert fault.field == f"{field}.outputNamespace" and "lacks this field" in fault.message


class TestSchedulesElsewhere:  # C10
    @pytest.mark.parametrize(
        ("told", "field"),
        [
            pytest.param(
                group_by(execution={"scheduleCron": "0 3 * * *"}),
                "metaData.executionInfo.scheduleCron",
                id="of early 2026",
            ),
            pytest.param(group_by(offlineSchedule="@daily"), "metaData.offlineSchedule", id="of the older dialect"),
        ],
    )
    def test_a_schedule_that_is_not_read_is_named_with_the_remedy(self, told: Document, field: str) -> None:
        (warning,) = plan_of(told).warnings
        assert warning.field == field and "is not read from there" in warning.message
        assert "offline_schedule" in warning.remedy

    @pytest.mark.parametrize(
        "told",
        [
            pytest.param(group_by(execution={"scheduleCron": "@never"}), id="off there too"),
            pytest.param(group_by(schedule="@daily", execution={"scheduleCron": "@daily"}), id="in both places"),
        ],
    )
    def test_what_is_off_there_or_stands_in_its_place_too_is_fine(self, told: Document) -> None:
        assert plan_of(told).warnings == ()


class TestRangesThatStartAfterTheyEnd:  # C16
    @pytest.mark.parametrize(
        "empty",
        [
            pytest.param(dependency("data.x", start="0d", end="5d"), id="offsets"),
            pytest.param(dependency("data.x", start_cut="2026-06-02", end_cut="2026-06-01"), id="cut-offs"),
        ],
    )
    def test_are_warned_of_since_nothing_is_waited_for(self, empty: Document) -> None:
        plan = plan_of(staging_query(dependencies=[empty]))
        assert waits_of(plan, "2026-06-10") == []
        (warning,) = plan.warnings
        assert warning.field == "tableDependencies[0]" and "data.x is not waited for" in warning.message

    @pytest.mark.parametrize(
        "one_partition",
        [
            pytest.param(dependency("data.x", start="5d", end="5d"), id="offsets"),
            pytest.param(dependency("data.x", start_cut="2026-06-01", end_cut="2026-06-01"), id="cut-offs"),
        ],
    )
    def test_a_range_of_one_partition_is_fine(self, one_partition: Document) -> None:
        assert plan_of(staging_query(dependencies=[one_partition])).warnings == ()
