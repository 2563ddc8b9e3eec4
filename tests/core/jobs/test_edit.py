"""Schedules written into job files: everything else in the file stays as it is (H19)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_chronon.core.jobs.document import ScheduleDocument
from airflow_chronon.core.jobs.edit import with_schedule, without_schedule
from tests.support.jobs import HEAD, job

HOURLY = ScheduleDocument(cron_expression="@hourly")
COMMENTED = """\
# the hourly ingest
version: 1   # bump me
runner: {kind: command, argv: ['true']}
schedule:
    # when
    cron_expression: '0 0 * ? * *'   # every hour
    start_time: 2026-01-01 00:00:00   # new year
    catchup: true # history

# the end
retries: 3
"""


def put(text: str, schedule: ScheduleDocument) -> str:
    return with_schedule(text, schedule, replacing=job(text).document.schedule)


class TestWriting:
    def test_a_file_without_a_schedule_gets_one_at_its_end(self) -> None:
        schedule = ScheduleDocument.model_validate(
            {"cron_expression": "0 0 * ? * *", "start_time": "2026-01-01T00:00:00Z", "catchup": True}
        )
        assert put(HEAD, schedule) == HEAD + (
            'schedule:\n  cron_expression: "0 0 * ? * *"\n  start_time: 2026-01-01T00:00:00Z\n  catchup: true\n'
        )

    def test_values_are_written_over_and_comments_stay(self) -> None:
        schedule = job(COMMENTED).document.schedule
        assert schedule is not None
        changed = schedule.model_copy(update={"catchup": False, "max_active_runs": 2})
        assert put(COMMENTED, changed) == COMMENTED.replace(
            "catchup: true # history\n", "catchup: false # history\n    max_active_runs: 2\n"
        )

    def test_the_same_schedule_changes_no_letter(self) -> None:
        schedule = job(COMMENTED).document.schedule
        assert schedule is not None and put(COMMENTED, schedule) == COMMENTED

    @pytest.mark.parametrize("newline", ["\n", "\r\n"])
    def test_lines_outside_the_schedule_stay_to_the_byte(self, newline: str) -> None:
        before = (
            "# head\nversion:   010   # as text\nrunner: {argv: [ 'true',\"x\" , 12:30 ,on]}\nenv:\n"
            "    A:  'on'  # quoted\n    B: \"a\n      b\"\n    C: >\n      folded\n\n      text\n\n"
        ).replace("\n", newline)
        section = "schedule:\n  # when\n  cron_expression: '@daily'\n".replace("\n", newline)
        after = "\n\n# tail\nretries:   3\n\n# end\n\n".replace("\n", newline)
        text = before + section + after
        assert put(text, HOURLY) == before + section.replace("'@daily'", '"@hourly"') + after
        assert without_schedule(text) == before + after

    def test_plain_values_of_the_schedule_are_written_as_they_were(self) -> None:
        section = (
            "schedule:\n  cron_expression: '@daily'\n  start_time: 20260101\n  end_time: 2026-01-02 00:00:00\n"
            "  skip_to_date: ~\n  max_catchup_runs: null\n  lookback_seconds:\n  enabled: on\n"
        )
        old = job(HEAD + section).document.schedule
        assert old is not None
        changed = old.model_copy(update={"cron_expression": "@hourly"})
        assert put(HEAD + section, changed) == HEAD + section.replace("'@daily'", '"@hourly"')

    @pytest.mark.parametrize(
        "text",
        [
            HEAD + "schedule: {cron_expression: '@daily', # why\n           catchup: false}\n",
            '{\n  "version": 1,\n  "runner": {"argv": ["x"]}\n}\n',
        ],
        ids=["a comment between braces", "JSON on lines of its own"],
    )
    def test_what_would_lose_a_comment_or_its_lines_comes_back_as_it_was(self, text: str) -> None:
        assert put(text, HOURLY) == text

    def test_taking_it_out_leaves_the_rest(self) -> None:
        assert without_schedule(COMMENTED) == COMMENTED[: COMMENTED.index("schedule:")] + "\n# the end\nretries: 3\n"

    def test_taking_out_what_is_not_there_changes_nothing(self) -> None:
        assert without_schedule(HEAD) == HEAD

    @pytest.mark.parametrize(
        "text",
        [
            HEAD,
            HEAD.rstrip("\n"),
            HEAD.replace("\n", "\r\n"),
            "\ufeff" + HEAD,
            "---\n" + HEAD,
            HEAD + "schedule:\n",
            HEAD + "schedule: # none yet\n",
            HEAD + "schedule: null\n",
            HEAD + "schedule: {cron_expression: '@daily'}\n",
            HEAD + "schedule: {cron_expression: '@daily',\n           catchup: false} # so\nretries: 1\n",
            HEAD + "schedule:\n  cron_expression: |-\n    @daily\nretries: 1\n",
            HEAD + "schedule:\n  cron_expression: >-\n    0 0\n    * * *",
            HEAD + "schedule:\n  'cron_expression': '@daily'\n",
            HEAD + "schedule:\n  cron_expression: '@daily'\n  start_time:\n  max_catchup_runs: # no cap\n",
            HEAD + "schedule: {start_time: , cron_expression: '@daily', max_catchup_runs: }\n",
            HEAD + "schedule:\n  <<: {cron_expression: '@daily'}\n  catchup: false\n",
            "schedule:\n  cron_expression: '@daily'\n" + HEAD,
            "  version: 1\n  runner: {argv: [x]}\n",
            "{version: 1, runner: {argv: [x]}}",
            "{schedule: {cron_expression: '@daily'}, version: 1, runner: {argv: [x]}}",
            "{version: 1, schedule: {cron_expression: '@daily'}, runner: {argv: [x]}}",
            '{"version": 1, "runner": {"argv": ["x"]}, "schedule": {"cron_expression": "@daily"}}',
            HEAD + "env: {NAME: 'Zoë 🚀'}\nschedule: {cron_expression: '@daily'}\n",
        ],
    )
    def test_every_way_to_write_a_file_can_be_edited(self, text: str) -> None:
        schedule = ScheduleDocument.model_validate(
            {"cron_expression": "0 30 6 ? * MON-FRI", "start_time": "2026-01-01T00:00:17Z", "max_catchup_runs": 3}
        )
        before, after = job(text), job(put(text, schedule))
        assert after.document.schedule == schedule
        assert {**after.text.raw, "schedule": None} == {**before.text.raw, "schedule": None}
        gone = job(without_schedule(put(text, schedule)))
        assert gone.document.schedule is None
        assert {**gone.text.raw, "schedule": None} == {**before.text.raw, "schedule": None}
        again = job(put(put(text, schedule), HOURLY))
        assert again.document.schedule == HOURLY  # a second schedule replaces the first

    @given(
        st.builds(
            ScheduleDocument.model_construct,
            cron_expression=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
            start_time=st.none() | st.integers(0, 4_000_000_000),
            lookback_seconds=st.none() | st.integers(-(2**63), 2**63 - 1),
            catchup=st.booleans(),
            max_active_runs=st.integers(1, 9),
            skip_to_date=st.none() | st.integers(0, 4_000_000_000),
        ),
        st.sampled_from([HEAD, COMMENTED, HEAD + "schedule: {cron_expression: x, enabled: false}"]),
    )
    def test_what_is_written_is_what_is_read(self, schedule: ScheduleDocument, text: str) -> None:
        assert job(put(text, schedule)).document.schedule == schedule
