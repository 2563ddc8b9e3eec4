"""The write order: one task at a time writes a partition of a table, the earlier first, whichever DAGs they are of (C28).

Who wants to write draws a number, as in a bakery, and waits for everyone whose number is lower (Lamport's algorithm). Each task
writes down its own ticket and nobody else's, so that no lock is needed; and since a number is higher than all that could be
seen when it was drawn, no clock has a say. The order is total, so that two never wait for each other.

Someone who waits may lose the means to go on: his DAG is paused, or gone, or others hold the slots. Whoever is only waiting and has no
slot is therefore passed. For that, each says on his ticket that he is about to write, and then looks once more: either he
sees that the one passed is back, or that one sees what he has said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from airflow_chronon.core.calendar.instants import TimeWindow

#: States in which a work task that has begun may be writing.
BUSY_STATES = ("running", "deferred", "scheduled", "queued", "restarting", "up_for_reschedule")
_WITHOUT_A_SLOT = ("scheduled", "up_for_reschedule")  #: among these; a job elsewhere may be at work all the same
DRAWING = 0  #: the number of a ticket whose task is just looking for the highest

TaskKey: TypeAlias = tuple[str, str, str]  #: DAG, run and task


@dataclass(frozen=True)
class Ticket:
    """What a work task says of itself to all who may write the same: kept in the state of the task."""

    written: str  #: the table, or what else it writes
    window: TimeWindow  #: the partitions, by time: two confs may have cut one table differently
    attempt: int  #: the try that drew the number; another draws anew
    number: int = DRAWING
    is_first: bool = False  #: it writes, or is about to
    runner: str = ""  #: tells whether another task can ask after its job

    def overlaps(self, other: Ticket) -> bool:
        """Whether both write the same, in part or whole."""
        mine, its = self.window, other.window
        return self.written == other.written and mine.start < its.end and its.start < mine.end

    def is_of_same_work(self, other: Ticket) -> bool:
        """Whether they are of one try of one task over the same partitions."""
        return (self.written, self.window, self.attempt) == (other.written, other.window, other.attempt)

    def to_json(self) -> dict[str, Any]:
        """Inverse of :meth:`from_json`."""
        window = [self.window.start, self.window.end]
        named = {"written": self.written, "window": window, "attempt": self.attempt}
        return {**named, "number": self.number, "is_first": self.is_first, "runner": self.runner}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Ticket:
        window = TimeWindow(*data["window"])
        more = data.get("number", DRAWING), data.get("is_first", False), data.get("runner", "")
        return cls(data["written"], window, data["attempt"], *more)


@dataclass(frozen=True)
class Writer:
    """A work task that has begun, with its ticket."""

    task: TaskKey
    ticket: Ticket
    state: str = "running"

    @property
    def is_drawing(self) -> bool:
        """Whether it may yet get a lower number. One that draws and does not run has given up, and draws anew."""
        return self.ticket.number == DRAWING and self.state == "running"

    @property
    def is_passed(self) -> bool:
        """Whether it only waits, and cannot go on by itself."""
        return self.ticket.number == DRAWING or (self.state in _WITHOUT_A_SLOT and not self.ticket.is_first)

    def is_before(self, me: Writer) -> bool:
        """Whether ``me`` has to wait for it, if both write the same."""
        return self.is_drawing or self.ticket.is_first or (not self.is_passed and self.order < me.order)

    @property
    def order(self) -> tuple[int, TaskKey]:
        return self.ticket.number, self.task


def next_number(others: Iterable[Writer]) -> int:
    """The number to draw: higher than all."""
    return 1 + max((other.ticket.number for other in others), default=DRAWING)


def writers_before(me: Writer, others: Iterable[Writer]) -> tuple[Writer, ...]:
    """The writers that must finish, or draw, before ``me`` may write, the first in order first; empty when there are none."""
    rivals = (other for other in others if other.task != me.task and other.ticket.overlaps(me.ticket))
    return tuple(sorted((each for each in rivals if each.is_before(me)), key=lambda writer: writer.order))


def passed_by(me: Writer, others: Iterable[Writer]) -> bool:
    """Whether there is one before ``me`` in the order who cannot go on by himself."""
    return any(each.is_passed and each.ticket.overlaps(me.ticket) and each.ticket.number > DRAWING for each in others)


def lacking_a_slot(writers: Iterable[Writer]) -> frozenset[TaskKey]:
    """Those whose work is not at its end and that wait for a slot of their task again, whatever their partitions.

    Whoever waits for another holds such a slot, and one of these may need it.
    """
    return frozenset(writer.task for writer in writers if writer.state == "scheduled" and writer.ticket.is_first)
