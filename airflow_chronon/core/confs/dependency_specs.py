"""Partitions that a conf waits for as they are written down, ``table/column={{ ds }}/sub=…``, beside what it reads (C16, D4)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

from airflow_chronon.core.bounds import MAX_TABLES, name_problem, quoted
from airflow_chronon.core.calendar.instants import DAY
from airflow_chronon.core.confs.documents import DependencySpec, MetaData, unquoted
from airflow_chronon.core.confs.references import Resolver, cut_offs
from airflow_chronon.core.partitions.grid import legacy_daily
from airflow_chronon.core.partitions.labels import PartitionKey, PartitionSpec, partition_format
from airflow_chronon.core.waits.dependencies import TableDependency
from airflow_chronon.errors import ChrononError, Fault

_TEMPLATE = re.compile(
    r"\{\{\s*(?:(?P<plain>ds)|(?P<nodash>ds_nodash)|macros\.ds_add\(\s*ds\s*,\s*(?P<shift>[+-]?\d+)\s*\))\s*\}\}"
)


def custom_dependencies(resolver: Resolver, meta: MetaData, named: Collection[str]) -> Iterator[TableDependency]:
    """``customJson.airflowDependencies`` of tables that no tableDependency names (C16)."""
    where = "metaData.customJson"
    try:
        custom: Any = json.loads(meta.custom_json or "{}")
        texts = [str(entry["spec"]) for entry in custom.get("airflowDependencies") or ()]
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError) as error:
        problem = f"it is no JSON object with a list of airflowDependencies: {error}"
        resolver.faults.append(Fault("C16", where, problem, "compile it again with zipline compile"))
        return
    specs = (DependencySpec(text) for text in texts if unquoted(text.partition("/")[0]) not in named)
    yield from spec_dependencies(resolver, specs, where=where)


def spec_dependencies(resolver: Resolver, specs: Iterable[DependencySpec], *, where: str) -> Iterator[TableDependency]:
    """The dependencies of specs; what is wrong with one becomes a fault of the resolver."""
    found = list(specs)
    if len(found) > MAX_TABLES:
        problem = f"it has {len(found)} of these dependencies, and one conf reads at most {MAX_TABLES} tables"
        resolver.faults.append(Fault("S2", where, problem, "divide it into several confs"))
        return
    for spec in found:
        try:
            dependency = _dependency(spec)
        except ChrononError as error:
            resolver.faults.append(replace(error.fault, field=where))
            continue
        if spec.fits_no_source:
            problem = (
                f"the dependency {spec.text!r} is of a table that no source reads: it is waited for as it is written"
            )
            remedy = "read the table in a source, or remove the dependency"
            resolver.warnings.append(Fault("D4", where, problem, remedy))
        yield replace(dependency, field=where)


def _dependency(spec: DependencySpec) -> TableDependency:
    """Raises ``ChrononError`` for a text that is no spec."""
    unfit = name_problem(spec.text)
    if unfit is not None:
        raise ChrononError(Fault("S1", "", f"{quoted(spec.text)} {unfit}", "shorten it, or remove the character"))
    name, *segments = spec.text.split("/")
    dependency = _from_segments(unquoted(name), segments)
    if dependency is None:
        problem = f"the dependency {spec.text!r} is not of the form table/column={{{{ ds }}}}"
        remedy = "use {{ ds }}, {{ ds_nodash }} or {{ macros.ds_add(ds, n) }}, or a TableDependency"
        raise ChrononError(Fault("C16", "", problem, remedy))
    if dependency.spec is None:
        return dependency
    return replace(dependency, cut=cut_offs(spec.start, spec.end, dependency.spec))


def _from_segments(table: str, segments: list[str]) -> TableDependency | None:
    """The dependency of ``table/column=template[/sub=…]``; a value without a template is one fixed label."""
    at = next((index for index, segment in enumerate(segments) if "{{" in segment), 0)
    if at >= len(segments) or "=" not in segments[at]:
        return None
    column, _, value = segments[at].partition("=")
    rest = "/".join(segments[:at] + segments[at + 1 :])
    sub = (rest,) if rest else ()
    if "{{" not in value:
        return TableDependency(table, column, sub=sub, fixed_labels=(PartitionKey(value),))
    match = _TEMPLATE.fullmatch(value)
    if match is None or len(match["shift"] or "") > 6:  # centuries away: no day of the calendar
        return None
    pattern = "yyyyMMdd" if match["nodash"] else "yyyy-MM-dd"
    spec = PartitionSpec(legacy_daily(), partition_format(pattern), column)
    return TableDependency(table, column, spec, lag=-int(match["shift"] or 0) * DAY, sub=sub)
