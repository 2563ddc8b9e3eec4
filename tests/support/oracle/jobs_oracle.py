"""A second opinion on job files (H1 to H15): every minute is looked at, and nothing is shared with the package.

A cron is asked minute by minute, in the words of its own dialect; the previous fire is found by walking back. Slow, and
good for a few days only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.oracle.oracle_time import Cron, Reject
from tests.support.quartz_reading import fires_at

SHORT = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
FURTHEST = 100 * 1440  # minutes that a walk back may take: crons here fire every quarter at least, their years aside


@dataclass(frozen=True)
class Run:
    fire: datetime
    logical_date: datetime
    start: datetime
    end: datetime

    def shown(self) -> dict[str, str]:
        named = {"fire": self.fire, "logical_date": self.logical_date, "start": self.start, "end": self.end}
        return {name: at.strftime("%Y-%m-%dT%H:%M:%SZ") for name, at in named.items()} | {
            "partition_key": self.logical_date.strftime("%Y-%m-%dT%H:%M:%SZ")
        }


class JobOracle:
    """The section ``schedule`` of a job file, read again. Raises ``Reject`` with the rule that it breaks."""

    def __init__(self, section: dict[str, Any]) -> None:
        text = section["cron_expression"].strip()
        text = SHORT.get(text.lower(), text)
        self.quartz = text if len(text.split()) > 5 else None
        self.unix = None if self.quartz else Cron(text, regular=False)
        if self.quartz:
            self.refuse_what_cannot_be_carried(self.quartz.upper().split())
        self.start, self.end, self.skip = (
            instant(section.get(key)) for key in ("start_time", "end_time", "skip_to_date")
        )
        self.offset, self.back = section.get("start_time_offset_seconds") or 0, section.get("lookback_seconds")
        self.catchup, self.cap = section.get("catchup", False), section.get("max_catchup_runs")
        self.on = section.get("enabled", True)
        if self.offset < 0:
            raise Reject("H2", "negative")
        if self.back is not None and (self.back <= 0 or self.offset):
            raise Reject("H3", "lookback")

    @staticmethod
    def refuse_what_cannot_be_carried(fields: list[str]) -> None:
        _, _, _, day, _, weekday, *year = fields
        is_odd = ("," in day and any(letter in day for letter in "LW")) or weekday.endswith(("#0", "#6"))
        if fields[0] != "0" or is_odd or year == ["1969"] or (day == "?") == (weekday == "?"):
            raise Reject("H1", "cannot be carried")

    def is_fire(self, at: datetime) -> bool:
        if self.quartz:
            return fires_at(self.quartz, at)
        assert self.unix is not None
        minute = int(at.timestamp()) // 60
        return self.unix.day(minute) and minute % 1440 in self.unix.times

    def fires(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Fires in ``[start, end)``: after the schedule's start, not after its end."""
        at = start.replace(second=0)
        while at < end:
            within = (self.start is None or at > self.start) and (self.end is None or at <= self.end)
            if self.on and at >= start and within and self.is_fire(at):
                yield at
            at += timedelta(minutes=1)

    def run(self, fire: datetime) -> Run:
        previous = self.before(fire)
        if self.start is not None and self.start > previous:
            previous = self.start
        if self.back is not None:
            return Run(fire, previous, fire - timedelta(seconds=self.back), fire)
        moved = previous - timedelta(seconds=self.offset)
        return Run(fire, previous, moved, moved + (fire - previous))

    def before(self, fire: datetime) -> datetime:
        return next(self.fires_before(fire), None) or next(self.without_years().fires_before(fire))

    def without_years(self) -> JobOracle:
        assert self.quartz is not None
        return JobOracle({"cron_expression": " ".join(self.quartz.split()[:6])})

    def fires_before(self, fire: datetime) -> Iterator[datetime]:
        return (at for back in range(1, FURTHEST) if self.is_fire(at := fire - timedelta(minutes=back)))

    def runs(self, start: datetime, end: datetime) -> list[Run]:
        return [self.run(fire) for fire in self.fires(start, end)]

    def created(self, last: datetime | None, now: datetime) -> list[Run]:
        """What is created at ``now`` when the last run fired at ``last`` (None: the schedule is new)."""
        if last is None and (not self.catchup or self.start is None):
            return []  # H8, H15: it begins when it is first seen
        since = self.start if last is None else last
        assert since is not None
        due = [run for run in self.runs(since, now + timedelta(seconds=1)) if last is None or run.fire > last]
        kept = [run for run in due if self.skip is None or run.logical_date >= self.skip]  # H11
        if not self.catchup:
            return kept[-1:]
        return kept if self.cap is None else kept[-self.cap :]  # H10


def instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC)
