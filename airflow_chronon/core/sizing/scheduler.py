"""A simulation of Airflow's scheduler loop: what runs that wait cost it, and how long one that has become ready waits for its turn.

Airflow looks, in each loop, at so many running runs, those first that it has not seen for longest, and sleeps after a loop in which it had
nothing to do. One that has something to do stands in the same queue as those that wait.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from airflow_chronon.core.sizing.figures import FIGURES, Figures

#: Seconds for which a run is looked at in every loop after a task of it has changed: the change may be committed by another process
#: later than the time that it carries.
STILL_CHANGING = 10
#: Seconds; however quiet it is, a run is looked at so often: a new version of its DAG changes none of its tasks.
AT_LEAST_EVERY = 300


@dataclass(frozen=True, kw_only=True)
class Scheduler:
    """How a scheduler is set up."""

    runs_per_loop: int  #: ``[scheduler] max_dagruns_per_loop_to_schedule``
    passes_over: bool  #: ``[chronon] pass_over_waiting_runs``
    is_versioned: bool = False  #: DAGs come from a bundle with versions, such as Git's
    idle_sleep: float = 1.0  #: ``[scheduler] scheduler_idle_sleep_time``, in seconds

    def __post_init__(self) -> None:
        assert self.runs_per_loop > 0, self.runs_per_loop
        assert self.idle_sleep >= 0, self.idle_sleep


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """What a simulation showed."""

    cores: float  #: processor seconds per second
    middle: float  #: seconds from a wait's end to the look that follows it, the middle of all
    longest: float
    replays_starve: (
        bool  #: Airflow 3.3 looks at its own backfills only when fewer other runs than a loop takes are there
    )


def simulate(
    scheduler: Scheduler,
    *,
    waiting: int,
    ends_a_minute: float = 20.0,
    seconds: float = 600.0,
    figures: Figures = FIGURES,
) -> Simulated:
    """``waiting`` runs at once, of which ``ends_a_minute`` waits end, evenly; each ends a run, and the next one waits in its place.

    What a run does between its wait and its end is not simulated but for the loops in which the scheduler does not sleep.
    """
    look = figures.look(waiting, is_versioned=scheduler.is_versioned)
    queue, ready, changed = deque(range(waiting)), dict[int, float](), deque[float]()
    now = busy = before = 0.0
    ended, late = 0, list[float]()
    while now < seconds:
        while waiting and (at := (ended + 0.5) * 60 / ends_a_minute) <= now:
            ready.setdefault(ended * _STRIDE % waiting, at)
            changed += [at, at]  # the run, and the one that waits in its place
            ended += 1
        quiet = 0.0
        if scheduler.passes_over:
            seen = list(ready)[: scheduler.runs_per_loop]
            while changed and changed[0] < now - STILL_CHANGING:
                changed.popleft()
            others = max(0, len(changed) - len(seen)) + waiting * (now - before) / AT_LEAST_EVERY
            quiet = min(others, scheduler.runs_per_loop - len(seen))
        else:
            seen = [queue.popleft() for _ in range(min(scheduler.runs_per_loop, waiting))]
            queue.extend(seen)
        before = now
        worked = figures.loop + look * (len(seen) + quiet)
        found = [now + worked - ready.pop(run) for run in seen if run in ready]
        late += found
        busy += worked
        now += worked + (0.0 if found else scheduler.idle_sleep)
    late.sort()
    starve = waiting >= scheduler.runs_per_loop and not scheduler.passes_over
    middle, longest = (late[len(late) // 2], late[-1]) if late else (0.0, 0.0)
    return Simulated(cores=busy / now, middle=middle, longest=longest, replays_starve=starve)


_STRIDE = 7919  #: a prime: the runs whose waits end lie anywhere in the queue
