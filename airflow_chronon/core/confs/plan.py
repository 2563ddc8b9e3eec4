"""Verdicts on the confs and jobs of a tree: a plan for one that is good to run, else the reason why it has none.

Every verdict answers ``key``, ``file``, ``status``, ``summary``, ``faults`` and ``warnings``; ``plan`` is None where there
is no plan, and ``need_plan`` says why as an error. A plan answers what differs between confs and jobs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeAlias

from airflow_chronon.core.calendar.instants import Instant, TimeWindow
from airflow_chronon.core.confs.conf import Conf, ConfKey
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionSpec
from airflow_chronon.core.partitions.limits import limited
from airflow_chronon.core.schedules.intervals import IntervalSchedule
from airflow_chronon.core.schedules.partitioned import PartitionedSchedule
from airflow_chronon.core.settings.model import ConfSettings
from airflow_chronon.core.waits.dependencies import Wait
from airflow_chronon.errors import ChrononError, Fault, Rejected

if TYPE_CHECKING:
    from typing import Self  # typing has it from Python 3.11


@dataclass(frozen=True, kw_only=True)
class Plan(ABC):
    """A conf or a job that is good to run: what becomes a DAG."""

    status: ClassVar[str] = "ok"
    faults: ClassVar[tuple[Fault, ...]] = ()

    dag_id: str
    tags: tuple[str, ...]
    settings: ConfSettings
    schedule: PartitionedSchedule | IntervalSchedule | None  #: when it runs, interval by interval; None: by hand only
    producers: tuple[ConfKey, ...] = ()  #: the confs whose tables it reads; a job has none
    warnings: tuple[Fault, ...] = ()

    @property
    @abstractmethod
    def key(self) -> str:
        """``type/name``."""

    @property
    @abstractmethod
    def family(self) -> str:
        """What all its versions have in common: ``type/name`` without the version."""

    @property
    @abstractmethod
    def version(self) -> str | None: ...

    @property
    @abstractmethod
    def file(self) -> str:
        """The file that it was read from, relative to the conf root."""

    @property
    @abstractmethod
    def team(self) -> str: ...

    @property
    @abstractmethod
    def document(self) -> Mapping[str, Any]:
        """The file's content as it was read."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """When or what it runs, in a few words."""

    @property
    def spec(self) -> PartitionSpec | None:
        """The partitions of its table; None for a job, whose intervals are those between its fires."""
        return None

    @property
    def grid(self) -> PartitionGrid | None:
        """The grid of its partitions; None for a job."""
        return None if self.spec is None else self.spec.grid

    @property
    def table(self) -> str:
        """The table that it writes; empty for a job."""
        return ""

    @property
    def tables(self) -> tuple[str, ...]:
        """Every table that a run fills, the main one first."""
        return ()

    @property
    def has_partitions(self) -> bool:
        """Whether it fills partitions that a catalog can list; what of a job is done only its runs tell."""
        return self.spec is not None

    @property
    def is_left_out(self) -> bool:
        """Whether the settings ask for no DAG of it (C12)."""
        return False

    @property
    def may_name_backends(self) -> bool:
        """Whether its own file may say with which catalog or runner it works."""
        return True

    @property
    def starts_when_seen(self) -> bool:
        """Whether its schedule fires only once a reconcile has seen it (H14)."""
        return False

    def as_seen(self, seen: Callable[[IntervalSchedule], IntervalSchedule]) -> Plan:
        """The same, as the deployment knows its schedule where that decides when it fires."""
        return self

    @property
    def plan(self) -> Self:
        return self

    def need_plan(self, *, named: str = "") -> Self:
        return self

    def need_schedule(self) -> PartitionedSchedule | IntervalSchedule:
        """Its schedule. Raises ``ChrononError`` when it has none."""
        if self.schedule is None:
            problem = f"{self.key} is a job without a schedule, so it has no intervals"
            raise ChrononError(Fault("input", "CONF", problem, "start it with run"))
        return self.schedule

    def read_range(self, first: str, last: str, *, now: Instant | None = None) -> TimeWindow:
        """The intervals from ``first`` to ``last``, both inclusive and as people type them (C27).

        Raises ``ChrononError`` for what is not a range, for one of too many intervals and, with ``now``, for one whose
        last interval has not ended then. What a range means beyond its text is said by :meth:`range_notes`.
        """
        schedule = self.need_schedule()
        window = schedule.read_range(first, last, now=now)
        what = "partitions" if self.has_partitions else "intervals"
        limited(schedule.starts(window.start, window.end), what=what, conf=self.key)
        return window

    def range_notes(self, first: str, last: str, *, now: Instant | None = None) -> tuple[str, ...]:
        """How :meth:`read_range` reads the same range, where its text does not say (C27)."""
        return self.need_schedule().range_notes(first, last, now=now)

    @abstractmethod
    def end_of_runs_fired_by(self, instant: Instant) -> Instant | None:
        """Where the runs end that had fired by ``instant``; None: the schedule is new."""

    def replay_waits(self, start: Instant) -> Iterable[Wait]:
        """What a replay of the interval at ``start`` waits for."""
        return ()


@dataclass(frozen=True)
class RejectedConf:
    """A conf or job that breaks rules; it counts as present (C23)."""

    status: ClassVar[str] = "rejected"
    warnings: ClassVar[tuple[Fault, ...]] = ()
    plan: ClassVar[None] = None

    key: str  #: ``type/name``, or the file when no name could be read; that of a whole folder ends with a slash
    file: str  #: relative to the conf root; a folder ends with a slash
    faults: tuple[Fault, ...]

    @property
    def summary(self) -> str:
        return self.file

    def need_plan(self, *, named: str = "") -> NoReturn:
        """Raises :class:`Rejected`; ``named`` is what the conf is called, by default its key."""
        raise Rejected(self.faults, conf=named or self.key)


def faults_of(error: Exception, *, otherwise: str = "it cannot be judged") -> tuple[Fault, ...]:
    """The faults of a conf over which an error was raised: what nobody foresaw in one must not cost the others (S1).

    ``otherwise`` is said of an error that was not meant for users.
    """
    if isinstance(error, Rejected):
        return error.faults
    if isinstance(error, ChrononError):
        return (error.fault,)
    return (Fault("input", "", f"{otherwise}: {type(error).__name__}: {error}", "report this with the conf"),)


@dataclass(frozen=True)
class OtherEnvironment:
    """A conf that is not deployed here (C12)."""

    status: ClassVar[str] = "other environment"
    summary: ClassVar[str] = status
    faults: ClassVar[tuple[Fault, ...]] = ()
    warnings: ClassVar[tuple[Fault, ...]] = ()
    plan: ClassVar[None] = None

    conf: Conf

    @property
    def key(self) -> str:
        return str(self.conf.key)

    @property
    def file(self) -> str:
        return self.conf.file

    def need_plan(self, *, named: str = "") -> NoReturn:
        """Raises ``ChrononError``."""
        problem = f"{named or self.key} is not deployed in this environment"
        raise ChrononError(Fault("C12", "CONF", problem, "set environment"))


Verdict: TypeAlias = Plan | RejectedConf | OtherEnvironment


def good_plans(verdicts: Mapping[str, Verdict]) -> list[Plan]:
    """The plans of what is good, in the order of the verdicts."""
    return [verdict.plan for verdict in verdicts.values() if verdict.plan is not None]
