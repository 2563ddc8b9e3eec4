"""What a reconcile does, one frozen action each: applying and explaining read the same list."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.records.record import DeploymentRecord
from airflow_chronon.core.schedules.ranges import LabelRange
from airflow_chronon.errors import Fault


class Severity(Enum):
    """How bad a report is; an error makes the reconcile end badly after it has done all that is safe."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Keep:
    """Do nothing: the conf is in the tree and nothing about it has changed."""

    dag_id: str


@dataclass(frozen=True)
class Deploy:
    """Keep the record of a new or changed conf. The loader already produces its DAG."""

    dag_id: str
    record: DeploymentRecord
    is_new: bool


@dataclass(frozen=True)
class Restore:
    """End a retirement, since the conf is back before its DAG was deleted; its record goes on."""

    dag_id: str
    record: DeploymentRecord


@dataclass(frozen=True)
class Record:
    """Save what else is to be remembered of a DAG: a pause, a broken conf, how far a replay has come."""

    dag_id: str
    record: DeploymentRecord
    what: str


@dataclass(frozen=True)
class SetAside:
    """Move a damaged record out of the way; it is kept for whoever wants to look at it (S9)."""

    dag_id: str


@dataclass(frozen=True)
class Unpause:
    """Unpause a DAG that was paused by hand (C25)."""

    dag_id: str
    why: str


@dataclass(frozen=True)
class EndStranded:
    """End queued runs that Airflow never starts, with a note: whoever waits for them would wait for ever."""

    dag_id: str
    run_ids: tuple[str, ...]


@dataclass(frozen=True)
class Replay:
    """Run what was missed: neighbours through one backfill of Airflow, a single partition by its key (H13)."""

    dag_id: str
    label_range: LabelRange
    max_active_runs: int
    since: Instant | None = None  #: runs from before it do not count, and are made again (H16)


@dataclass(frozen=True)
class Drain:
    """Begin a retirement: the record says since when, by whom and why. The loader keeps the DAG, off."""

    dag_id: str
    why: str
    confirmed: bool = False  #: someone confirmed that it is meant, though the tree looks damaged


@dataclass(frozen=True)
class WaitForRuns:
    """Wait until the runs in progress have finished."""

    dag_id: str
    runs: int


@dataclass(frozen=True)
class StopIdleRuns:
    """End the runs that have begun no work as failed, with a note: they may wait for data for days."""

    dag_id: str
    runs: int


@dataclass(frozen=True)
class StopRuns:
    """End the runs in progress as failed, with a note."""

    dag_id: str
    runs: int
    why: str


@dataclass(frozen=True)
class Wait:
    """Wait for something else; the next reconcile looks again."""

    dag_id: str
    what: str


@dataclass(frozen=True)
class Archive:
    """Write the whole history to the archive and read it back; from then on the loader no longer produces the DAG."""

    dag_id: str


@dataclass(frozen=True)
class Delete:
    """Delete the DAG from Airflow, once no file produces it and its whole history is archived; then drop its record."""

    dag_id: str


@dataclass(frozen=True)
class Forget:
    """Airflow does not have the DAG: drop its record."""

    dag_id: str
    is_taken_over: bool = False  #: another deployment has the DAG now: its history stays there, so none is archived


@dataclass(frozen=True)
class ParseSoon:
    """Have Airflow parse a loader file now: what this reconcile changed is to be seen before its interval is over."""

    dag_id: str  #: one of those that the file produces
    file: str


@dataclass(frozen=True)
class RememberBad:
    """Keep what stands for the mistakes in the tree: the next reconcile sees by it whether there are others."""

    digest: str


@dataclass(frozen=True)
class Hold:
    """Retire nothing, since the tree looks damaged; these DAGs would go."""

    dag_ids: tuple[str, ...]
    fault: Fault


@dataclass(frozen=True)
class Report:
    """Something that someone should know."""

    severity: Severity
    fault: Fault
    conf: str = ""  #: the conf, DAG or branch that it is about


RetireStep: TypeAlias = Drain | StopIdleRuns | WaitForRuns | StopRuns | Wait | Archive | Delete | Forget
WritesRecord: TypeAlias = Deploy | Restore | Record
Action: TypeAlias = (
    Keep
    | SetAside
    | WritesRecord
    | Unpause
    | EndStranded
    | Hold
    | RetireStep
    | Replay
    | ParseSoon
    | RememberBad
    | Report
)


@dataclass(frozen=True)
class Plan:
    """What a reconcile does, in the order in which it does it."""

    actions: tuple[Action, ...]

    @property
    def findings(self) -> tuple[Hold | Report, ...]:
        """What makes it end badly."""
        return tuple(
            action
            for action in self.actions
            if isinstance(action, Hold) or (isinstance(action, Report) and action.severity is Severity.ERROR)
        )

    @property
    def is_up_to_date(self) -> bool:
        """Whether Airflow is as the tree says: nothing to do and nothing to wait for."""
        return all(isinstance(action, Keep | Report) for action in self.actions) and not self.findings
