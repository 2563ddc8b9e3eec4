"""Dependencies as JSON and back: what travels inside serialised DAGs and triggers.

Short keys, plain values, fixed order: an unchanged conf must serialise byte for byte the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionKey
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.serialization import (
    schedule_from_json,
    schedule_to_json,
    spec_from_json,
    spec_to_json,
)
from airflow_chronon.core.waits.dependencies import Binding, CutOffs, Lookback, TableDependency
from airflow_chronon.core.waits.max_lag import MaxLag
from airflow_chronon.core.waits.outlook import TableWriter

Json = dict[str, Any]


def dependency_to_json(dependency: TableDependency) -> Json:
    """Inverse of :func:`dependency_from_json`; what equals its default is left out."""
    cut = dependency.cut
    full: Json = {
        "table": dependency.table,
        "column": dependency.column or None,
        "spec": spec_to_json(dependency.spec) if dependency.spec else None,
        "binding": None if dependency.binding is Binding.WHOLE else dependency.binding.value,
        "grid": [dependency.grid.interval, dependency.grid.offset] if dependency.grid else None,
        "lag": dependency.lag or None,
        "reach": ["unbounded"] if dependency.reach is None else dependency.reach or None,
        "cut": None if cut == CutOffs() else [cut.start, cut.end, cut.last],
        "cumulative": dependency.is_cumulative or None,
        "sub": list(dependency.sub) or None,
        "expression": dependency.expression,
        "fixed": list(dependency.fixed_labels) or None,
        "policy": None if dependency.policy is Lookback.IGNORE else dependency.policy.value,
        "strict": dependency.is_strict or None,
        "max_lag": [dependency.max_lag.partitions, dependency.max_lag.after] if dependency.max_lag else None,
    }
    return {name: value for name, value in full.items() if value is not None}


def dependency_from_json(data: Mapping[str, Any]) -> TableDependency:
    """Build a dependency from its JSON."""
    reach = data.get("reach", 0)
    return TableDependency(
        data["table"],
        data.get("column", ""),
        spec_from_json(data["spec"]) if "spec" in data else None,
        Binding(data.get("binding", Binding.WHOLE.value)),
        PartitionGrid(*data["grid"]) if "grid" in data else None,
        data.get("lag", 0),
        None if isinstance(reach, list) else reach,
        CutOffs(*data["cut"]) if "cut" in data else CutOffs(),
        data.get("cumulative", False),
        tuple(data.get("sub", ())),
        data.get("expression"),
        tuple(PartitionKey(label) for label in data.get("fixed", ())),
        Lookback(data.get("policy", Lookback.IGNORE.value)),
        data.get("strict", False),
        max_lag=MaxLag(*data["max_lag"]) if "max_lag" in data else None,
    )


def writer_to_json(writer: TableWriter) -> Json:
    """Inverse of :func:`writer_from_json`."""
    schedule = None if writer.schedule is None else schedule_to_json(writer.schedule)
    cycle = {"cycle": True} if writer.is_in_a_cycle else {}
    return {"dag_id": writer.dag_id, "mode": writer.mode.value, "schedule": schedule, **cycle}


def writer_from_json(data: Mapping[str, Any]) -> TableWriter:
    """Build a writer of a table from its JSON."""
    schedule = data.get("schedule")
    known = None if schedule is None else schedule_from_json(schedule)
    return TableWriter(data["dag_id"], Mode(data["mode"]), known, data.get("cycle", False))
