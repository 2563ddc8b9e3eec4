"""An operator of somebody else's through Airflow's own task runner: it defers, its trigger fires, it goes on (C28)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from airflow.configuration import conf

from airflow_chronon.dags import build_dags
from tests.support.conf_roots import ConfRootOnDisk
from tests.support.work_operators import __name__ as operators

LABEL = "2026-06-01"


@contextmanager
def _loader(root: ConfRootOnDisk) -> Iterator[Any]:
    """The DAG of the conf, once a file of the dags folder loads it, as Airflow wants it."""
    folder = Path(conf.get("core", "dags_folder"))
    folder.mkdir(exist_ok=True)
    loader = folder / "delegating.py"
    loader.write_text(
        "from airflow_chronon.dags import build_dags  # and the word airflow, for its safe mode\n"
        f"globals().update(build_dags(conf_root={str(root.path)!r}))\n"
    )
    try:
        yield build_dags(conf_root=root.path)["staging_query.orders.daily__1"]
    finally:
        loader.unlink()


@pytest.mark.usefixtures("airflow_database")
def test_one_that_defers_goes_on_where_it_was_and_the_partition_lands(tmp_path: Path) -> None:
    root = ConfRootOnDisk(tmp_path / "chronon")
    seen, go = tmp_path / "seen", tmp_path / "go"
    go.touch()
    arguments: dict[str, Any] = {
        "seen": str(seen),
        "awaits": str(go),
        "table_folder": f"{tmp_path}/w/{{table}}/ds={{partition_key}}",
        "note": "{job_token}",
    }
    runner = {"kind": "operator", "class": f"{operators}.DeferringOperator", "arguments": arguments}
    root.settings(f"retries: 0\ncatalog: {{root: {tmp_path}/w}}\nrunner: {json.dumps(runner)}\n")
    root.staging_query("orders.daily", dependencies=[])
    with _loader(root) as dag:
        run = dag.test(run_conf={"start_ds": LABEL})
    assert run.state == "success"
    lines = [json.loads(line) for line in seen.read_text().splitlines()]
    assert [line["what"] for line in lines] == ["submitted", "went on", "execute"]
    assert [line.get("event") for line in lines] == [None, "there", None]
    assert len({line["note"] for line in lines}) == 1
    assert (tmp_path / "w" / "shop.orders_daily__1" / f"ds={LABEL}").exists()
