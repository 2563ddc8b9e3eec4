"""What each run of a replay carries: the partitions that the replay rebuilds, so that a wait can hold for those it reads.

A partition that is replayed has landed before, so a wait on it would be over at once, and the run would read what is about
to be written anew. The run's conf therefore names the replay and its partitions by DAG. As the runs of a replay that others
hold for are named after their label and the replay, nothing has to be looked up to find them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.partitions.labels import PartitionKey, in_run_id
from airflow_chronon.core.partitions.limits import MOST_OF_A_RUN
from airflow_chronon.core.partitions.start_ranges import StartRanges
from airflow_chronon.core.runs.backfill import Replay
from airflow_chronon.core.waits.outlook import TableWriter
from airflow_chronon.errors import ChrononError, Fault

ReadWindow: TypeAlias = tuple[Instant | None, Instant]  #: of a table: its first instant, None: no beginning; its end
REPLAY = "replay"  #: where it stands in the conf of a run
MOST_RANGES = 1_000  #: of all DAGs of a replay: every run carries them


class Rebuild(NamedTuple):
    """A partition that a replay writes anew, and the run that does it."""

    dag_id: str
    run_id: str
    label: PartitionKey

    def __str__(self) -> str:
        return f"{self.label} of {self.dag_id}"


@dataclass(frozen=True)
class ReplayOrder:
    """A replay, as its runs know it."""

    id: str  #: letters and digits
    rebuilds: Mapping[str, StartRanges] = field(default_factory=dict)  #: the partitions that it runs, by DAG
    held_for: frozenset[str] = (
        frozenset()
    )  #: the DAGs that others of it wait for, or that run one partition after another

    def run_id(self, label: str) -> str:
        """The id of the run of a partition that others may hold for."""
        return f"manual__{in_run_id(label)}__{self.id}"

    def first_of(
        self, writers: Iterable[TableWriter], windows: Iterable[ReadWindow], *, own_dag_id: str, own_start: Instant
    ) -> Iterator[Rebuild]:
        """The partitions of a table in these windows that are to be rebuilt first.

        The writers are those of the table; what the run writes itself begins at ``own_start``.
        """
        windows = list(windows)
        for dag_id, schedule in {each.dag_id: each.schedule for each in writers if each.schedule is not None}.items():
            rebuilt, is_own = self.rebuilds.get(dag_id), dag_id == own_dag_id
            if dag_id not in self.held_for or rebuilt is None or rebuilt.interval != schedule.grid.interval:
                continue
            starts = {start for window in windows for start in _overlapping(rebuilt, window)}
            for start in sorted(starts):
                if not is_own or start < own_start:
                    label = schedule.label(start)
                    yield Rebuild(dag_id, self.run_id(label), label)

    def to_json(self) -> dict[str, Any]:
        """Inverse of :func:`read_order`."""
        rebuilds = {dag_id: [found.interval, found.to_json()] for dag_id, found in sorted(self.rebuilds.items())}
        return {"id": self.id, "rebuilds": rebuilds} | ({"held_for": sorted(self.held_for)} if self.held_for else {})


def order_of(replay_id: str, replays: Sequence[Replay], *, held_for: frozenset[str]) -> ReplayOrder:
    """The order of a replay that runs these partitions.

    One that nobody holds for, and that is of too many pieces to be carried by every run, is carried without them. Raises
    ``ChrononError`` where somebody would have to hold for so many.
    """
    rebuilds = {
        replay.plan.dag_id: StartRanges.of_starts(replay.starts, interval=replay.plan.grid.interval)
        for replay in replays
        if replay.plan.grid is not None
    }
    count = sum(len(each.ranges) for each in rebuilds.values())
    if count > MOST_RANGES:
        if held_for:
            problem = f"these are {count} pieces of neighbouring partitions, and the runs of one replay carry at most"
            raise ChrononError(
                Fault("S7", "", f"{problem} {MOST_RANGES}", "give a shorter range"), conf=replays[-1].plan.key
            )
        rebuilds = {}
    return ReplayOrder(replay_id, rebuilds, held_for)


def dags_held_for(replays: Sequence[Replay]) -> frozenset[str]:
    """The DAGs of a replay whose partitions another of its confs reads, or a later partition of the same one."""
    read = {
        each.table
        for replay in replays
        if isinstance(replay.plan, ConfPlan)
        for found in replay.plan.dependencies.values()
        for each in found
    }
    return frozenset(replay.plan.dag_id for replay in replays if read.intersection(replay.plan.tables))


def read_order(conf: object) -> ReplayOrder | None:
    """What the conf of a run says of its replay; None where it says nothing, or what nobody could follow."""
    data = conf.get(REPLAY) if isinstance(conf, Mapping) else None
    if not isinstance(data, Mapping) or not isinstance(data.get("id"), str) or not data["id"].isalnum():
        return None
    try:
        rebuilds = {
            str(dag_id): _bounded(StartRanges.from_json(ranges, interval=interval))
            for dag_id, (interval, ranges) in dict(data.get("rebuilds", {})).items()
        }
        held_for = frozenset(map(str, data.get("held_for", ())))
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        return None
    return ReplayOrder(data["id"], rebuilds, held_for)


def _overlapping(rebuilt: StartRanges, window: ReadWindow) -> Iterator[Instant]:
    first, end = window
    oldest = rebuilt.ranges[0].start if rebuilt.ranges else 0
    for part in rebuilt.within(oldest if first is None else first - rebuilt.interval + 1, end):
        yield from part


def _bounded(found: StartRanges) -> StartRanges:
    """The ranges. Raises ValueError for more than a replay may have."""
    if found.interval <= 0 or len(found.ranges) > MOST_RANGES or sum(map(len, found.ranges)) > MOST_OF_A_RUN:
        raise ValueError("no replay is so large")
    return found
