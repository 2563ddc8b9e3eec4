"""A table as a conf refers to it, and what the tree makes of the reference (C13 to C16)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from airflow_chronon.core.calendar.instants import DAY, Instant, duration_text
from airflow_chronon.core.confs.conf import PARTITION_COLUMN, PARTITION_FORMAT, Conf, ConfKey
from airflow_chronon.core.confs.documents import ConfType, MetaData, Query, TableInfo, seconds, unquoted
from airflow_chronon.core.confs.tree import ConfTree, Producer
from airflow_chronon.core.partitions.grid import PartitionGrid, misalignment
from airflow_chronon.core.partitions.labels import IllegalLabel, PartitionSpec, default_pattern, partition_format
from airflow_chronon.core.waits.dependencies import CutOffs, Lookback, TableDependency
from airflow_chronon.errors import ChrononError, Fault

_DAY_PATTERNS = ("yyyy-MM-dd", "yyyyMMdd")


@dataclass(frozen=True)
class Reference:
    """A table named by a source, a dependency, a left side or a bootstrap part."""

    table: str  #: as written, sub-partitions included
    where: str  #: the field that names it
    owner: MetaData  #: whose namespace and defaults apply
    column: str | None = None
    format: str | None = None
    interval: int | None = None  #: seconds, as declared
    offset: int | None = None
    day_is_default: bool = False  #: the compiler writes 1d when the author says nothing, so 1d declares nothing (C15)
    lag: int = 0
    is_time_partitioned: bool = False
    is_cumulative: bool = False
    sub: tuple[str, ...] = ()
    start_cut_off: str | None = None
    end_cut_off: str | None = None
    expression: str | None = None

    @classmethod
    def of_query(cls, table: str, query: Query, *, where: str, owner: MetaData) -> Reference:
        """The reference of an events, entities, join or bootstrap query."""
        return replace(
            cls._declared(table, query, where=where, owner=owner),
            lag=seconds(query.partition_lag) or 0,
            sub=query.sub_partitions_to_wait_for or (),
            start_cut_off=query.start_partition,
            end_cut_off=query.end_partition,
        )

    @classmethod
    def of_table_info(cls, table: str, info: TableInfo, *, where: str, owner: MetaData) -> Reference:
        """The reference of a staging query's dependency or of a model transform's output."""
        return replace(cls._declared(table, info, where=where, owner=owner), is_cumulative=info.is_cumulative)

    @classmethod
    def _declared(cls, table: str, by: Query | TableInfo, *, where: str, owner: MetaData) -> Reference:
        """What a query and a table info say alike of a table."""
        return cls(
            table,
            where,
            owner,
            column=by.partition_column,
            format=by.partition_format,
            interval=seconds(by.partition_interval),
            offset=seconds(by.partition_offset),
            is_time_partitioned=by.time_partitioned,
            expression=by.trigger_expr,
        )

    @property
    def name(self) -> str:
        """The table's full name, without sub-partitions and quotes."""
        return unquoted(self.table.partition("/")[0])

    @property
    def all_sub(self) -> tuple[str, ...]:
        """The sub-partitions to wait for, those in the table's text first (C20)."""
        _, _, inline = self.table.partition("/")
        if not inline:
            return self.sub
        return tuple(f"{inline}/{sub}" if sub else inline for sub in self.sub or ("",))


@dataclass(frozen=True)
class Edge:
    """An edge between two confs: one reads what the other writes."""

    producer: ConfKey
    looks_back: bool  #: whether only partitions are read that ended before the consumer's own


@dataclass
class Resolver:
    """Resolves the references of one conf against the tree; collects faults and warnings instead of raising."""

    conf: Conf
    tree: ConfTree
    faults: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    _warned: set[Fault] = field(default_factory=set)

    def whole(self, reference: Reference) -> TableDependency | None:
        """A table that is read as whole partitions: its grid must be known and line up (C13, C14)."""
        grid = self.conf.spec.grid
        resolved = self.loose(reference, slice_grid=grid)
        if self._lacks_a_grid(reference):
            problem = f"{reference.name} declares no partition_interval and feeds a grid of {grid}"
            self.faults.append(
                Fault("C14", reference.where, problem, "declare its partition_interval, or time_partitioned")
            )
            return None
        if resolved is None or resolved.spec is None:
            return resolved
        if not grid.lines_up_with(resolved.spec.grid):
            remedy = f"a grid of {grid.fitting(resolved.spec.grid)} would fit"
            problem = f"{reference.name}: {misalignment(grid, resolved.spec.grid)}"
            self.faults.append(Fault("C13", reference.where, problem, remedy))
            return None
        return resolved

    def loose(self, reference: Reference, *, slice_grid: PartitionGrid) -> ResolvedDependency | None:
        """A table whose grid may be any: right parts, bootstrap parts, time-partitioned tables.

        ``slice_grid`` is the grid on which a time-partitioned table's cut-offs are read.
        """
        self._warn_of_a_lookalike(reference)
        try:
            if reference.is_time_partitioned:
                column = reference.column or reference.owner.common(PARTITION_COLUMN) or "ds"
                cut = self._cut_offs(
                    reference, PartitionSpec(slice_grid, partition_format(default_pattern(slice_grid)))
                )
                return ResolvedDependency(
                    reference.name,
                    column,
                    cut=cut,
                    lag=reference.lag,
                    expression=reference.expression,
                    field=reference.where,
                )
            producer = self._producer(reference)
            spec = self._external_spec(reference) if producer is None else self._produced_spec(reference, producer)
            self._warn_of_uneven_lag(reference, spec)
            return ResolvedDependency(
                producer.table if producer else reference.name,
                spec.column,
                spec,
                cut=self._cut_offs(reference, spec),
                lag=reference.lag,
                is_cumulative=reference.is_cumulative,
                sub=reference.all_sub,
                expression=reference.expression,
                policy=Lookback.REQUIRE if producer else Lookback.WARN,  # C17's defaults; settings come later
                field=reference.where,
                is_produced=producer is not None,
            )
        except ChrononError as error:
            self._fault(reference, error.fault)
            return None

    def edge(self, reference: Reference, *, back: int = 0) -> None:
        """Note who writes the table; it looks back when ``back`` and the lag are at least one of its partitions (C15).

        ``back``: the seconds by which the window that is read ends before the run does, such as a snapshot's length.
        """
        producer = self._producer(reference)
        if producer is None:
            return
        try:
            looks_back = reference.lag + back >= producer.conf.spec.grid.interval
        except ChrononError:
            looks_back = reference.lag + back > 0
        self.edges.append(Edge(producer.conf.key, looks_back))

    def _producer(self, reference: Reference) -> Producer | None:
        """The conf that writes the table; the reader is the conf, or the right part of a join whose source it is (C15)."""
        owner = reference.owner
        reader = self.conf.key if owner is self.conf.meta else ConfKey(ConfType.GROUP_BY, owner.name)
        return self.tree.producers.find(reference.name, consumer=reader, owner=owner)

    def _lacks_a_grid(self, reference: Reference) -> bool:
        """Whether it is an external table without an interval under a grid that needs one (C14)."""
        if reference.is_time_partitioned or reference.interval is not None or self.conf.spec.grid.is_legacy_daily:
            return False
        return self._producer(reference) is None

    def _external_spec(self, reference: Reference) -> PartitionSpec:
        interval, offset = reference.interval, reference.offset or 0
        grid = PartitionGrid(DAY if interval is None else interval, offset)
        team_format = reference.owner.common(PARTITION_FORMAT) if grid.is_legacy_daily else None
        pattern = reference.format or team_format or default_pattern(grid)
        return PartitionSpec(
            grid, partition_format(pattern), reference.column or reference.owner.common(PARTITION_COLUMN) or "ds"
        )

    def _produced_spec(self, reference: Reference, producer: Producer) -> PartitionSpec:
        try:
            own = producer.conf.spec
        except ChrononError as error:
            fault = error.fault
            message = f"its producer {producer.conf.key} is rejected: {fault.message}"
            raise ChrononError(replace(fault, message=message)) from None
        if producer.by_placeholder:
            problem = f"{reference.name} carries this conf's own namespace; linked to {producer.conf.key}, which writes {producer.table}"
            self._warn("C15", reference.where, problem, "give the producer an explicit output_namespace")
        declared = reference.interval
        if declared == DAY and reference.day_is_default:
            if not own.grid.is_legacy_daily:
                written = f"{reference.name} is written on a grid of {own.grid} by {producer.conf.key}"
                problem = f"{written}; the dependency's 1d is the compiler's default"
                self._warn("C15", reference.where, problem, "refer to it through the producer's .table")
        elif declared is not None and (declared, reference.offset or 0) != (own.grid.interval, own.grid.offset):
            shown = duration_text(declared) + (f"@{duration_text(reference.offset)}" if reference.offset else "")
            problem = f"the declared grid {shown} contradicts its producer {producer.conf.key}, which writes {own.grid}"
            raise ChrononError(Fault("C15", reference.where, problem, "refer to it through the producer's .table"))
        pattern = partition_format(reference.format) if reference.format else own.format
        return PartitionSpec(own.grid, pattern, reference.column or own.column)

    def _cut_offs(self, reference: Reference, spec: PartitionSpec) -> CutOffs:
        try:
            return cut_offs(reference.start_cut_off, reference.end_cut_off, spec)
        except ChrononError as error:  # the other rules of this table are still checked
            self._fault(reference, error.fault)
            return CutOffs()

    def _warn_of_a_lookalike(self, reference: Reference) -> None:
        written = self.tree.producers.lookalikes(reference.name)
        if written:
            problem = f"{reference.name} is written by nobody; this tree writes {' and '.join(written)}"
            self._warn("C15", reference.where, problem, "refer to it through the producer's .table or .derived_table")

    def _warn_of_uneven_lag(self, reference: Reference, spec: PartitionSpec) -> None:
        if reference.lag % spec.grid.interval:
            problem = f"a lag of {duration_text(reference.lag)} is not whole partitions of {spec.grid}: every partition it touches is read"
            self._warn("C16", reference.where, problem, "use a multiple of the partition interval")

    def _fault(self, reference: Reference, fault: Fault) -> None:
        self.faults.append(replace(fault, field=reference.where, message=f"{reference.name}: {fault.message}"))

    def _warn(self, rule: str, where: str, problem: str, remedy: str) -> None:
        fault = Fault(rule, where, problem, remedy)
        if fault not in self._warned:
            self._warned.add(fault)
            self.warnings.append(fault)


@dataclass(frozen=True)
class ResolvedDependency(TableDependency):
    """A dependency that also knows whether the tree writes its table."""

    is_produced: bool = False


def cut_offs(first: str | None, last: str | None, spec: PartitionSpec) -> CutOffs:
    """The instants of the first and the last label of a table that are read, both inclusive. Raises ``ChrononError`` (C16)."""
    start = _cut_off(first, spec)[0] if first else None
    if not last:
        return CutOffs(start)
    begin, end = _cut_off(last, spec)
    if begin < spec.format.earliest:
        problem = f"the cut-off {last!r} has no label in the format {spec.format.pattern!r}"
        raise ChrononError(Fault("C16", "", problem, "choose a later one"))
    return CutOffs(start, end, begin)


def _cut_off(label: str, spec: PartitionSpec) -> tuple[Instant, Instant]:
    """The ``[start, end)`` of a cut-off: a partition of the table, or a whole day (C16)."""
    readers: list[tuple[Callable[[str], Instant], int]] = [(spec.format.decode, spec.grid.interval)]
    readers += [(partition_format(pattern).decode, DAY) for pattern in _DAY_PATTERNS]
    for decode, length in readers:
        try:
            start = decode(label)
        except IllegalLabel:
            continue
        return start, start + length
    problem = f"the cut-off {label!r} is neither in the format {spec.format.pattern!r} nor a day"
    raise ChrononError(Fault("C16", "", problem, "write it like " + spec.format.encode(spec.grid.ceil(1_767_225_600))))
