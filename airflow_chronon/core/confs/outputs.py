"""Which tables a conf writes, mode by mode."""

from __future__ import annotations

from airflow_chronon.core.confs.conf import upload_table_of
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.schedules.modes import Mode


def output_table(plan: ConfPlan, mode: Mode) -> str | None:
    """The table that a mode writes; None for a mode that writes none."""
    if mode is Mode.METADATA_UPLOAD:
        return None
    return upload_table_of(plan.conf.meta) if mode is Mode.UPLOAD else plan.conf.table


def tables_of(plan: ConfPlan) -> tuple[str, ...]:
    """Every table that a run of the conf fills; a join's ``__derived`` is filled with it."""
    written = [table for mode in plan.runs.all_modes if (table := output_table(plan, mode)) is not None]
    derived = [f"{table}__derived" for table in written if table == plan.conf.table]
    return (*written, *derived)


def main_table(plan: ConfPlan) -> str | None:
    """The table whose partitions say whether a conf's partitions have landed; None when it writes none."""
    return next(iter(tables_of(plan)), None)


def asset_uri(table: str, *, namespace_prefix: str = "") -> str:
    """The URI of a table's asset; one per table and branch (C24)."""
    namespace, _, name = table.rpartition(".")
    return f"chronon://{namespace_prefix}{namespace}/{name}"
