"""A cron that was another one before (H20)."""

from __future__ import annotations

from random import Random

import pytest

from airflow_chronon.core.calendar.changed import ChangedCron, changed_cron
from airflow_chronon.core.calendar.cron import NEVER
from airflow_chronon.core.calendar.instants import DAY, HOUR, MINUTE, Instant
from airflow_chronon.core.calendar.quartz import read_cron
from tests.support.confs import at

T0 = at("2026-06-01")
CRONS = ("@hourly", "*/20 * * * *", "0 9 * * 1-5", "30 6 * * *", "0 0 0 ? * 2#1", "0 15 3 ? * * 2026", "7 */5 * * *")


def fires_of(pieces: list[tuple[Instant, str]], last: str) -> list[Instant]:
    """Every fire of twenty days, piece by piece."""
    found, since = [], T0
    for until, text in [*pieces, (T0 + 20 * DAY, last)]:
        cron, fire = read_cron(text), since - 1
        while (fire := cron.first_at_or_after(fire + 1)) < until:
            found.append(fire)
        since = until
    return found


@pytest.mark.parametrize("seed", range(40))
def test_each_fire_is_that_of_the_cron_which_held_then(seed: int) -> None:
    random = Random(seed)
    untils = sorted(random.sample(range(T0, T0 + 20 * DAY, MINUTE), random.randint(1, 3)))
    pieces = [(until, random.choice(CRONS)) for until in untils]
    present = random.choice(CRONS)
    cron = changed_cron(read_cron(present), [(until, read_cron(text)) for until, text in pieces])
    fires = fires_of(pieces, present)
    for _ in range(50):
        instant = random.randrange(T0, T0 + 20 * DAY)
        after, before = [f for f in fires if f >= instant], [f for f in fires if f < instant]
        assert not after or cron.first_at_or_after(instant) == after[0]
        assert not before or cron.last_before(instant) == before[-1]
    if fires:
        last, floor = random.randrange(len(fires)), random.randrange(len(fires))
        count = random.randrange(len(fires))
        floor = min(floor, last)
        assert cron.back(fires[last], count, not_before=fires[floor]) == fires[max(last - count, floor)]


def test_one_that_never_was_another_is_itself() -> None:
    hourly = read_cron("@hourly")
    assert changed_cron(hourly, []) is hourly
    assert changed_cron(hourly, [(T0, read_cron("0 * * * *"))]) is hourly


def test_a_cron_that_came_back_is_known_in_between() -> None:
    cron = changed_cron(read_cron("@hourly"), [(T0, read_cron("@hourly")), (T0 + DAY, read_cron("@daily"))])
    assert isinstance(cron, ChangedCron)
    assert cron.first_at_or_after(T0 + HOUR) == T0 + DAY and cron.last_before(T0) == T0 - HOUR


def test_years_that_are_over_were_before_the_present_cron() -> None:  # H1
    cron = changed_cron(read_cron("@daily"), [(T0, read_cron("0 0 0 1 1 ? 2026"))])
    assert cron.boundary_at_or_after(at("2024-06-01")) == at("2025-01-01")
    assert cron.first_at_or_after(at("2026-02-01")) == T0
    over = changed_cron(read_cron("0 0 0 1 1 ? 2026"), [(T0, read_cron("@daily"))])
    assert over.first_at_or_after(T0) == NEVER
