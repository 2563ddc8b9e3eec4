"""Why partitions of a produced table are not there, as far as a snapshot of the deployment and the tasks of its runs tell.

A wait has no conf tree and no rights in Airflow. The snapshot that the reconciler keeps has every conf with its schedule and what it
reads; which tasks of a producer's run are unfinished is asked step by step: each walk names the runs that it wants to know of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from airflow_chronon.core.calendar.instants import Instant, iso
from airflow_chronon.core.confs.naming import legal_id
from airflow_chronon.core.overview.snapshot import ConfSnapshot
from airflow_chronon.core.partitions.labels import in_run_id
from airflow_chronon.core.runs.states import State
from airflow_chronon.core.runs.task_ids import GATE_PREFIX, LAST_TASK, READY_TASK, WAIT_PREFIX
from airflow_chronon.core.runs.why import Cause, CauseState, some_of
from airflow_chronon.core.schedules.partitioned import Run
from airflow_chronon.core.waits.dependencies import Wait, merged
from airflow_chronon.core.waits.outlook import SCHEDULED

DEEPEST = 6  #: confs that are followed one behind the other
MOST_CAUSES = 20  #: of one tree
MOST_STARTS = 3  #: partitions of one table, the newest, each of which is followed

#: The states of the tasks of a run, by task; None: Airflow has no such run.
Tasks = Mapping[str, str | None] | None
#: By DAG and run.
KnownTasks = Mapping[tuple[str, str], Tasks]

_OVER = ("success", "skipped", "failed", "upstream_failed", "removed")


@dataclass
class Upstream:
    """One walk from the missing partitions of a table to what they hang on."""

    confs: Mapping[str, ConfSnapshot]  #: by the table that each writes
    tasks: KnownTasks
    now: Instant
    unknown: set[tuple[str, str]] = field(default_factory=set)  #: the runs that nobody has been asked about yet
    _seen: set[tuple[str, Instant]] = field(default_factory=set)

    def causes(self, table: str, starts: Iterable[Instant], *, depth: int = 0) -> tuple[Cause, ...]:
        """Why these partitions are not there, the newest of them; nothing for a table that the snapshot does not know."""
        conf = self.confs.get(table.removesuffix("__derived"))
        if conf is None:
            return ()
        wanted = sorted(starts)
        found = [
            cause for start in wanted[-MOST_STARTS:] if (cause := self._cause(conf, start, depth=depth)) is not None
        ]
        if found and len(wanted) > MOST_STARTS:
            found[0] = replace(found[0], more=len(wanted) - MOST_STARTS)
        return tuple(found)

    def _cause(self, conf: ConfSnapshot, start: Instant, *, depth: int) -> Cause | None:
        if len(self._seen) >= MOST_CAUSES:
            return None
        schedule = conf.schedule
        run = schedule.covering_run(start)
        cause = Cause(conf.key, schedule.label(start), State.MISSING.value, dag_id=conf.dag_id)
        if (conf.table, start) in self._seen:
            return replace(cause, state=CauseState.SEEN_ABOVE.value, dag_id="")
        self._seen.add((conf.table, start))
        if not schedule.is_on or run is None:
            return replace(cause, state=CauseState.UNSCHEDULED.value, text="its schedule makes no run for it")
        if run.fire > self.now:
            return replace(cause, state=State.DUE.value, text=f"its run fires at {iso(run.fire)}")
        run_id = f"{SCHEDULED}{in_run_id(schedule.key_of(run))}"
        if (conf.dag_id, run_id) not in self.tasks:
            self.unknown.add((conf.dag_id, run_id))
            return replace(cause, text="what became of its run is not known")
        tasks = self.tasks[conf.dag_id, run_id]
        if tasks is None:
            return replace(cause, text="it has no scheduled run")
        return self._of_run(replace(cause, run_id=run_id), conf, run, tasks, depth=depth)

    def _of_run(
        self, cause: Cause, conf: ConfSnapshot, run: Run, tasks: Mapping[str, str | None], *, depth: int
    ) -> Cause:
        failed = sorted(task for task, state in tasks.items() if state == "failed")
        if failed:
            return replace(cause, state=State.FAILED.value, text=f"{some_of(failed)} failed")
        if tasks.get(LAST_TASK) == "success":
            return replace(cause, text="its run ended well, and it is not there")
        if tasks.get(LAST_TASK) == "skipped":
            return replace(cause, state=State.SKIPPED.value, text="its run was skipped")
        waits = [task for task, state in tasks.items() if task.startswith(WAIT_PREFIX) and state not in _OVER]
        if waits:
            because = tuple(self._waited_for(conf, run, set(waits), depth=depth + 1))
            return replace(
                cause, state=CauseState.WAITING.value, text=f"{some_of(sorted(waits))} not over", because=because
            )
        work = [
            f"{task} is {state}"
            for task, state in sorted(tasks.items())
            if state not in (None, *_OVER) and task not in (LAST_TASK, READY_TASK) and not task.startswith(GATE_PREFIX)
        ]
        return replace(cause, state=State.RUNNING.value, text=some_of(work) or "its work has not begun")

    def _waited_for(self, conf: ConfSnapshot, run: Run, waits: set[str], *, depth: int) -> Iterator[Cause]:
        """What the unfinished waits of a run need that was not there when the tables were last seen."""
        of = run.modes.get(conf.schedule.main_mode)
        if of is None:
            return
        grid = conf.schedule.grid
        needed = merged(wait for read in conf.reads for wait in read.waits(of.window.start, of.window.end, grid=grid))
        for wait in needed:
            name = f"{WAIT_PREFIX}{wait.table}"
            if legal_id(name, unique=(name,)) not in waits:
                continue
            writer = self.confs.get(wait.table.removesuffix("__derived"))
            starts = _starts(wait)
            if writer is not None and starts:
                landed = writer.landed
                lacking = [start for start in starts if landed is None or start not in landed]
                if lacking and depth < DEEPEST:
                    yield from self.causes(wait.table, lacking, depth=depth)
            else:
                label = wait.labels[-1] if wait.labels else ""
                yield Cause(wait.table, label, CauseState.EXTERNAL.value, more=max(0, len(wait.labels) - 1))


def _starts(wait: Wait) -> Sequence[Instant]:
    return [] if wait.spec is None else [wait.spec.format.decode(label) for label in wait.labels]
