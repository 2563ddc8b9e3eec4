"""Source data of the sample shop: what its systems would land in a warehouse of Hive-style Parquet folders.

    python examples/shop_data.py WAREHOUSE [--now 2026-06-01T12:00:00Z] [--days 2]

Rows are seeded by the label of their partition, so one label always holds the same rows, whenever it is written. Times
are UTC, written without a zone. Only partitions that have closed are written, each with one rename.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_chronon.core.calendar.instants import DAY, HOUR, MINUTE, Instant, from_datetime, parse_instant, to_datetime
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionSpec, default_pattern, escape_label, partition_format

QUARTER = 15 * MINUTE
ORDERS_PER_HOUR = 12
CUSTOMERS = 40
VISITS_PER_DAY = 120

#: How many daily partitions the weekly query can ask for: its newest fire is up to a week (and six hours) old and reads
#: the seven days before it; two more give room to whoever looks at the clock later.
DAILY_HISTORY = 16

#: The longest processing delay of a daily staging query of the sample repo. Before it is over the newest daily fire is
#: yesterday's, which reads the day before that; the days of hourly data are counted from the fire, not from midnight.
LONGEST_DELAY = 2 * HOUR

Row = dict[str, Any]


@dataclass(frozen=True)
class SourceTable:
    """One table that another system lands, in the steps of ``spec``."""

    name: str
    spec: PartitionSpec
    schema: pa.Schema
    rows: Callable[[Instant], list[Row]]  #: the rows of the step that starts at this instant
    in_folders: bool = True  #: a time-partitioned table has none: each step is one more file in it
    daily: bool = False  #: keeps ``DAILY_HISTORY`` days instead of the days asked for

    def path(self, start: Instant) -> str:
        """Where the step that starts at ``start`` lands, relative to the warehouse."""
        label = escape_label(self.spec.label(start))
        folder = f"{self.spec.column}={label}/part-0" if self.in_folders else f"part-{label}"
        return f"{self.name}/{folder}.parquet"

    def steps(self, *, now: Instant, days: int) -> range:
        """The starts of every step that has closed at ``now``, oldest first."""
        kept = max(days, DAILY_HISTORY) if self.daily else days
        first = (now - LONGEST_DELAY) // DAY * DAY - kept * DAY
        return range(first, self.spec.grid.floor(now), self.spec.grid.interval)


def _seconds(instant: Instant) -> datetime:
    return to_datetime(instant).replace(tzinfo=None)


def _seeded(table: str, key: object) -> random.Random:
    return random.Random(f"{table}/{key}")


def _orders(start: Instant) -> list[Row]:
    """The orders of one hour, one in every five minutes; some are cancelled again and stay with a quantity of 0."""
    chance, rows = _seeded("shop.orders", start), list[Row]()
    for number in range(ORDERS_PER_HOUR):
        quantity = chance.randint(1, 4)
        if number % 3 == 0 and chance.random() < 0.25:
            quantity = 0
        rows.append(
            {
                "order_id": f"o{to_datetime(start):%Y%m%d%H}{number:02d}",
                "customer_id": chance.randint(1, CUSTOMERS),
                "product": chance.choice(("bread", "cheese", "olives", "tea")),
                "quantity": quantity,
                "amount_cents": quantity * chance.randint(150, 2500),
                "ordered_at": _seconds(start + number * 5 * MINUTE + chance.randrange(4 * MINUTE)),
            }
        )
    return rows


def _payments(start: Instant) -> list[Row]:
    """The payments after ``start`` up to the end of the quarter.

    The last one is exactly at the end: a time-partitioned table counts as landed up to its newest value (C18).
    """
    chance, rows = _seeded("shop.payments", start), list[Row]()
    quarter = start % HOUR // QUARTER
    placed = _orders(start - start % HOUR)[quarter * 3 : quarter * 3 + 3]
    for order in placed:
        if not order["quantity"]:
            continue
        last = order is placed[-1]
        paid_at = _seconds(start + QUARTER) if last else order["ordered_at"] + timedelta(seconds=chance.randint(5, 50))
        rows.append(
            {
                "payment_id": f"p{order['order_id'][1:]}",
                "order_id": order["order_id"],
                "customer_id": order["customer_id"],
                "method": chance.choice(("card", "transfer", "voucher")),
                "amount_cents": order["amount_cents"],
                "paid_at": paid_at,
            }
        )
    return rows


def _customers(start: Instant) -> list[Row]:
    """Every customer as of one day: who they are stays, their tier may change from day to day."""
    chance, rows = _seeded("crm.customers", start), list[Row]()
    for number in range(1, CUSTOMERS + 1):
        person = _seeded("person", number)
        usual = person.choice(("basic", "basic", "silver", "gold"))
        rows.append(
            {
                "customer_id": number,
                "name": f"{person.choice(('Ada', 'Edsger', 'Grace', 'Niklaus'))} {number}",
                "tier": "gold" if chance.random() < 0.05 else usual,
                "country": person.choice(("DE", "FR", "SE")),
                "signed_up_on": date(2024, 1, 1) + timedelta(days=person.randrange(300)),
            }
        )
    return rows


def _visits(start: Instant) -> list[Row]:
    chance = _seeded("web.visits", start)
    return [
        {
            "customer_id": chance.randint(1, CUSTOMERS),
            "channel": chance.choice(("app", "mail", "search")),
            "pages": chance.randint(1, 20),
            "visited_at": _seconds(start + chance.randrange(DAY)),
        }
        for _ in range(VISITS_PER_DAY)
    ]


def _spec(interval: int, *, column: str, pattern: str = "") -> PartitionSpec:
    grid = PartitionGrid(interval)
    return PartitionSpec(grid, partition_format(pattern or default_pattern(grid)), column)


_TIME = pa.timestamp("us")

TABLES: tuple[SourceTable, ...] = (
    SourceTable(
        "shop.orders",
        _spec(HOUR, column="ds"),
        pa.schema(
            {
                "order_id": pa.string(),
                "customer_id": pa.int64(),
                "product": pa.string(),
                "quantity": pa.int32(),
                "amount_cents": pa.int64(),
                "ordered_at": _TIME,
            }
        ),
        _orders,
    ),
    SourceTable(
        "shop.payments",
        _spec(QUARTER, column="paid_at"),
        pa.schema(
            {
                "payment_id": pa.string(),
                "order_id": pa.string(),
                "customer_id": pa.int64(),
                "method": pa.string(),
                "amount_cents": pa.int64(),
                "paid_at": _TIME,
            }
        ),
        _payments,
        in_folders=False,
    ),
    SourceTable(
        "crm.customers",
        _spec(DAY, column="dt", pattern="yyyyMMdd"),
        pa.schema(
            {
                "customer_id": pa.int64(),
                "name": pa.string(),
                "tier": pa.string(),
                "country": pa.string(),
                "signed_up_on": pa.date32(),
            }
        ),
        _customers,
        daily=True,
    ),
    SourceTable(
        "web.visits",
        _spec(DAY, column="ds"),
        pa.schema({"customer_id": pa.int64(), "channel": pa.string(), "pages": pa.int32(), "visited_at": _TIME}),
        _visits,
        daily=True,
    ),
)


def write_source_data(*, warehouse: Path, now: datetime, days: int = 2) -> Mapping[str, int]:
    """Write every closed partition of the last ``days`` whole days and of today, and how many were missing, by table.

    Daily tables get at least :data:`DAILY_HISTORY` days. What is there already is left alone. ``now`` is UTC if naive;
    ``days`` is at least 1, else ValueError.
    """
    if days < 1:
        raise ValueError(f"days must be at least 1, not {days}")
    at = from_datetime(now)
    return {table.name: _write(table, warehouse, table.steps(now=at, days=days)) for table in TABLES}


def land_newer(*, warehouse: Path, now: datetime) -> Mapping[str, int]:
    """Write what closed since the newest partition that is there, and how many that were, by table.

    Nothing older is filled in, so calling it again changes nothing. A table without any data gets what
    :func:`write_source_data` would write.
    """
    at = from_datetime(now)
    return {table.name: _write(table, warehouse, _newer(table, warehouse, at)) for table in TABLES}


def _newer(table: SourceTable, warehouse: Path, now: Instant) -> range:
    steps = table.steps(now=now, days=2)
    interval, end = table.spec.grid.interval, steps.stop
    landed = _landed(table, warehouse)
    return range(max(landed) + interval, end, interval) if landed else steps


def _landed(table: SourceTable, warehouse: Path) -> set[Instant]:
    """The starts of the steps that are there: folders are read back through the table's own label format."""
    pattern = f"{table.spec.column}=*/part-0.parquet" if table.in_folders else "part-*.parquet"
    found = (warehouse / table.name).glob(pattern)
    names = (path.parent.name.partition("=")[2] if table.in_folders else path.stem[5:] for path in found)
    return {table.spec.start_of(name) for name in names}


def _write(table: SourceTable, warehouse: Path, starts: range) -> int:
    written = 0
    for start, target in _missing(table, warehouse, starts):
        target.parent.mkdir(parents=True, exist_ok=True)
        # Beside the tables, so that no listing of a table sees it, and on their file system, so that a rename moves it.
        handle, part = tempfile.mkstemp(dir=warehouse, prefix=".landing-")
        os.close(handle)
        try:
            pq.write_table(pa.Table.from_pylist(table.rows(start), schema=table.schema), part)
            os.chmod(part, 0o644)
            os.replace(part, target)
        except BaseException:
            os.unlink(part)
            raise
        written += 1
    return written


def _missing(table: SourceTable, warehouse: Path, starts: range) -> Iterator[tuple[Instant, Path]]:
    for start in starts:
        target = warehouse / table.path(start)
        if not target.exists():
            yield start, target


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the source data of the sample shop.")
    parser.add_argument("warehouse", type=Path, help="folder that holds one folder per table; made if missing")
    parser.add_argument("--now", metavar="ISO", help="the moment up to which data has landed (default: now)")
    parser.add_argument("--days", type=int, default=2, help="whole days before today (default: 2)")
    args = parser.parse_args(argv)
    try:
        now = to_datetime(parse_instant(args.now)) if args.now else datetime.now(UTC)
    except ValueError:
        parser.error(f"--now {args.now!r} is no ISO-8601 instant; write it like 2026-06-01T12:00:00Z")
    if args.days < 1:
        parser.error(f"--days {args.days} is too few; at least 1")
    for name, count in write_source_data(warehouse=args.warehouse, now=now, days=args.days).items():
        print(f"{name}: {count} partitions written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
