"""Schedule texts of Chronon confs and what a grid makes of them (C1, C2, C6, C10)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from airflow_chronon.core.calendar.cron import Cron
from airflow_chronon.core.calendar.instants import DAY, Instant, duration_text
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.errors import ChrononError, Fault

_OFF = frozenset({"", "none", "null", "@never"})


class IllegalSchedule(ChrononError):
    """A schedule that breaks C1, C2 or C6."""


@dataclass(frozen=True)
class CronSchedule:
    """A legal Chronon schedule: daily-or-coarser, or evenly spaced over every day (C2)."""

    cron: Cron
    interval: int | None  #: seconds between fires when it fires more than once a day, else None
    written: str = field(default="", compare=False)  #: as the conf has it

    @property
    def text(self) -> str:
        """The five fields of the cron."""
        return self.cron.text

    @property
    def as_written(self) -> str:
        """How messages quote it: ``@daily`` where the conf says that."""
        return self.written or self.text

    def first_at_or_after(self, instant: Instant) -> Instant:
        return self.cron.first_at_or_after(instant)

    def last_before(self, instant: Instant) -> Instant:
        return self.cron.last_before(instant)


def normalised(text: str | None) -> str | None:
    """The schedule text stripped and lowercased; None when it is off (C1)."""
    plain = " ".join((text or "").lower().split())
    return None if plain in _OFF else plain


@lru_cache(maxsize=4096)
def parse_schedule(text: str | None) -> CronSchedule | None:
    """Read a schedule text; None means off. Raises :class:`IllegalSchedule` or ``IllegalCron`` (C1, C2)."""
    plain = normalised(text)
    if plain is None or text is None:
        return None
    if not text.isascii():  # some letters of other scripts become ASCII ones when their case is changed
        problem = f"schedule {text!r}: it holds other characters than those of a cron"
        raise IllegalSchedule(Fault("C1", "", problem, "use @daily, @never or five cron fields"))
    if plain == "@daily":
        plain = "0 0 * * *"
    if plain.startswith("@"):
        raise IllegalSchedule(
            Fault("C1", "", f"schedule {text!r}: the alias is not known", "use @daily, @never or five cron fields")
        )
    cron = Cron(plain)
    if len(cron.times) == 1:
        return CronSchedule(cron, None, text)
    if not cron.every_day:
        problem = f"schedule {text!r} fires {len(cron.times)} times a day but not every day"
        raise IllegalSchedule(Fault("C2", "", problem, "put * in the day-of-month, month and weekday fields"))
    gaps = {later - earlier for earlier, later in zip(cron.times, cron.times[1:], strict=False)}
    gaps.add(cron.times[0] + DAY - cron.times[-1])
    if len(gaps) > 1:
        shown = ", ".join(duration_text(gap) for gap in sorted(gaps))
        problem = f"schedule {text!r} leaves gaps of {shown} between its fires, midnight included"
        raise IllegalSchedule(Fault("C2", "", problem, "choose an interval that divides the day evenly"))
    return CronSchedule(cron, gaps.pop(), text)


def check_over_grid(schedule: CronSchedule, grid: PartitionGrid, *, written_by_compiler: bool = False) -> Fault | None:
    """What C6 has against an enabled schedule over a grid, or None.

    ``written_by_compiler``: the schedule is the ``@daily`` that the compiler gives an online conf without an offline one.
    """
    if schedule.interval is None and grid.interval < DAY:
        problem = f"schedule {schedule.as_written!r} is daily or coarser over partitions of {grid}, which is ambiguous"
        remedy = f"fire every {duration_text(grid.interval)}"
        if written_by_compiler:
            problem += "; the compiler wrote it, since the conf is online and has no offline schedule"
            remedy = "set a sub-daily schedule, or online_schedule='@never'"
        return Fault("C6", "", problem, remedy)
    if schedule.interval is not None and schedule.interval != grid.interval:
        problem = (
            f"schedule {schedule.as_written!r} fires every {duration_text(schedule.interval)} over partitions of {grid}"
        )
        return Fault("C6", "", problem, "make the cron interval and partition_interval equal")
    return None
