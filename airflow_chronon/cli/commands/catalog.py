"""``catalog``: what the product sees of one table, for people who set up where tables are."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from typing import Any

from airflow_chronon.catalogs.build import build_catalog
from airflow_chronon.cli.options import FORMAT, ROOT, Command, option
from airflow_chronon.cli.output import FINDINGS, GOOD, show, tell
from airflow_chronon.cli.target import Target, open_target
from airflow_chronon.core.calendar.instants import iso
from airflow_chronon.core.confs.plan import good_plans
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.partitions.listing import TableListing, TableState
from airflow_chronon.core.waits.catalog import PartitionCatalog
from airflow_chronon.core.waits.dependencies import TableDependency
from airflow_chronon.core.waits.table_view import check_labels, columns_of, is_label
from airflow_chronon.errors import ChrononError


def catalog(options: argparse.Namespace) -> int:
    """List the table as a wait would, and say of each conf that reads or writes it whether it can ever see its labels."""
    target = open_target(options)
    target.report_problems()  # of settings that cannot be read, the defaults are asked
    uses = list(_uses(target, options.table))
    section = uses[0][0].settings.catalog if uses else target.root.settings.catalog
    settings = section.of_table(options.table)
    seen = build_catalog(settings, os.environ)
    began = time.monotonic()
    token, listing = seen.change_token(options.table), seen.list_partitions(options.table)
    took = time.monotonic() - began
    views = [_view(seen, options.table, listing, plan, read) for plan, read in uses]
    found: dict[str, Any] = {
        "table": options.table,
        "kind": settings.get("kind"),
        "place": seen.place_of(options.table),
        "state": listing.state.value,
        "partitions": len(listing.partitions),
        "columns": [each.as_json() for each in columns_of(listing)],
        "change_token": token,
        "seconds": round(took, 3),
        "used_by": views,
    }
    show(options, text=lambda: _text(found, listing), value=lambda: found)
    is_good = listing.state is not TableState.MISSING and not any(each.get("error") for each in views)
    if not uses:
        tell(f"no conf of this tree reads or writes {options.table}")
    return GOOD if is_good else FINDINGS


CATALOG = Command(
    "catalog",
    "show what is seen of a table: where, how it is partitioned, which labels, and whether its readers can see theirs",
    (option("table", metavar="TABLE", help="its full name, such as data.orders"), ROOT, FORMAT),
    catalog,
)


def _uses(target: Target, table: str) -> Iterator[tuple[ConfPlan, TableDependency | None]]:
    """Who writes a table, and who reads it and how, each way once."""
    for plan in good_plans(target.verdicts):
        if not isinstance(plan, ConfPlan):
            continue
        if table in plan.tables:
            yield plan, None
        reads = dict.fromkeys(
            (read.column, read.spec) for found in plan.dependencies.values() for read in found if read.table == table
        )
        for column, spec in reads:
            yield plan, TableDependency(table, column, spec)


def _view(
    seen: PartitionCatalog,
    table: str,
    listing: TableListing,
    plan: ConfPlan,
    read: TableDependency | None,
) -> dict[str, Any]:
    """How one conf sees the table; ``error`` where it never sees what it waits for."""
    spec, column = (plan.spec, plan.spec.column) if read is None else (read.spec, read.column)
    view: dict[str, Any] = {"conf": plan.key, "how": "writes" if read is None else "reads", "column": column}
    try:
        if spec is None:
            newest = seen.newest_value(table, column) if column else None
            return view | {"newest": None if newest is None else iso(newest)}
        view |= {"format": str(spec.format), "grid": str(spec.grid)}
        check_labels(table, column, spec, listing)
        own = [label for label in listing.labels(column) if is_label(spec, label)]
        return view | {"newest": max(own, key=spec.start_of, default=None)}
    except ChrononError as error:
        return view | {"error": str(error)}


def _text(found: dict[str, Any], listing: TableListing) -> str:
    state = {
        TableState.MISSING: "is not there",
        TableState.UNPARTITIONED: "has data, and no partitions",
        TableState.PARTITIONED: f"has {found['partitions']} partitions",
    }[listing.state]
    lines = [f"{found['table']} {state}; kind {found['kind']}, {found['place']}, seen in {found['seconds']:.3f} s"]
    lines += [f"  {each}" for each in columns_of(listing)]
    if found["change_token"] is not None:
        lines.append("  tells whether it has changed: one small call a poll while it has not")
    for each in found["used_by"]:
        about = f"{each['format']} on {each['grid']}" if "format" in each else "by time"
        newest = each.get("error") or f"newest {each.get('newest') or 'none yet'}"
        lines.append(f"  {each['conf']} {each['how']} {each['column'] or 'it'}, {about}: {newest}")
    return "\n".join(lines)
