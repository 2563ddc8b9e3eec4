"""Why a partition is not there: what it hangs on, followed through its producers to the root, and when it should land.

What Airflow, catalogs and records say comes in through :class:`WhyFacts`. One partition is one :class:`Cause`, and what it
waits for are the causes below it; a cause without any below is a root.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from shlex import quote
from typing import Any, Protocol

from airflow_chronon.core.calendar.instants import Instant, iso
from airflow_chronon.core.confs.conf import output_table
from airflow_chronon.core.confs.naming import legal_id
from airflow_chronon.core.confs.plan import Plan, RejectedConf, Verdict
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.runs.replay_order import read_order
from airflow_chronon.core.runs.stale import read_windows
from airflow_chronon.core.runs.states import KnownRun, PartitionRow, State
from airflow_chronon.core.runs.task_ids import GATE_PREFIX, LAST_TASK, WAIT_PREFIX
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.waits.dependencies import Wait

DEEPEST = 50  #: confs that are followed one behind the other
MOST_CAUSES = 200  #: of one answer
MOST_JUDGED = 5_000  #: partitions that are not shown, and that are judged for an estimate
_ENDED = ("success", "skipped", "failed", "upstream_failed", "removed")
_WORKING = ("running", "restarting")
_AT_WORK = (*_WORKING, "deferred")


#: States of a partition whose run of a replay has not done it.
_NOT_REBUILT = frozenset((State.RUNNING, State.QUEUED, State.STRANDED, State.FAILED))


class CauseState(Enum):
    """States of causes beside those of :class:`airflow_chronon.core.runs.states.State`; the value is how people read it."""

    WAITING = "waiting"  #: its run waits for its inputs
    RETRYING = "retrying"  #: a try failed, and another one follows
    TURN = "waits for its turn"
    EXTERNAL = "not landed"  #: a table that nobody in this tree writes
    UNREADABLE = "cannot be told"  #: its catalog does not answer, or can never hold what is waited for
    REJECTED = "bad conf"
    ELSEWHERE = "not deployed"
    UNSCHEDULED = "unscheduled"
    NO_DAG = "no DAG"
    SEEN_ABOVE = "see above"


@dataclass(frozen=True)
class Cause:
    """One partition that is not there, or several of one table that hang on the same; with what each of them hangs on."""

    of: str  #: a conf, as ``type/name``, or a table
    label: str
    state: str  #: the value of a :class:`State` or a :class:`CauseState`
    more: int = 0  #: how many further labels there are for which the same holds
    text: str = ""  #: one sentence
    remedy: str = ""  #: what to press: mostly a command
    dag_id: str = ""
    run_id: str = ""
    log: tuple[str, ...] = ()  #: the last lines of the task that failed
    expected: Instant | None = None  #: when it should land; None: nobody knows, or it never will by itself
    because: tuple[Cause, ...] = ()

    @property
    def roots(self) -> tuple[Cause, ...]:
        """The causes that hang on nothing else, in the order of the tree."""
        return tuple(root for each in self.because for root in each.roots) if self.because else (self,)

    @property
    def shown(self) -> str:
        """What it is about, in words."""
        more = f" and {self.more} more" if self.more else ""
        return f"{self.of} {self.label}{more}".rstrip()

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"of": self.of, "label": self.label, "state": self.state}
        texts = {"text": self.text, "remedy": self.remedy, "dag_id": self.dag_id, "run_id": self.run_id}
        found |= {name: text for name, text in texts.items() if text}
        if self.more:
            found["more_labels"] = self.more
        if self.log:
            found["log"] = list(self.log)
        found["expected"] = None if self.expected is None else iso(self.expected)
        return found | ({"because": [each.as_json() for each in self.because]} if self.because else {})


@dataclass(frozen=True)
class TaskFact:
    """One task of a run, as Airflow has it."""

    task_id: str
    state: str | None
    try_number: int = 0
    start: Instant | None = None
    end: Instant | None = None


@dataclass(frozen=True)
class Unmet:
    """What a wait still lacks: labels of a table, or something else in words."""

    labels: tuple[str, ...] = ()
    newest: str = ""  #: the newest label that has landed
    text: str = ""
    is_unreadable: bool = False  #: the catalog does not tell


@dataclass(frozen=True)
class PartitionFact:
    """What became of one partition, and the run that is to write it."""

    row: PartitionRow
    run: KnownRun | None = None


@dataclass(frozen=True)
class TableConf:
    """A conf that writes a table, with the verdict on it and the DAG that is its own."""

    dag_id: str
    verdict: Verdict


class WhyFacts(Protocol):
    """What is known beside the confs. Airflow's part may be unknown; then there are no tasks, durations and lines."""

    @property
    def now(self) -> Instant: ...

    def writers(self, reader: ConfPlan, table: str) -> Sequence[TableConf]:
        """The confs of the tree that write a table."""

    def partitions(self, plan: Plan, table: str, starts: Sequence[Instant]) -> Sequence[PartitionFact]:
        """What became of some partitions of a table that a plan writes, in the order given."""

    def unmet(self, reader: ConfPlan, wait: Wait) -> Unmet | None:
        """What a wait lacks; None when it is over."""

    def halted(self, plan: Plan) -> str:
        """Why nothing of its DAG begins now: there is none, or it is paused; else empty."""

    def tasks(self, plan: Plan, run_id: str) -> Sequence[TaskFact]: ...

    def others_at_work(self, plan: Plan, task_id: str, run_id: str) -> Sequence[str]:
        """The other runs of the DAG whose task of this id is at work or waits for its turn, the earliest first."""

    def active_runs(self, plan: Plan) -> Sequence[str]:
        """The runs of its DAG that are running."""

    def log(self, plan: Plan, run_id: str, task: TaskFact) -> tuple[str, ...]:
        """The last lines of a task's last try."""

    def usual_seconds(self, plan: Plan, task_id: str) -> int | None:
        """How long a task usually takes; None when there is no history."""


def explain_partition(plan: Plan, start: Instant, facts: WhyFacts) -> Cause:
    """Why the partition of a conf's main table that starts at ``start`` is not there; of a job, its interval."""
    return _Walk(facts).partition(plan, plan.table, start)


@dataclass
class _Walk:
    """From a partition to its roots; what was explained once is not explained again."""

    facts: WhyFacts
    most: int = MOST_CAUSES
    known: dict[tuple[str, str, Instant], Cause] = field(default_factory=dict)
    path: list[tuple[str, str, Instant]] = field(default_factory=list)

    def partition(self, plan: Plan, table: str, start: Instant, *, fact: PartitionFact | None = None) -> Cause:
        at = (plan.key, table, start)
        label = plan.need_schedule().label(start)
        if at in self.path or at in self.known or len(self.path) >= DEEPEST or len(self.known) >= self.most:
            before = self.known.get(at)
            text = (
                "" if before is not None or at in self.path else "the chain is followed no further: ask about this one"
            )
            expected = None if before is None else before.expected
            return Cause(plan.key, label, CauseState.SEEN_ABOVE.value, text=text, expected=expected)
        self.path.append(at)
        try:
            found = self._explained(plan, table, start, fact or self.facts.partitions(plan, table, (start,))[0])
        finally:
            self.path.pop()
        self.known[at] = found
        return found

    def _explained(self, plan: Plan, table: str, start: Instant, fact: PartitionFact) -> Cause:
        row, run = fact.row, fact.run
        run_id = row.run_id or ""
        cause = Cause(plan.key, row.label, row.state.value, text=row.reason, dag_id=plan.dag_id, run_id=run_id)
        again = f"airflow-chronon backfill {plan.dag_id} --start-ds {quote(row.label)}"
        match row.state:
            case State.STALE:
                above = tuple(self._stale_above(plan, table, start))
                return replace(cause, remedy=f"{again} --stale", because=above, expected=self.facts.now)
            case State.LANDED | State.DONE:
                above = tuple(self._stale_above(plan, table, start))
                text = cause.text or ("it was made of what is stale" if above else "")
                return replace(cause, text=text, because=above, expected=self.facts.now)
            case State.OPEN | State.DUE:
                return self._to_come(cause, plan, table, start)
            case State.QUEUED:
                return self._queued(cause, plan, table)
            case State.RUNNING if run is not None:
                return self._running(cause, plan, table, run)
            case State.FAILED if run is not None:
                return self._failed(replace(cause, remedy=f"{again} --failed"), plan, table, run)
            case State.STRANDED:
                return replace(cause, remedy=f"{again} --failed")
            case State.MISSING | State.SKIPPED:
                halted = self.facts.halted(plan)
                begins = f", and nothing of it begins: {halted}" if halted and halted not in row.reason else ""
                lacks = isinstance(plan, ConfPlan) and any(True for _ in self._lacking(plan, table, start, None))
                remedy = f"{again} --missing{' --with-upstream' if lacks else ''}"
                return replace(cause, text=f"{row.reason}{begins}", remedy=remedy)
        return cause

    def _to_come(self, cause: Cause, plan: Plan, table: str, start: Instant) -> Cause:
        """A partition whose run Airflow will create by itself."""
        schedule, now = plan.need_schedule(), self.facts.now
        fire, halted = _fire_of(plan, table, start), self.facts.halted(plan)
        if fire is None or halted:
            return replace(cause, text=halted or cause.text)
        if fire <= now:
            text = f"its run is due since {iso(fire)}, and Airflow has not created it yet"
        elif schedule.end_of(start) > now:
            text = f"it closes at {iso(schedule.end_of(start))}, and its run fires at {iso(fire)}"
        else:
            text = f"its run fires at {iso(fire)}"
        because = tuple(self._causes(plan, table, start, None))
        return replace(cause, text=text, because=because, expected=self._estimate(plan, table, because, earliest=fire))

    def _queued(self, cause: Cause, plan: Plan, table: str) -> Cause:
        halted, active = self.facts.halted(plan), self.facts.active_runs(plan)
        most = plan.settings.max_pending_runs
        if halted:
            return replace(cause, text=halted)
        if len(active) >= most:
            text = f"{len(active)} runs of its DAG are under way, and max_pending_runs is {most}: {some_of(active)}"
        else:
            text = "Airflow's scheduler has not begun it yet"
        return replace(cause, text=text, expected=self._estimate(plan, table, ()))

    def _running(self, cause: Cause, plan: Plan, table: str, run: KnownRun) -> Cause:
        tasks = {task.task_id: task for task in self.facts.tasks(plan, run.run_id)}
        work = tasks.get(_task_of(plan, table))
        halted = self.facts.halted(plan)
        if work is not None and work.state in _WORKING:
            return self._working(cause, plan, work)
        waits = [task for task in tasks.values() if _is_wait(task) and task.state not in _ENDED]
        if waits:
            because = tuple(self._causes(plan, table, None, run, names={task.task_id for task in waits}))
            text = "its run waits for what it reads"
            if not because:
                because = tuple(self._of_replay(plan, run))
                text = (
                    "its run holds for what its replay rebuilds before it"
                    if because
                    else "what it reads is there: its waits end at their next poll"
                )
            expected = self._estimate(plan, table, because)
            return replace(
                cause, state=CauseState.WAITING.value, text=halted or text, because=because, expected=expected
            )
        if halted:
            return replace(cause, text=halted)
        if work is None or work.state is None:
            return replace(cause, text="its work has not begun", expected=self._estimate(plan, table, ()))
        return self._about_to_work(cause, plan, table, run, work)

    def _of_replay(self, plan: Plan, run: KnownRun) -> Iterator[Cause]:
        """The partitions that a run reads, and that its own replay has not rebuilt yet (C27)."""
        order = read_order(run.conf)
        if order is None or not isinstance(plan, ConfPlan):
            return
        for table, writers in plan.writers.items():
            reads = [read for found in plan.dependencies.values() for read in found if read.table == table]
            windows = [
                window
                for read in reads
                for window in read_windows(read, run.window.start, run.window.end, grid=plan.spec.grid)
            ]
            first = order.first_of(writers, windows, own_dag_id=plan.dag_id, own_start=run.window.start)
            of = {each.dag_id: each.verdict.plan for each in self.facts.writers(plan, table)}
            for rebuild in first:
                source = of.get(rebuild.dag_id)
                if not isinstance(source, ConfPlan):
                    continue
                for fact in self.facts.partitions(source, table, [source.spec.start_of(rebuild.label)]):
                    if fact.run is not None and fact.run.run_id == rebuild.run_id and fact.row.state in _NOT_REBUILT:
                        yield self.partition(source, table, fact.row.start, fact=fact)

    def _working(self, cause: Cause, plan: Plan, work: TaskFact) -> Cause:
        usual = self.facts.usual_seconds(plan, work.task_id)
        since = "" if work.start is None else f" since {iso(work.start)}"
        takes = "" if usual is None else f", and usually takes {_span(usual)}"
        text = f"{work.task_id} works{since}{takes}"
        expected = None if usual is None or work.start is None else max(self.facts.now, work.start + usual)
        return replace(cause, text=text, expected=expected)

    def _about_to_work(self, cause: Cause, plan: Plan, table: str, run: KnownRun, work: TaskFact) -> Cause:
        """A run whose inputs are there, and whose work is not at work."""
        name, expected = work.task_id, self._estimate(plan, table, ())
        if work.state == "success":
            return replace(cause, text=f"{name} has ended well, and {LAST_TASK} has not looked yet", expected=expected)
        others = self.facts.others_at_work(plan, name, run.run_id)
        if work.state == "up_for_retry" or (work.state == "up_for_reschedule" and not others):
            text = f"try {work.try_number} of {name} failed, and Airflow tries again"
            log = self.facts.log(plan, run.run_id, work)
            return replace(cause, state=CauseState.RETRYING.value, text=text, log=log, expected=expected)
        if work.state in _ENDED:
            return replace(cause, text=f"{name} is {work.state}")
        if work.state == "up_for_reschedule":  # it gave its slot away while it waits (C28)
            text = f"{name} waits without a slot for its turn after {some_of(others)}"
            return replace(cause, state=CauseState.TURN.value, text=text, expected=expected)
        if work.state == "deferred":
            turn = f"it waits for its turn after {some_of(others)}, or " if others else ""
            text = f"{name} waits without a worker: {turn}for its job to end elsewhere"
            return replace(cause, state=CauseState.TURN.value if others else cause.state, text=text, expected=expected)
        most = plan.settings.max_active_runs
        if len(others) >= most:
            text = f"max_active_runs is {most}, and its slots are taken by {some_of(others)}"
            return replace(cause, state=CauseState.TURN.value, text=text, expected=expected)
        return replace(
            cause, text=f"{name} is {work.state}: it waits for a worker or a slot of its pool", expected=expected
        )

    def _failed(self, cause: Cause, plan: Plan, table: str, run: KnownRun) -> Cause:
        failed = [task for task in self.facts.tasks(plan, run.run_id) if task.state == "failed"]
        if not failed:
            return cause
        first = min(failed, key=lambda task: (task.end or 0, task.task_id))
        text = f"{first.task_id} failed in try {first.try_number}"
        because: tuple[Cause, ...] = ()
        if _is_wait(first):
            because = tuple(self._causes(plan, table, None, run, names={first.task_id}))
        return replace(cause, text=text, log=self.facts.log(plan, run.run_id, first), because=because)

    def _causes(
        self, plan: Plan, table: str, start: Instant | None, run: KnownRun | None, *, names: set[str] | None = None
    ) -> Iterator[Cause]:
        """What the partitions of a run, or of the one that will be, still lack; ``names`` are the tasks that wait."""
        if not isinstance(plan, ConfPlan):
            return
        for wait, unmet in self._lacking(plan, table, start, run):
            if names is None or legal_id(task := f"{WAIT_PREFIX}{wait.table}", unique=(task,)) in names:
                yield from self._of_wait(plan, wait, unmet)

    def _lacking(
        self, plan: ConfPlan, table: str, start: Instant | None, run: KnownRun | None
    ) -> Iterator[tuple[Wait, Unmet]]:
        for wait in _waits_of(plan, table, start, run):
            unmet = self.facts.unmet(plan, wait)
            if unmet is not None:
                yield wait, unmet

    def _of_wait(self, plan: ConfPlan, wait: Wait, unmet: Unmet) -> Iterator[Cause]:
        if unmet.is_unreadable or not unmet.labels or wait.spec is None:
            state = CauseState.UNREADABLE if unmet.is_unreadable else CauseState.EXTERNAL
            yield Cause(wait.table, "", state.value, text=unmet.text)
            return
        writers = self.facts.writers(plan, wait.table)
        if not writers:
            newest = f"the newest that has is {unmet.newest}" if unmet.newest else "no label has"
            text = f"nobody in this tree writes {wait.table}, and {newest}"
            more = len(unmet.labels) - 1
            yield Cause(wait.table, unmet.labels[0], CauseState.EXTERNAL.value, more, text)
            return
        for writer in writers:
            yield from self._of_writer(wait, unmet.labels, writer)

    def _stale_above(self, plan: Plan, table: str, start: Instant) -> Iterator[Cause]:
        """What is stale of that which a partition was made of, followed upstream; lookbacks are not followed."""
        if not isinstance(plan, ConfPlan) or table != plan.table:
            return
        for wait in _waits_of(plan, table, start, None):
            if wait.spec is None or not wait.labels:
                continue
            decode = wait.spec.format.decode
            for writer in self.facts.writers(plan, wait.table):
                source = writer.verdict.plan
                if not isinstance(source, ConfPlan) or wait.table != source.table:
                    continue
                starts = sorted({source.spec.grid.floor(decode(label)) for label in wait.labels})
                for fact in self.facts.partitions(source, wait.table, starts):
                    if fact.row.state in (State.STALE, State.LANDED):
                        cause = self.partition(source, wait.table, fact.row.start, fact=fact)
                        if cause.state == State.STALE.value or cause.because:
                            yield cause

    def _of_writer(self, wait: Wait, labels: Sequence[str], writer: TableConf) -> Iterator[Cause]:
        """The labels that a conf is to write, those with the same fate together."""
        verdict, more = writer.verdict, len(labels) - 1
        plan = verdict.plan
        assert wait.spec is not None
        if not isinstance(plan, ConfPlan):
            is_bad = isinstance(verdict, RejectedConf)
            state = CauseState.REJECTED if is_bad else CauseState.ELSEWHERE
            text = "; ".join(map(str, verdict.faults)) or "it is not deployed in this environment"
            yield Cause(verdict.key, labels[0], state.value, more, text, dag_id=writer.dag_id)
            return
        decode = wait.spec.format.decode
        starts = sorted({plan.spec.grid.floor(decode(label)) for label in labels})
        mode = _mode_of(plan, wait.table)
        fates: dict[tuple[State, str], list[PartitionFact]] = {}
        for fact in self.facts.partitions(plan, wait.table, starts):
            fates.setdefault((fact.row.state, _kind_of(fact.row)), []).append(fact)
        for facts in fates.values():
            first = facts[0]
            cause = self.partition(plan, wait.table, first.row.start, fact=first)
            if (
                mode is not None
                and mode not in plan.schedule.modes
                and first.row.state in (State.MISSING, State.SKIPPED)
            ):
                text = f"it has no schedule for {mode.value}: it is run by hand"
                cause = replace(cause, state=CauseState.UNSCHEDULED.value, text=text)
            yield replace(cause, more=len(facts) - 1, expected=self._last_expected(plan, wait.table, cause, facts[1:]))

    def _last_expected(
        self, plan: ConfPlan, table: str, cause: Cause, others: Sequence[PartitionFact]
    ) -> Instant | None:
        """When the last of some partitions should land that are shown as one; ``cause`` is that of the first."""
        if cause.expected is None or not others or others[0].row.state not in (State.OPEN, State.DUE):
            return cause.expected
        found = [cause.expected]
        for fact in others:
            expected = self._unshown.partition(plan, table, fact.row.start, fact=fact).expected
            if expected is None:
                return None
            found.append(expected)
        return max(found)

    @cached_property
    def _unshown(self) -> _Walk:
        """A walk to partitions that are judged and not shown."""
        return self if self.most == MOST_JUDGED else _Walk(self.facts, MOST_JUDGED, path=self.path)

    def _estimate(
        self, plan: Plan, table: str, because: Sequence[Cause], *, earliest: Instant | None = None
    ) -> Instant | None:
        """When it should land: its usual duration after the latest of what it waits for; None when one never comes."""
        usual = self.facts.usual_seconds(plan, _task_of(plan, table))
        begins = [cause.expected for cause in because]
        if usual is None or any(each is None for each in begins):
            return None
        return max(self.facts.now, earliest or 0, *(each for each in begins if each is not None)) + usual


def _kind_of(row: PartitionRow) -> str:
    """What sets the fates of rows of one state apart: a run each, or a reason."""
    return row.run_id or row.reason.partition(":")[0]


def _mode_of(plan: Plan, table: str) -> Mode | None:
    """The mode of a conf that writes a table; None for a job."""
    if not isinstance(plan, ConfPlan):
        return None
    written = (mode for mode in plan.schedule.all_modes if output_table(plan.conf, mode) == table)
    return next(written, plan.schedule.main_mode)


def _fire_of(plan: Plan, table: str, start: Instant) -> Instant | None:
    """When the run fires that the schedule makes for a partition of a table; None when it makes none."""
    mode = _mode_of(plan, table)
    if isinstance(plan, ConfPlan) and mode is not None:
        run = plan.schedule.covering_run(start, mode=mode)
        return None if run is None else run.modes[mode].fire
    interval = plan.need_schedule().covering_run(start)
    return None if interval is None else interval.fire


def _task_of(plan: Plan, table: str) -> str:
    mode = _mode_of(plan, table)
    return "run" if mode is None else mode.value


def _waits_of(plan: ConfPlan, table: str, start: Instant | None, run: KnownRun | None) -> Iterable[Wait]:
    """What the run of a table's partitions waits for: one that is there, else the one that the schedule will make."""
    mode = _mode_of(plan, table)
    if mode is None or mode not in plan.dependencies:
        return ()
    if run is not None:
        return plan.mode_waits(mode, run.window)
    assert start is not None
    coming = plan.schedule.covering_run(start, mode=mode)
    window = plan.schedule.partition(start) if coming is None or mode not in coming.modes else coming.modes[mode].window
    return plan.mode_waits(mode, window)


def _is_wait(task: TaskFact) -> bool:
    return task.task_id.startswith((WAIT_PREFIX, GATE_PREFIX))


def _span(seconds: int) -> str:
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


_SHOWN = 3


def some_of(texts: Sequence[str]) -> str:
    """The first few texts, and how many more there are."""
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more
