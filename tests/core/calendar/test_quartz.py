"""Crons of jobs: Quartz, Unix and shorthands (H1)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_chronon.core.calendar.cron import NEVER, Cron, IllegalCron
from airflow_chronon.core.calendar.instants import from_datetime, to_datetime
from airflow_chronon.core.calendar.quartz import SHORTHANDS, read_cron
from tests.support.confs import at
from tests.support.quartz_reading import next_fires, random_expression


def fires(text: str, after: datetime, count: int) -> list[datetime]:
    cron, found, instant = read_cron(text), [], from_datetime(after)
    for _ in range(count):
        instant = cron.first_at_or_after(instant + 1)
        found.append(to_datetime(instant))
    return found


class TestQuartz:
    @pytest.mark.parametrize("seed", range(200))
    def test_a_generated_expression_fires_as_quartz_does(self, seed: int) -> None:  # H1
        random = Random(seed)
        text = random_expression(random)
        after = datetime(random.randint(2024, 2029), random.randint(1, 12), random.randint(1, 28), tzinfo=UTC)
        expected = list(next_fires(text, after, 12))
        assert fires(text, after, len(expected)) == expected, text
        if len(expected) < 12:
            last = expected[-1] if expected else after
            assert read_cron(text).first_at_or_after(from_datetime(last) + 1) == NEVER, text

    @pytest.mark.parametrize("seed", range(60))
    def test_stepping_back_is_stepping_forward_backwards(self, seed: int) -> None:  # H1
        random = Random(seed)
        cron, instant = read_cron(random_expression(random)), at("2026-01-01")
        found: list[int] = []
        while len(found) < 12 and (instant := cron.first_at_or_after(instant + 1)) != NEVER:
            found.append(instant)
        for earlier, later in pairwise(found):
            assert cron.last_before(later) == earlier
        if found:
            assert cron.back(found[-1], len(found) - 1, not_before=found[0]) == found[0]
            assert cron.back(found[-1], len(found) // 2, not_before=found[0]) == found[-1 - len(found) // 2]

    @pytest.mark.parametrize(
        ("quartz", "unix"),
        [
            pytest.param("0 0 * ? * * *", "0 * * * *", id="every hour, as the source document writes it"),
            pytest.param("0 0 0 ? * 1", "0 0 * * 0", id="1 is Sunday"),
            pytest.param("0 0 0 ? * 7", "0 0 * * 6", id="7 is Saturday"),
            pytest.param("0 30 6 ? * MON-FRI", "30 6 * * 1-5", id="names"),
            pytest.param("0 0 0 ? * FRI-MON", "0 0 * * 0,1,5,6", id="a range over the end of the week"),
            pytest.param("0 5/15 * * * ?", "5,20,35,50 * * * *", id="a step from a minute"),
            pytest.param("0 0 0 ? * 2/2", "0 0 * * 1,3,5", id="a step from a weekday ends on Saturday"),
            pytest.param("0 /20 22-1 * * ?", "0,20,40 0,1,22,23 * * *", id="hours over midnight"),
            pytest.param("0 0 4 1 JAN,jul ?", "0 4 1 1,7 *", id="months by name"),
            pytest.param("0 0 4 1-31 * ? *", "0 4 * * *", id="every day by number"),
        ],
    )
    def test_what_it_becomes(self, quartz: str, unix: str) -> None:
        assert read_cron(quartz) == Cron(unix)

    @pytest.mark.parametrize(
        ("text", "named"),
        [
            ("30 0 0 * * ?", "seconds '30'"),
            ("0 0 0 ? * \u017fun", "other characters"),  # a long s, whose capital is an S
            ("0 0 * * \u017fun", "other characters"),
            ("0 0 4 1 o\u212at ?", "other characters"),  # the sign of kelvin, whose small letter is a k
            ("* 0 0 * * ?", "seconds '*'"),
            ("0,30 0 0 * * ?", "seconds '0,30'"),
            ("0/30 * * * * ?", "seconds '0/30'"),
            ("0 0 0 1 * MON", "neither of day-of-month and weekday is ?"),
            ("0 0 0 * * *", "neither of day-of-month and weekday is ?"),
            ("0 0 0 ? * ?", "both of day-of-month and weekday is ?"),
            ("0 0 0 1,L * ?", "L in the day-of-month '1,L' does not stand alone"),
            ("0 0 0 L-3,5 * ?", "L in the day-of-month"),
            ("0 0 0 15W,L * ?", "W in the day-of-month"),
            ("0 0 0 1W-5W * ?", "W in the day-of-month"),
            ("0 0 0 L-3W * ?", "W in the day-of-month"),
            ("0 0 0 L-31 * ?", "lies in no month"),
            ("0 0 0 32W * ?", "day-of-month '32' is not within 1 to 31"),
            ("0 0 0 0W * ?", "day-of-month '0' is not within 1 to 31"),
            ("0 0 0 ? * MON,6L", "L in the weekday 'MON,6L' does not stand alone"),
            ("0 0 0 ? * 6#3,2", "# in the weekday"),
            ("0 0 0 ? * 6#0", "weekday '6#0' lies in no month"),
            ("0 0 0 ? * FRI#6", "weekday 'FRI#6' lies in no month"),
            ("0 0 0 ? * 8#1", "weekday '8' is not within 1 to 7"),
            ("0 0 0 ? * 0L", "weekday '0' is not within 1 to 7"),
            ("0 0 0 ? * 2W", "W in the weekday"),
            ("0 0 0 29 2 ? 2027", "never fires"),
            ("0 0 0 L-30 2 ?", "never fires"),
            ("0 0 0 1 1 ? 1969", "year '1969' is not within 1970 to 2099"),
            ("0 0 0 1 1 ? 2027-2100", "year '2100' is not within 1970 to 2099"),
            ("0 0 0 1 1 ? 2030-2027", "year '2030-2027' ends before it begins"),
            ("0 0 0 1 1 ? 2027/0", "step"),
            ("0 0 0 1 1 ? 2027/130", "step"),
            ("0 0 0 1 1 ? ?", "year '?' cannot be read"),
            ("0 0 0 1 1 ? 27", "year '27' is not within"),
            ("0 0 0 ? * 0", "weekday '0' is not within 1 to 7"),
            ("0 0 0 ? * 8", "weekday '8' is not within 1 to 7"),
            ("0 60 0 * * ?", "minute '60' is not within 0 to 59"),
            ("0 0 24 * * ?", "hour '24' is not within 0 to 23"),
            ("0 0 0 0 * ?", "day-of-month '0' is not within 1 to 31"),
            ("0 0 0 1 13 ?", "month '13' is not within 1 to 12"),
            ("0 0/60 * * * ?", "step"),
            ("0 0/0 * * * ?", "step"),
            ("0 0 0 ? * MONDAY", "weekday 'MONDAY' cannot be read"),
            ("0 ? 0 * * ?", "minute '?' cannot be read"),
            ("0 0-5-9 0 * * ?", "cannot be read"),
            ("0 ,5 0 * * ?", "cannot be read"),
            ("0 0 0 30 2 ?", "never fires"),
            ("0 0 0 H * ?", "cannot be read"),
        ],
    )
    def test_what_cannot_be_read_is_refused_by_name(self, text: str, named: str) -> None:  # H1
        with pytest.raises(IllegalCron) as refused:
            read_cron(text)
        fault = refused.value.fault
        assert fault.rule == "H1" and repr(text) in fault.message and named in fault.message and fault.remedy

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            pytest.param("0 0 0 L * ?", "2026-01-31 2026-02-28 2026-03-31", id="the last day"),
            pytest.param(
                "0 0 0 L-30 * ?", "2026-01-01 2026-03-01 2026-05-01", id="a month without the day is left out"
            ),
            pytest.param("0 0 0 1W * ?", "2026-01-01 2026-02-02 2026-03-02", id="Sunday the first: the Monday after"),
            pytest.param("0 0 0 31W * ?", "2026-01-30 2026-03-31 2026-05-29", id="no 31st, no fire"),
            pytest.param("0 0 0 LW * ?", "2026-01-30 2026-02-27 2026-03-31", id="the last working day"),
            pytest.param("0 0 0 ? * L", "2026-01-03 2026-01-10 2026-01-17", id="every Saturday"),
            pytest.param("0 0 0 ? * 6L", "2026-01-30 2026-02-27 2026-03-27", id="the last Friday"),
            pytest.param("0 0 0 ? * mon#3", "2026-01-19 2026-02-16 2026-03-16", id="the third Monday"),
            pytest.param("0 0 0 ? * 1#5", "2026-03-29 2026-05-31 2026-08-30", id="only months with five Sundays"),
            pytest.param("0 0 0 1 1 ? 2028,2030/30", "2028-01-01 2030-01-01 2060-01-01", id="years"),
        ],
    )
    def test_days_that_five_fields_cannot_say(self, text: str, expected: str) -> None:  # H1
        found = fires(text, datetime(2026, 1, 1, tzinfo=UTC) - timedelta(minutes=1), 3)
        assert " ".join(f"{each:%Y-%m-%d}" for each in found) == expected

    def test_after_the_last_year_there_is_no_fire(self) -> None:  # H1
        cron = read_cron("0 0 0 1 1 ? 2027")
        assert cron.first_at_or_after(at("2027-01-01")) == at("2027-01-01")
        assert cron.first_at_or_after(at("2027-01-01") + 1) == NEVER
        assert cron.last_before(at("2030-01-01")) == at("2027-01-01")

    def test_the_fire_before_the_first_is_the_one_without_years(self) -> None:  # H1
        cron = read_cron("0 0 0 L * ? 2027")
        assert cron.last_before(at("2027-01-31")) == at("2026-12-31")
        assert not cron.fires_at(at("2026-12-31"))

    @given(st.text(alphabet="0123456789*?/,-LW#SUNMOR @", max_size=30))
    def test_any_text_is_a_cron_or_one_fault(self, text: str) -> None:
        try:
            assert read_cron(text).first_at_or_after(at("2026-01-01")) >= at("2026-01-01")
        except IllegalCron as error:
            assert error.fault.rule == "H1"  # noqa: PT017


class TestOtherSpellings:
    @pytest.mark.parametrize(
        ("text", "first"),
        [
            ("@hourly", "2026-01-01T01:00:00"),
            ("@daily", "2026-01-02T00:00:00"),
            ("@midnight", "2026-01-02T00:00:00"),
            ("@weekly", "2026-01-04T00:00:00"),
            ("@monthly", "2026-02-01T00:00:00"),
            ("@yearly", "2027-01-01T00:00:00"),
            ("@annually", "2027-01-01T00:00:00"),
            (" @Hourly ", "2026-01-01T01:00:00"),
        ],
    )
    def test_shorthands(self, text: str, first: str) -> None:  # H1
        assert read_cron(text).first_at_or_after(at("2026-01-01") + 1) == at(first)
        assert text.strip().lower() in SHORTHANDS

    def test_five_fields_are_unix_cron_with_its_own_weekdays(self) -> None:  # H1
        monday = at("2026-06-01")
        assert read_cron("0 0 * * 1").first_at_or_after(monday - 1) == monday
        either = read_cron("0 0 3 * MON")  # both restricted: either day, as in C2
        assert [either.first_at_or_after(monday), either.first_at_or_after(monday + 1)] == [monday, at("2026-06-03")]

    @pytest.mark.parametrize(
        "text", ["", "@never", "@reboot", "* * * *", "0 0 0 * * ? * *", "0 0 31 2 *", "1 2 3 4 x", "R * * * *"]
    )
    def test_other_texts_are_refused(self, text: str) -> None:
        with pytest.raises(IllegalCron) as refused:
            read_cron(text)
        assert refused.value.fault.rule == "H1"


@given(
    st.sampled_from(["0 * * * *", "*/7 3,9 * * *", "0 4 1 * *", "15,45 6 * * 1-5"]),
    st.integers(0, 500),
    st.integers(0, 500),
)
def test_counting_fires_back_is_stepping_back(text: str, count: int, floor: int) -> None:
    cron = Cron(text)
    fire = cron.first_at_or_after(at("2026-06-01"))
    steps = [fire]
    for _ in range(max(count, floor)):
        steps.append(cron.last_before(steps[-1]))
    assert cron.back(fire, count, not_before=steps[floor]) == steps[min(count, floor)]
