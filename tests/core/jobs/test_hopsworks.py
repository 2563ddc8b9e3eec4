"""Schedules of Hopsworks become job files (H1, H2, H6, H15)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_chronon.core.calendar.instants import iso
from airflow_chronon.core.jobs.hopsworks import import_schedule
from airflow_chronon.errors import Rejected
from tests.support.confs import at
from tests.support.jobs import plan_of

#: A schedule as the REST API returns it: camelCase, instants in epoch milliseconds.
WHOLE = {
    "id": 14,
    "href": "https://hopsworks.example/schedule/v2/14",
    "cronExpression": "0 0 * ? * * *",
    "startDateTime": at("2026-01-01") * 1000,
    "endDateTime": None,
    "enabled": True,
    "catchup": True,
    "maxActiveRuns": 2,
    "maxCatchupRuns": 24,
    "startTimeOffsetSeconds": 3600,
    "endTimeOffsetSeconds": None,
    "skipToDate": at("2026-02-01T12:00:30") * 1000,
    "nextExecutionDateTime": at("2026-06-03T11:00") * 1000,
}


def imported(**changes: Any) -> str:
    return import_schedule(json.dumps(WHOLE | changes)).text


def refused(text: str) -> list[tuple[str, str]]:
    with pytest.raises(Rejected) as error:
        import_schedule(text)
    return [(fault.rule, fault.field) for fault in error.value.faults]


class TestImport:
    def test_every_field_is_carried(self) -> None:
        plan = plan_of(imported())
        of, settings = plan.schedule, plan.settings
        assert of is not None and of.cron.text == "0 * * * *" and of.offset == 3600
        assert of.catch_up.start == at("2026-01-01") and of.catch_up.end is None
        assert of.catch_up.skip_to is not None and iso(of.catch_up.skip_to) == "2026-02-01T12:00:30Z"
        assert (of.catch_up.enabled, of.catch_up.max_runs, settings.max_active_runs) == (True, 24, 2)
        assert plan.job.document.legacy_start_time_arg  # H6

    def test_a_paused_schedule_stays_paused(self) -> None:  # H14
        plan = plan_of(imported(enabled=False))
        assert plan.schedule is not None and not plan.schedule.enabled

    def test_a_schedule_inside_its_job_is_found(self) -> None:
        assert import_schedule(json.dumps({"name": "a", "jobSchedule": WHOLE})).text == imported()

    def test_what_stands_beside_a_jobs_schedule_is_left_out_and_reported(self) -> None:  # H6
        whole = {"name": "a", "config": {"defaultArgs": "-x"}, "jobSchedule": WHOLE}
        (note,) = import_schedule(json.dumps(whole)).notes
        assert "left out: config, name" in str(note) and note.remedy
        assert import_schedule(json.dumps({"jobSchedule": WHOLE})).notes == ()

    def test_what_is_absent_takes_its_default(self) -> None:
        text = import_schedule('{"cronExpression": "0 0 0 * * ?"}').text
        assert text.endswith('schedule:\n  cron_expression: "0 0 0 * * ?"\n') and plan_of(text).schedule is not None

    def test_an_end_offset_is_left_out_and_reported(self) -> None:  # H2
        found = import_schedule(json.dumps(WHOLE | {"endTimeOffsetSeconds": -3600}))
        assert [(note.rule, note.field) for note in found.notes] == [("H2", "endTimeOffsetSeconds")]
        assert found.text == imported()

    def test_milliseconds_are_left_out_and_reported(self) -> None:  # H15
        found = import_schedule(json.dumps(WHOLE | {"startDateTime": WHOLE["startDateTime"] + 250}))  # type: ignore[operator]
        assert [note.field for note in found.notes] == ["startDateTime"] and found.text == imported()


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "rule", "field"),
        [
            ({"cronExpression": "0 0 0 L * ?"}, "H1", "cronExpression"),
            ({"cronExpression": None}, "H1", "cronExpression"),
            ({"cronExpression": 5}, "input", "cronExpression"),
            ({"startTimeOffsetSeconds": -60}, "H2", "startTimeOffsetSeconds"),
            ({"startTimeOffsetSeconds": "60"}, "input", "startTimeOffsetSeconds"),
            ({"startDateTime": None}, "H15", "catchup"),
            ({"startDateTime": "2026-01-01"}, "input", "startDateTime"),
            ({"startDateTime": 10**20}, "input", "startDateTime"),
            ({"maxActiveRuns": 0}, "input", "maxActiveRuns"),
            ({"maxActiveRuns": 3_000_000_000}, "input", "maxActiveRuns"),
            ({"maxCatchupRuns": 3_000_000_000}, "input", "maxCatchupRuns"),
            ({"catchup": "yes"}, "input", "catchup"),
            ({"retryPolicy": {"times": 3}}, "input", "retryPolicy"),
        ],
    )
    def test_the_field_that_cannot_be_carried_is_named(self, changes: dict[str, Any], rule: str, field: str) -> None:
        assert refused(json.dumps(WHOLE | changes)) == [(rule, field)]

    def test_what_is_reported_has_the_names_of_hopsworks(self) -> None:  # H15
        with pytest.raises(Rejected, match=r"catchup: catch-up needs to know .* Set startDateTime"):
            imported(startDateTime=None)

    def test_a_field_that_cannot_be_read_hides_no_other_and_is_reported_once(self) -> None:
        found = refused(json.dumps(WHOLE | {"cronExpression": 5, "startDateTime": "x", "startTimeOffsetSeconds": -1}))
        assert sorted(found) == [
            ("H2", "startTimeOffsetSeconds"),
            ("input", "cronExpression"),
            ("input", "startDateTime"),
        ]

    def test_an_unknown_field_hides_no_broken_rule(self) -> None:
        text = json.dumps({"cronExpression": "0 0 12 L * ?", "startTimeOffsetSeconds": -5, "catchup": True, "foo": 1})
        with pytest.raises(Rejected) as caught:
            import_schedule(text)
        fields = {fault.field.partition(".")[0] for fault in caught.value.faults}
        assert fields == {"cronExpression", "startTimeOffsetSeconds", "catchup", "foo"}

    def test_every_bad_field_is_reported_at_once(self) -> None:
        assert len(refused(json.dumps(WHOLE | {"a": 1, "catchup": 2, "maxActiveRuns": 0}))) == 3

    @pytest.mark.parametrize("text", ["", "{", "[]", "5", "null"])
    def test_what_is_no_schedule_is_refused(self, text: str) -> None:
        assert [rule for rule, _ in refused(text)] == ["input"]
