"""The demo's tables fit a terminal of 80 columns."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any, cast

import pyarrow
import pytest
from demo_progress import Expected, Progress, Watcher, features_table, landed_table, progress_table
from pyarrow import parquet
from rich.console import Console

from tests.support.shop_runs import DEMO_CONFS

LABELS = tuple(f"2026-06-01-{hour:02}-00" for hour in range(24))


class Landed:
    """A warehouse in which everything has landed; ``file`` holds the served rows."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def rows(self, progress: Progress) -> int:
        return 1_234_567

    def newest_file(self, progress: Progress) -> Path:
        return self.file


@pytest.fixture
def watcher(tmp_path: Path) -> Watcher:
    columns = {"order_id": [f"o-{number:06}" for number in range(9)]}
    columns |= {f"block_customer_id_amount_cents_sum_{days}d": ["123456"] * 9 for days in (1, 3, 7)}
    parquet.write_table(pyarrow.table(cast("Any", columns)), tmp_path / "rows.parquet")
    return cast("Watcher", Landed(tmp_path / "rows.parquet"))


def everything(*, waits: str = "") -> list[Progress]:
    return [
        Progress(Expected(name, name, "3h@1h", "ds", LABELS), name.replace(".", "_"), LABELS[:-1], waits)
        for name in DEMO_CONFS
    ]


@pytest.mark.parametrize("width", [80, 100])
def test_every_line_fits_and_no_name_is_torn(watcher: Watcher, width: int) -> None:
    console = Console(width=width, record=True, file=StringIO())
    landed = everything()
    features = features_table(landed, watcher=watcher, width=width)
    assert features is not None
    for table in (
        progress_table(everything(waits="commerce.commerce_orders_three_hourly__1 (2 runs)"), failures=[], title="P"),
        landed_table(landed, watcher=watcher),
        features,
    ):
        console.print(table)
    lines = console.export_text().splitlines()
    assert max(map(len, map(str.rstrip, lines))) <= width
    for name in (*DEMO_CONFS, "block_customer_id_amount_cents_sum_3d", "o-000000", LABELS[-2]):
        assert any(name in line for line in lines), name
