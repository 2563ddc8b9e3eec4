"""The landed partitions of tables, read from the catalogs of a conf root."""

from __future__ import annotations

import os

from airflow_chronon.catalogs.build import build_catalog
from airflow_chronon.core.confs.plan import Plan
from airflow_chronon.core.waits.readiness import check_shape


class Landings:
    """The landed labels per table, each table listed once."""

    def __init__(self) -> None:
        self._seen: dict[str, frozenset[str]] = {}

    def __call__(self, plan: Plan, table: str) -> frozenset[str]:
        """The labels of a table that the plan's runs fill. Raises ``ChrononError`` when the catalog cannot tell."""
        if table not in self._seen:
            assert plan.spec is not None  # who fills a table has partitions
            column = plan.spec.column
            listing = build_catalog(plan.settings.catalog.of_table(table), os.environ).list_partitions(table)
            check_shape(table, column, listing)
            self._seen[table] = listing.labels(column)
        return self._seen[table]

    def of_plan(self, plan: Plan) -> frozenset[str] | None:
        """The labels of a plan's main table; None when it fills none."""
        return self(plan, plan.tables[0]) if plan.tables else None
