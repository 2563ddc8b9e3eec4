"""Work in a thread of its own: given up, it is in nobody's way, and it keeps no process from ending."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Generic, TypeVar

_Done = TypeVar("_Done")
_Key = TypeVar("_Key")


def in_own_thread(work: Callable[[], _Done], *, name: str) -> Future[_Done]:
    """Begin the work; what it returns or raises is the future's. Not in a pool that all share: a few that hang would take it."""
    done: Future[_Done] = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True, name=name).start()
    return done


@dataclass(frozen=True)
class Ended(Generic[_Key, _Done]):
    """A piece of work that has ended, or that was given up when the time was."""

    key: _Key
    seconds: float  #: since it began
    result: Future[_Done] | None  #: None: it was given up


@dataclass
class SideBySide(Generic[_Key, _Done]):
    """Pieces of work beside each other, each in a thread of its own.

    At most ``at_once`` are in the way of the next: one that has taken longer than ``patience`` seconds goes on, and makes room.
    So pieces that hang delay the others, and stop none. When ``seconds_left`` is at 0, what has not ended is given up.
    """

    following: Callable[
        [], tuple[_Key, Callable[[], _Done]] | None
    ]  #: the next piece; None: there is none to begin now
    at_once: int
    patience: float
    seconds_left: Callable[[], float]
    name: str = "chronon-work"
    _begun: dict[Future[_Done], tuple[_Key, float]] = field(default_factory=dict, init=False)

    def run(self) -> Iterator[Ended[_Key, _Done]]:
        """Each piece as it ends; those that were given up come last."""
        while True:
            self._begin()
            if not self._begun or self.seconds_left() <= 0:
                break
            done, _ = wait(self._begun, timeout=self._seconds_to_wait(), return_when=FIRST_COMPLETED)
            for each in done:
                key, since = self._begun.pop(each)
                yield Ended(key, time.monotonic() - since, each)
        for key, since in self._begun.values():
            yield Ended(key, time.monotonic() - since, None)

    def _begin(self) -> None:
        while len(self._in_the_way()) < self.at_once and (piece := self.following()) is not None:
            key, work = piece
            self._begun[in_own_thread(work, name=self.name)] = key, time.monotonic()

    def _in_the_way(self) -> list[float]:
        """When those began that the next piece waits for."""
        patient_since = time.monotonic() - self.patience
        return [since for _, since in self._begun.values() if since > patient_since]

    def _seconds_to_wait(self) -> float | None:
        waits = [since + self.patience - time.monotonic() for since in self._in_the_way()]
        soonest = min((*waits, self.seconds_left()))
        return None if soonest == float("inf") else max(0.0, soonest)
