"""A cron that was another one before: each fire of the past is that of the cron which held then (H20)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from airflow_chronon.core.calendar.cron import Cron
from airflow_chronon.core.calendar.instants import Instant


@dataclass(frozen=True)
class ChangedCron(Cron):
    """The present cron, and those before it. Its text is that of the present one."""

    present: Cron = field(repr=False)
    earlier: tuple[tuple[Instant, Cron], ...]  #: until when each held, oldest first: its fires are before that

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", self.present.times)
        object.__setattr__(self, "every_day", self.present.every_day)

    def first_at_or_after(self, instant: Instant) -> Instant:
        for until, cron in self.earlier:
            if instant < until:
                fire = cron.first_at_or_after(instant)
                if fire < until:
                    return fire
                instant = until
        return self.present.first_at_or_after(instant)

    def last_before(self, instant: Instant) -> Instant:
        cron = self.present
        for until, before in reversed(self.earlier):
            fire = cron.last_before(instant)
            if fire >= until and cron.fires_at(fire):
                return fire
            cron, instant = before, min(instant, until)
        return cron.last_before(instant)

    def boundary_at_or_after(self, instant: Instant) -> Instant:
        until, oldest = self.earlier[0]
        boundary, fire = oldest.boundary_at_or_after(instant), self.first_at_or_after(instant)
        return boundary if boundary < min(fire, until) else fire

    def back(self, fire: Instant, count: int, *, not_before: Instant) -> Instant:
        since = self.present.first_at_or_after(self.earlier[-1][0])
        if fire >= since:
            found = self.present.back(fire, count, not_before=max(since, not_before))
            if found > since or not_before >= since:
                return found
        while count and fire > not_before:  # over a change, step by step: it is seldom far away
            fire, count = self.last_before(fire), count - 1
        return max(fire, not_before)


def changed_cron(present: Cron, before: Iterable[tuple[Instant, Cron]]) -> Cron:
    """The present cron after those that held until some instants, oldest first; itself when it was never another."""
    earlier: list[tuple[Instant, Cron]] = []
    for until, cron in before:
        if earlier and earlier[-1][1] == cron:
            earlier.pop()
        earlier.append((until, cron))
    while earlier and earlier[-1][1] == present:
        earlier.pop()
    return ChangedCron(present.text, present, tuple(earlier)) if earlier else present
