"""One late hour of the sample shop: what is rebuilt behind it is all that differs, byte for byte (C15, C16, C17)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from airflow_chronon.conf_root.root import read_conf_root
from airflow_chronon.core.calendar.instants import DAY, HOUR, TimeWindow
from airflow_chronon.core.confs.plan import Plan, good_plans
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.runs.backfill import Replay, in_order
from airflow_chronon.core.runs.downstream import with_downstream
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.engine.local import LocalRunner
from airflow_chronon.engine.protocol import JobRequest
from tests.support.checkout import ROOT
from tests.support.confs import at

pytestmark = pytest.mark.soak

NOW = at("2026-06-03 04:00")
FIRST = at("2026-06-01")  #: of the tables that are written here
LATE = at("2026-06-02 05:00")  #: the hour whose orders were late


def shop() -> dict[str, ConfPlan]:
    found = good_plans(read_conf_root(ROOT / "dags" / "chronon", environ={"CHRONON_WAREHOUSE": "unused"}).judge())
    return {plan.key: plan for plan in found if isinstance(plan, ConfPlan) and Mode.BACKFILL in plan.dependencies}


def compute(warehouse: Path, plan: Plan, starts: Iterable[int]) -> None:
    assert isinstance(plan, ConfPlan)
    for start in starts:
        job = JobRequest(
            plan.conf.key.conf_type.value,
            plan.conf.meta.name,
            Mode.BACKFILL.value,
            plan.document,
            plan.file,
            plan.table,
            plan.spec,
            TimeWindow(start, start + plan.spec.grid.interval),
            inputs=plan.dependencies[Mode.BACKFILL],
        )
        LocalRunner(str(warehouse), threads=2).run(job, lambda line: None)


def compute_all(warehouse: Path, plans: dict[str, ConfPlan]) -> None:
    for key in in_order(plans, plans):
        grid = plans[key].spec.grid
        compute(warehouse, plans[key], grid.starts(grid.ceil(FIRST), grid.floor(NOW)))


def contents(warehouse: Path, plans: dict[str, ConfPlan]) -> dict[tuple[str, str], bytes]:
    """The files of every partition that is written here, by conf and label."""
    found = {}
    for plan in plans.values():
        for folder in (warehouse / plan.table).glob("*=*"):
            data = b"".join(path.read_bytes() for path in sorted(folder.iterdir()))
            found[plan.key, folder.name.partition("=")[2]] = data
    return found


def test_what_is_rebuilt_behind_a_late_hour_is_all_that_differs_byte_for_byte(tmp_path: Path) -> None:
    plans, before, after = shop(), tmp_path / "before", tmp_path / "after"
    script = [sys.executable, str(ROOT / "examples" / "shop_data.py"), str(after), "--now", "2026-06-03T04:00:00Z"]
    subprocess.run([*script, "--days", "2"], check=True, env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/examples"})
    shutil.copytree(after, before)
    (hour,) = (before / "shop.orders" / "ds=2026-06-02-05-00").glob("*.parquet")
    pq.write_table(pq.read_table(hour).slice(0, 3), hour)  # most of its orders come later

    compute_all(before, plans)
    compute_all(after, plans)  # as if nothing had been late
    were = contents(before, plans)

    shutil.copy(next((after / "shop.orders" / "ds=2026-06-02-05-00").glob("*.parquet")), hour)
    readers = [
        plan for plan in plans.values() if any(d.table == "shop.orders" for d in plan.dependencies[Mode.BACKFILL])
    ]
    roots = [Replay(plan, (plan.spec.grid.floor(LATE),)) for plan in readers]

    def landed(plan: Plan, table: str) -> frozenset[str]:
        return frozenset(label for key, label in were if key == plan.key)

    replays = with_downstream(roots, plans, landed, now=NOW)
    for replay in replays:
        compute(before, replay.plan, replay.starts)

    are, wanted = contents(before, plans), contents(after, plans)
    touched = {(replay.plan.key, label) for replay in replays for label in replay.labels}
    assert are == wanted  # nothing that should have been rebuilt was left out
    assert {place for place in were if were[place] != are[place]} <= touched
    assert len(touched) < len(were) / 2 and {key for key, _ in touched} > {plan.key for plan in readers}
    assert all(start >= LATE - DAY for replay in replays for start in replay.starts)
    assert min(start for replay in replays for start in replay.starts if replay.plan.grid.interval == HOUR) == LATE  # type: ignore[union-attr]
