"""Crons answer as croniter does (C1)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from croniter import croniter
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_chronon.core.calendar.cron import Cron, IllegalCron
from tests.support.confs import at


def numbers(low: int, high: int) -> st.SearchStrategy[str]:
    """One cron field of plain numbers: a value, a list, a range or a step, and lists of these, stars among them."""
    item = items(low, high)
    return st.one_of(item, st.lists(item, min_size=2, max_size=3).map(",".join))


def items(low: int, high: int) -> st.SearchStrategy[str]:
    value = st.integers(low, high)
    ordered = st.tuples(value, value).map(sorted)
    step = st.integers(1, high - low)
    return st.one_of(
        value.map(str),
        st.lists(value, min_size=2, max_size=4, unique=True).map(lambda some: ",".join(map(str, some))),
        ordered.map(lambda pair: f"{pair[0]}-{pair[1]}"),
        st.tuples(ordered, step).map(lambda p: f"{p[0][0]}-{p[0][1]}/{p[1]}"),
        step.map(lambda n: f"*/{n}"),
        st.just("*"),
    )


MINUTES, HOURS = numbers(0, 59), numbers(0, 23)
DAYS = st.one_of(
    st.just("*"), st.just("?"), numbers(1, 28), st.sampled_from(["L", "15W", "1W", "1,L", "29-31", "1-31", "*/2"])
)
MONTHS = st.one_of(st.just("*"), st.just("*"), numbers(1, 12), st.sampled_from(["jan", "JAN,JUN", "feb-apr", "1-12"]))
WEEKDAYS = st.one_of(
    st.just("*"),
    st.just("*"),
    numbers(0, 6),
    st.sampled_from(["mon", "MON-FRI", "sun,wed", "7", "mon#1", "5#3", "L5", "1-7", "0-6"]),
)
CRONS = st.tuples(MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS).map(" ".join)
INSTANTS = st.integers(at("2023-01-01"), at("2032-01-01"))


def cron_or_none(text: str) -> Cron | None:
    try:
        return Cron(text)
    except IllegalCron:
        return None


class TestAgainstCroniter:
    @given(CRONS, INSTANTS)
    @settings(max_examples=400)
    def test_the_next_and_the_previous_fire_are_croniters(self, text: str, instant: int) -> None:
        cron = cron_or_none(text)
        if cron is None:
            return
        start = datetime.fromtimestamp(instant, UTC)
        assert cron.last_before(instant) == croniter(text, start).get_prev(datetime).timestamp()
        following = croniter(text, start).get_next(datetime).timestamp()
        assert cron.first_at_or_after(instant + 1) == following
        assert cron.first_at_or_after(int(following)) == following

    @given(CRONS, INSTANTS)
    @settings(max_examples=100)
    def test_the_two_directions_agree(self, text: str, instant: int) -> None:
        cron = cron_or_none(text)
        if cron is None:
            return
        fire = cron.first_at_or_after(instant)
        assert cron.last_before(fire + 1) == fire
        assert cron.last_before(fire) < instant

    @pytest.mark.parametrize(
        ("text", "after", "fire"),
        [
            pytest.param(
                "0 6 1 * mon", "2026-06-01 06:01", "2026-06-08 06:00", id="both day fields restricted: either will do"
            ),
            pytest.param("0 0 L * *", "2026-02-02", "2026-02-28", id="the last day of the month"),
            pytest.param("0 0 15W * *", "2026-08-02", "2026-08-14", id="the weekday nearest to a Saturday"),
            pytest.param("0 6 * * mon#1", "2026-06-02", "2026-07-06 06:00", id="the first Monday"),
            pytest.param("0 0 29 2 *", "2026-01-01", "2028-02-29", id="leap days"),
            pytest.param("30 2 * jan,jun *", "2026-02-01", "2026-06-01 02:30", id="month names"),
            pytest.param("0,* 0 * * *", "2026-06-01 00:01", "2026-06-01 00:01", id="a star in a list is still a star"),
            pytest.param("0 0 * * 7", "2026-06-01", "2026-06-07", id="seven is Sunday"),
        ],
    )
    def test_what_the_odd_fields_mean(self, text: str, after: str, fire: str) -> None:
        assert Cron(text).first_at_or_after(at(after)) == at(fire)


class TestRefused:
    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("0 0 * * * *", "6 fields"),
            ("0 0 * ? * * *", "7 fields"),
            ("0 0 * *", "4 fields"),
            ("", "0 fields"),
            ("61 * * * *", "not a cron"),
            ("0 24 * * *", "not a cron"),
            ("0 0 0 * *", "not a cron"),
            ("0 0 * 13 *", "not a cron"),
            ("*/0 * * * *", "not a cron"),
            ("a b c d e", "not a cron"),
            ("? * * * *", "not a cron"),
            ("R * * * *", "R and H"),
            ("H * * * *", "R and H"),
            ("0 h(0-3) * * *", "R and H"),
            ("0 0 R/2 * *", "R and H"),
            ("0 0 31 2 *", "never fires"),
            ("0 0 30 2 *", "never fires"),
            ("0 0 31 4,6,9,11 *", "never fires"),
        ],
    )
    def test_the_message_names_the_text_and_the_reason(self, text: str, reason: str) -> None:
        with pytest.raises(IllegalCron) as refused:
            Cron(text)
        fault = refused.value.fault
        assert fault.rule == "C1" and repr(text) in fault.message and reason in fault.message and fault.remedy
