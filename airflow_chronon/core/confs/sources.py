"""The tables that a conf reads, per type of conf (C11, C15, C16, C21)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain

from airflow_chronon.core.calendar.instants import DAY
from airflow_chronon.core.confs.conf import Conf, ConfKey, table_of
from airflow_chronon.core.confs.dependency_specs import custom_dependencies, spec_dependencies
from airflow_chronon.core.confs.documents import (
    ConfType,
    Dialect,
    GroupBy,
    Join,
    MetaData,
    Source,
    StagingQuery,
    TableDependencyInfo,
    TableInfo,
    seconds,
)
from airflow_chronon.core.confs.older import DEPENDENCIES
from airflow_chronon.core.confs.references import Reference, Resolver
from airflow_chronon.core.confs.tree import ConfTree
from airflow_chronon.core.partitions.grid import PartitionGrid, legacy_daily
from airflow_chronon.core.schedules.chronon import parse_schedule
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.waits.dependencies import Binding, TableDependency
from airflow_chronon.errors import ChrononError, Fault


class Role(Enum):
    """What a table is within a source."""

    EVENTS = "events"
    SNAPSHOT = "snapshot"
    MUTATIONS = "mutations"


@dataclass(frozen=True)
class SourceTable:
    """One table of a source."""

    reference: Reference
    role: Role


def read_dependencies(resolver: Resolver) -> tuple[TableDependency, ...]:
    """The tables that the data modes of a conf read: backfill and upload."""
    document = resolver.conf.document
    if isinstance(document, GroupBy):
        found = _of_group_by(resolver, document)
    elif isinstance(document, StagingQuery):
        found = _of_staging_query(resolver, document)
    else:
        found = _of_join(resolver, document)
    further = (spec for spec in resolver.conf.specs if spec.fits_no_source)
    both = chain(found, spec_dependencies(resolver, further, where=DEPENDENCIES))
    return tuple(dependency for dependency in both if dependency is not None)


def read_upload_dependencies(conf: Conf, tree: ConfTree) -> tuple[TableDependency, ...]:
    """What the metadata upload of a Join waits for: the upload of each right GroupBy that the tree deploys online (C11)."""
    found = []
    document = conf.document
    for part in document.join_parts if isinstance(document, Join) else ():
        key = ConfKey(ConfType.GROUP_BY, part.group_by.meta_data.name)
        group_by = tree.confs.get(key)
        if group_by is None or not group_by.runs_in(tree.environment):
            continue
        try:
            if parse_schedule(group_by.online_schedule_text) is None:
                continue
            spec = group_by.spec
        except ChrononError:
            continue  # a rejected part is reported for itself and uploads nothing
        table = group_by.upload_table
        found.append(TableDependency(table, spec.column, spec, Binding.NEWEST_SNAPSHOT, spec.grid))
    return tuple(found)


def tables_of(source: Source, *, where: str, owner: MetaData) -> Iterator[SourceTable]:
    """The tables of one source: events, a snapshot and its mutations, an inner join's output or a model's (C16)."""
    if source.events is not None:
        events = source.events
        reference = Reference.of_query(events.table, events.query, where=f"{where}.events.query", owner=owner)
        yield SourceTable(replace(reference, is_cumulative=events.is_cumulative), Role.EVENTS)
    elif source.entities is not None:
        entities = source.entities
        at = f"{where}.entities.query"
        yield SourceTable(
            Reference.of_query(entities.snapshot_table, entities.query, where=at, owner=owner), Role.SNAPSHOT
        )
        if entities.mutation_table:
            yield SourceTable(
                Reference.of_query(entities.mutation_table, entities.query, where=at, owner=owner), Role.MUTATIONS
            )
    elif source.join_source is not None:
        table = table_of(source.join_source.join.meta_data)
        reference = Reference.of_query(table, source.join_source.query, where=f"{where}.joinSource.query", owner=owner)
        yield SourceTable(reference, Role.EVENTS)
    elif source.model_transforms is not None:
        meta = source.model_transforms.meta_data
        info = meta.execution_info.output_table_info
        at = f"{where}.modelTransforms"
        reference = Reference.of_table_info(table_of(meta), info or TableInfo(), where=at, owner=owner)
        if info is None:
            reference = replace(reference, interval=DAY)
        yield SourceTable(reference, Role.EVENTS)


def _of_group_by(resolver: Resolver, group_by: GroupBy) -> Iterator[TableDependency | None]:
    for index, source in enumerate(group_by.sources):
        for table in tables_of(source, where=f"sources[{index}]", owner=group_by.meta_data):
            resolver.edge(table.reference)
            if table.role is Role.MUTATIONS:
                resolver.loose(
                    table.reference, slice_grid=resolver.conf.spec.grid
                )  # checked, but the snapshots hold it
                continue
            dependency = resolver.whole(table.reference)
            if dependency is not None:
                reach = group_by.longest_window if table.role is Role.EVENTS else 0
                yield replace(dependency, reach=reach)


def _of_staging_query(resolver: Resolver, query: StagingQuery) -> Iterator[TableDependency | None]:
    named = set()
    for index, entry in enumerate(query.table_dependencies or ()):
        where = f"tableDependencies[{index}]"
        reference = replace(
            Reference.of_table_info(entry.table_info.table, entry.table_info, where=where, owner=query.meta_data),
            day_is_default=True,
            lag=seconds(entry.end_offset) or 0,
            start_cut_off=entry.start_cut_off,
            end_cut_off=entry.end_cut_off,
        )
        if not reference.name:
            resolver.faults.append(
                Fault(
                    "input",
                    f"{where}.tableInfo.table",
                    "the dependency does not name a table",
                    "compile it again with zipline compile",
                )
            )
            continue
        named.add(reference.name)
        resolver.edge(reference)
        dependency = resolver.whole(reference)
        if dependency is not None:
            yield replace(dependency, reach=_reach(entry))
    if resolver.conf.dialect is Dialect.OLDER:
        yield from spec_dependencies(resolver, resolver.conf.specs, where=DEPENDENCIES)
    else:
        yield from custom_dependencies(resolver, query.meta_data, named)


def _reach(entry: TableDependencyInfo) -> int | None:
    """How much further back than the slice a dependency's range goes: start offset less end offset."""
    start = seconds(entry.start_offset)
    return None if start is None else start - (seconds(entry.end_offset) or 0)


def _of_join(resolver: Resolver, join: Join) -> Iterator[TableDependency | None]:
    for table in tables_of(join.left, where="left", owner=join.meta_data):
        resolver.edge(table.reference)
        if table.role is Role.MUTATIONS:
            resolver.loose(table.reference, slice_grid=resolver.conf.spec.grid)  # checked, but the snapshots hold it
            continue
        yield resolver.whole(table.reference)
    for index, bootstrap in enumerate(join.bootstrap_parts or ()):
        where = f"bootstrapParts[{index}]"
        reference = Reference.of_query(bootstrap.table, bootstrap.query, where=where, owner=join.meta_data)
        resolver.edge(reference)
        dependency = resolver.loose(reference, slice_grid=legacy_daily())
        yield dependency and replace(dependency, binding=Binding.POINT_IN_TIME)
    for index, part in enumerate(join.join_parts):
        yield from _of_part(resolver, join, part.group_by, where=f"joinParts[{index}].groupBy")


def _of_part(resolver: Resolver, join: Join, group_by: GroupBy, *, where: str) -> Iterator[TableDependency | None]:
    """The sources of a right part, bound row by row on the part's own grid (C21)."""
    try:
        grid = resolver.tree.part_spec(group_by).grid
    except ChrononError as error:
        message = f"the part {group_by.meta_data.name} is rejected: {error.fault.message}"
        resolver.faults.append(replace(error.fault, field=where, message=message))
        return
    under_entities = join.left.entities is not None
    for index, source in enumerate(group_by.sources):
        for table in tables_of(source, where=f"{where}.sources[{index}]", owner=group_by.meta_data):
            snapshots = not group_by.is_temporal and not under_entities
            resolver.edge(table.reference, back=grid.interval if snapshots else 0)
            dependency = resolver.loose(table.reference, slice_grid=grid)
            if dependency is None or (table.role is Role.MUTATIONS and (under_entities or snapshots)):
                continue
            reach = group_by.longest_window if table.role is Role.EVENTS else 0
            binding, own = _binding(under_entities, group_by, table.role, grid, dependency)
            yield replace(dependency, binding=binding, grid=own, reach=reach)


def _binding(
    under_entities: bool, group_by: GroupBy, role: Role, grid: PartitionGrid, dependency: TableDependency
) -> tuple[Binding, PartitionGrid | None]:
    if under_entities:
        return Binding.PARTITION_SNAPSHOT, grid
    if not group_by.is_temporal:
        return Binding.ROW_SNAPSHOT, grid
    if role is Role.SNAPSHOT:
        return Binding.ROW_SNAPSHOT, dependency.spec.grid if dependency.spec else grid
    return Binding.POINT_IN_TIME, None


def modes_with_dependencies(resolver: Resolver, modes: tuple[Mode, ...]) -> dict[Mode, tuple[TableDependency, ...]]:
    """What each mode of a conf reads."""
    data = read_dependencies(resolver)
    uploads = read_upload_dependencies(resolver.conf, resolver.tree)
    return {mode: uploads if mode is Mode.METADATA_UPLOAD else data for mode in modes}
