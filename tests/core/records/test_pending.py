"""Replaying what was missed: exactly which partitions (H10, H11, H13; C9)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from airflow_chronon.core.calendar.instants import HOUR, MINUTE, TimeWindow
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.records.history import record_after
from airflow_chronon.core.records.manifest import manifest_of
from airflow_chronon.core.records.pending import pending_ranges
from airflow_chronon.core.records.record import DeploymentRecord, PendingBackfill
from airflow_chronon.core.runs.states import KnownRun
from airflow_chronon.core.settings.model import Settings
from tests.support.confs import Document, at, events, group_by, plan_of, staging_query
from tests.support.schedules import schedule_of

THREE_HOURS = group_by(
    "t.g.x__1", sources=[events("data.e", "3h", offset="1h")], schedule="15 1-22/3 * * *", offset="1h"
)
WEEKLY = staging_query("t.s.w__1", schedule="0 6 * * MON")
NOW = at("2026-06-02 01:30")  # a Tuesday


def settings(**more: object) -> Settings:
    return Settings.model_validate({"catchup": True, "start_date": "2026-06-01T01:00Z", **more})


def plan(document: Document, **more: object) -> ConfPlan:
    return plan_of(document, settings=settings(**more))


def flipped(document: Document, **more: object) -> DeploymentRecord:
    """The entry of a conf whose catch-up was just switched on."""
    before = plan_of(document, settings=Settings.model_validate({"start_date": "2026-06-01T01:00Z"}))
    after = plan(document, **more)
    known = record_after(before, manifest_of(before), None, now=NOW - 1000)
    return record_after(after, manifest_of(after), known, now=NOW)


def ran(of: ConfPlan, *labels: str, is_scheduled: bool = True) -> list[KnownRun]:
    starts = [of.spec.start_of(label) for label in labels]
    return [
        KnownRun(label, "failed", is_scheduled, of.schedule.partition(start))
        for label, start in zip(labels, starts, strict=True)
    ]


def pending_labels(of: ConfPlan, past: list[KnownRun]) -> list[tuple[str, ...]]:
    _, label_ranges = pending_ranges(PendingBackfill(NOW), of.schedule, past)
    return [label_range.labels for label_range in label_ranges]


def labels(*hours: str) -> tuple[str, ...]:
    return tuple(f"2026-06-{hour}" for hour in hours)


class TestThreeHoursAtOne:
    def test_everything_since_the_start_that_has_no_run(self) -> None:
        of = plan(THREE_HOURS)
        past = ran(of, "2026-06-01-07-00", "2026-06-01-19-00")
        assert pending_labels(of, past) == [labels("01-01-00", "01-04-00"), labels("01-10-00", "01-13-00", "01-16-00")]

    def test_never_a_partition_that_has_a_run_whatever_became_of_it(self) -> None:
        of = plan(THREE_HOURS)
        past = ran(of, "2026-06-01-10-00") + ran(of, "2026-06-01-04-00", is_scheduled=False)
        assert pending_labels(of, past) == [labels("01-01-00"), labels("01-07-00")]

    def test_a_run_over_a_range_covers_all_of_it(self) -> None:
        of = plan(THREE_HOURS)
        wide = KnownRun("m", "success", False, TimeWindow(at("2026-06-01 01:00"), at("2026-06-01 07:00")))
        assert pending_labels(of, [wide, *ran(of, "2026-06-01-10-00")]) == [labels("01-07-00")]

    def test_the_cap_keeps_the_newest_of_what_was_missed(self) -> None:  # H10
        of = plan(THREE_HOURS, max_catchup_runs=2)
        past = ran(of, "2026-06-01-13-00", "2026-06-01-19-00", "2026-06-01-22-00")
        assert pending_labels(of, past) == [labels("01-10-00"), labels("01-16-00")]

    def test_what_the_timetable_has_yet_to_run_counts_for_the_cap(self) -> None:  # H10
        of = plan(THREE_HOURS, max_catchup_runs=2)
        assert pending_labels(of, ran(of, "2026-06-01-13-00", "2026-06-01-19-00")) == [labels("01-16-00")]

    def test_the_cap_holds_when_the_first_run_of_all_comes_after_the_flip(self) -> None:  # H10
        of = plan(THREE_HOURS, max_catchup_runs=2)
        pending, label_ranges = pending_ranges(PendingBackfill(NOW), of.schedule, [])
        assert pending is not None and not label_ranges
        pending, label_ranges = pending_ranges(
            pending, of.schedule, ran(of, "2026-06-01-19-00")
        )  # the first that the timetable keeps
        assert pending is None and not label_ranges

    def test_the_skip_date_comes_before_the_cap(self) -> None:  # H11
        of = plan(THREE_HOURS, max_catchup_runs=3, skip_to_date="2026-06-01T13:00Z")
        past = ran(of, "2026-06-01-19-00", "2026-06-01-22-00")
        assert pending_labels(of, past) == [labels("01-13-00", "01-16-00")]

    def test_what_comes_after_the_newest_scheduled_run_is_the_timetables(self) -> None:
        of = plan(THREE_HOURS)
        assert pending_labels(of, ran(of, "2026-06-01-04-00")) == [labels("01-01-00")]

    def test_a_schedule_that_never_ran_has_nothing_pending_since_catch_up_makes_its_runs(self) -> None:
        assert pending_labels(plan(THREE_HOURS), []) == []

    def test_the_cap_holds_however_many_reconciles_it_takes(self) -> None:
        of = plan(THREE_HOURS, max_catchup_runs=3)
        past = ran(of, "2026-06-01-13-00", "2026-06-01-19-00", "2026-06-01-22-00")
        pending: PendingBackfill | None = PendingBackfill(NOW)
        replayed: list[str] = []
        while pending is not None:
            pending, label_ranges = pending_ranges(pending, of.schedule, past)
            for label_range in label_ranges[:1]:
                replayed += label_range.labels
                past += ran(of, *label_range.labels, is_scheduled=False)
        assert replayed == [*labels("01-07-00", "01-10-00"), *labels("01-16-00")]


class TestWeekly:
    def test_a_missed_fire_is_replayed_partition_by_partition(self) -> None:  # C9
        of = plan(WEEKLY, start_date="2026-05-18")
        past = [KnownRun("s", "success", True, TimeWindow(at("2026-05-25"), at("2026-06-01")))]
        assert pending_labels(of, past) == [tuple(f"2026-05-{day}" for day in range(18, 25))]

    def test_a_missed_fire_of_which_only_some_partitions_ran_is_missed_still(self) -> None:  # C28
        of = plan(WEEKLY, start_date="2026-05-18")
        past = [KnownRun("s", "success", True, TimeWindow(at("2026-05-25"), at("2026-06-01")))]
        past += ran(of, "2026-05-24", "2026-05-20", is_scheduled=False)
        assert pending_labels(of, past) == [
            ("2026-05-18", "2026-05-19"),
            ("2026-05-21", "2026-05-22", "2026-05-23"),
        ]

    def test_the_cap_counts_fires(self) -> None:
        of = plan(WEEKLY, start_date="2026-05-01", max_catchup_runs=1)
        past = [KnownRun("s", "success", True, TimeWindow(at("2026-05-25"), at("2026-06-01")))]
        assert pending_labels(of, past) == [tuple(f"2026-05-{day}" for day in range(18, 25))]

    def test_the_first_fire_is_cut_at_the_start(self) -> None:
        of = plan(WEEKLY, start_date="2026-05-22")
        past = [KnownRun("s", "success", True, TimeWindow(at("2026-05-25"), at("2026-06-01")))]
        assert pending_labels(of, past) == [("2026-05-22", "2026-05-23", "2026-05-24")]


class TestWhenSomethingIsPending:
    def test_a_flip_to_catch_up(self) -> None:
        assert flipped(THREE_HOURS).pending == PendingBackfill(NOW)

    def test_a_start_moved_back(self) -> None:
        known = flipped(THREE_HOURS)
        after = plan(THREE_HOURS, start_date="2026-05-01")
        assert record_after(
            after, manifest_of(after), replace(known, pending=None), now=NOW + 5
        ).pending == PendingBackfill(NOW + 5)

    def test_not_a_new_conf_whose_timetable_catches_up_itself(self) -> None:
        of = plan(THREE_HOURS)
        assert record_after(of, manifest_of(of), None, now=NOW).pending is None

    def test_not_a_conf_whose_schedule_was_off_until_now(self) -> None:  # H10: its timetable does it all
        off, on = plan(THREE_HOURS, enabled=False, catchup=False), plan(THREE_HOURS, max_catchup_runs=3)
        known = record_after(off, manifest_of(off), None, now=NOW - 1000)
        assert record_after(on, manifest_of(on), known, now=NOW).pending is None

    def test_a_flip_in_the_very_second_in_which_the_conf_was_first_seen(self) -> None:  # H13
        before = plan_of(THREE_HOURS, settings=Settings.model_validate({"start_date": "2026-06-01T01:00Z"}))
        known, of = record_after(before, manifest_of(before), None, now=NOW), plan(THREE_HOURS)
        assert record_after(of, manifest_of(of), known, now=NOW).pending == PendingBackfill(NOW)

    def test_not_a_flip_back_or_a_changed_cap(self) -> None:
        known = flipped(THREE_HOURS)
        off = plan_of(THREE_HOURS, settings=Settings.model_validate({"start_date": "2026-06-01T01:00Z"}))
        assert record_after(off, manifest_of(off), known, now=NOW + 5).pending is None
        capped = plan(THREE_HOURS, max_catchup_runs=9)
        assert record_after(capped, manifest_of(capped), replace(known, pending=None), now=NOW + 5).pending is None

    def test_revisions_tell_what_held_when(self) -> None:  # H20
        record = flipped(THREE_HOURS)
        assert [(each.since, each.schedule.catch_up.enabled) for each in record.revisions] == [
            (NOW - 1000, False),
            (NOW, True),
        ]

    def test_a_record_survives_its_json(self) -> None:
        entry = flipped(THREE_HOURS, max_catchup_runs=4, skip_to_date="2026-06-01")
        assert DeploymentRecord.from_json(entry.to_json(), dag_id=entry.dag_id) == entry


@given(
    done=st.sets(st.integers(0, 40)),
    cap=st.none() | st.integers(1, 60),
    newest=st.integers(1, 40),
)
def test_replaying_what_is_pending_leaves_no_hole_within_the_cap(done: set[int], cap: int | None, newest: int) -> None:
    hourly = plan_of(
        staging_query("t.s.h__1", schedule="0 * * * *", interval="1h"),
        settings=settings(max_catchup_runs=cap, start_date="2026-06-01"),
    )
    start = at("2026-06-01")

    def run(number: int, *, is_scheduled: bool) -> KnownRun:
        at_hour = start + number * HOUR
        return KnownRun(str(number), "success", is_scheduled, TimeWindow(at_hour, at_hour + HOUR))

    past = [run(newest, is_scheduled=True), *(run(number, is_scheduled=False) for number in done)]
    _, label_ranges = pending_ranges(PendingBackfill(start + 48 * HOUR), hourly.schedule, past)
    replayed = [(first - start) // HOUR for each in label_ranges for first in range(each.first, each.last + 1, HOUR)]
    missed = [number for number in range(48) if number not in {newest, *done}]
    kept = missed if cap is None else missed[-cap:]
    assert replayed == [number for number in kept if number < newest]
    assert [key for each in label_ranges for key in each.labels] == [
        hourly.spec.label(start + n * HOUR) for n in replayed
    ]


class TestHalfACenturyOfMinutes:
    """A typo in a start date makes 29 million runs due: the reconciler, which is everybody's, works out a part of them (S7)."""

    @staticmethod
    def due(max_runs: int | None) -> tuple[PendingBackfill | None, list[int]]:
        minutes = schedule_of("* * * * *", MINUTE, enabled=True, start=0, max_runs=max_runs)
        newest = minutes.last_run(NOW)
        assert newest is not None
        past = [KnownRun("newest", "success", True, minutes.partition(newest.end - MINUTE))]
        pending, ranges = pending_ranges(PendingBackfill(NOW), minutes, past)
        return pending, [minutes.spec.start_of(label) for each in ranges for label in each.labels]

    def test_the_oldest_come_first_and_the_rest_stays_pending(self) -> None:
        pending, starts = self.due(None)
        assert starts == list(range(0, 50_000 * MINUTE, MINUTE))
        assert pending is not None and pending.first == 0

    def test_a_cap_is_reached_from_the_newest_without_looking_at_all_others(self) -> None:  # H10
        pending, starts = self.due(3)
        newest = NOW - 2 * MINUTE  # the one that has run is newer
        assert starts == [newest - 2 * MINUTE, newest - MINUTE, newest]
        assert pending is not None and pending.first == starts[0]
