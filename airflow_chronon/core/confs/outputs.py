"""Which tables a conf writes, mode by mode."""

from __future__ import annotations

from airflow_chronon.core.confs.conf import Conf, upload_table_of
from airflow_chronon.core.schedules.modes import Mode


def output_table(conf: Conf, mode: Mode) -> str | None:
    """The table that a mode writes; None for a mode that writes none."""
    if mode is Mode.METADATA_UPLOAD:
        return None
    return upload_table_of(conf.meta) if mode is Mode.UPLOAD else conf.table


def asset_uri(table: str, *, namespace_prefix: str = "") -> str:
    """The URI of a table's asset; one per table and branch (C24)."""
    namespace, _, name = table.rpartition(".")
    return f"chronon://{namespace_prefix}{namespace}/{name}"
