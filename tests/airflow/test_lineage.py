"""What Airflow's provider of OpenLineage finds out about tasks: which partitions of which tables they read and wrote."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attr
import pytest
from airflow.providers.openlineage.extractors import ExtractorManager
from airflow.providers.openlineage.utils.utils import translate_airflow_asset
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowFailException
from airflow.utils.state import TaskInstanceState

from airflow_chronon.airflow.lineage import MOST_NAMED, Lineage, Written
from airflow_chronon.core.calendar.instants import DAY
from airflow_chronon.core.confs.conf import ConfKey
from airflow_chronon.core.confs.documents import ConfType
from airflow_chronon.core.partitions.labels import PartitionKey
from airflow_chronon.core.waits.dependencies import PartitionRange, TableDependency, Wait
from airflow_chronon.dags import build_dags
from tests.support.conf_roots import ConfRootOnDisk, dependency
from tests.support.mode_tasks import context, root, warehouse
from tests.support.schedules import at, spec_of

__all__ = ["root", "warehouse"]  # fixtures

DAY_SPEC = spec_of(DAY)


def told(task: Any, state: TaskInstanceState = TaskInstanceState.SUCCESS) -> dict[str, Any]:
    """What the real provider takes from a task that has ended."""
    run = SimpleNamespace(run_id="run-1")
    found = ExtractorManager().extract_metadata(run, task, state, task_instance=None)
    return as_json(found)


def as_json(found: Any) -> dict[str, Any]:
    def facet(dataset: Any, of: str) -> Any:
        facets = getattr(dataset, f"{of}Facets")
        return attr.asdict(facets["subset"])[f"{of}Condition"] if facets else None

    sides = {"input": found.inputs, "output": found.outputs}
    answer = {
        of: {f"{each.namespace} {each.name}": facet(each, of) for each in datasets} for of, datasets in sides.items()
    }
    json.dumps(answer)
    return answer


def partitions(*labels: str, column: str = "ds", **more: str) -> dict[str, Any]:
    found = [{column: label, **more} for label in labels]
    named = [{"dimensions": each, "identifier": "/".join(f"{k}={v}" for k, v in each.items())} for each in found]
    return {"type": "partition", "partitions": named}


class TestATask:
    @pytest.fixture(autouse=True)
    def reads(self, root: ConfRootOnDisk) -> None:
        root.staging_query(
            "orders.daily",
            query="SELECT id, ds FROM raw.orders WHERE ds BETWEEN {{ start_date }} AND {{ end_date }}",
            dependencies=[dependency("raw.orders")],
        )

    def test_that_did_the_work_tells_what_it_read(self, root: ConfRootOnDisk) -> None:
        task = build_dags(conf_root=root.path)["staging_query.orders.daily__1"].get_task("backfill")
        task.execute(context(start_ds="2026-06-01", end_ds="2026-06-02"))
        assert told(task) == {"input": {"chronon raw.orders": partitions("2026-06-01", "2026-06-02")}, "output": {}}

    def test_that_ends_a_run_tells_what_was_read_and_what_has_landed(self, root: ConfRootOnDisk) -> None:
        dag = build_dags(conf_root=root.path)["staging_query.orders.daily__1"]
        dag.get_task("backfill").execute(context("2026-06-01"))
        landed = dag.get_task("landed")
        landed.execute(context("2026-06-01"))
        assert told(landed) == {
            "input": {"chronon raw.orders": partitions("2026-06-01")},
            "output": {"chronon shop.orders_daily__1": partitions("2026-06-01")},
        }

    def test_whose_partitions_are_not_there_tells_of_none_written(self, root: ConfRootOnDisk) -> None:
        landed = build_dags(conf_root=root.path)["staging_query.orders.daily__1"].get_task("landed")
        with pytest.raises(AirflowFailException):
            landed.execute(context("2026-06-01"))
        assert told(landed, TaskInstanceState.FAILED)["output"] == {}

    @pytest.mark.parametrize("task_id", ["backfill", "landed"])
    def test_that_begins_tells_of_no_asset_that_is_no_table(self, root: ConfRootOnDisk, task_id: str) -> None:
        task = build_dags(conf_root=root.path)["staging_query.orders.daily__1"].get_task(task_id)
        run = SimpleNamespace(run_id="run-1")
        found = ExtractorManager().extract_metadata(run, task, TaskInstanceState.RUNNING, task_instance=None)
        names = [each.name for each in (*found.inputs, *found.outputs)]
        assert names == (["shop.orders_daily__1"] if task_id == "landed" else [])

    def test_of_another_branch_names_what_that_branch_writes(self, root: ConfRootOnDisk) -> None:  # C24
        root.settings((root.path / "chronon.yaml").read_text() + "branch: try\n")
        dag = build_dags(conf_root=root.path)["try--staging_query.orders.daily__1"]
        dag.get_task("backfill").execute(context("2026-06-01"))
        landed = dag.get_task("landed")
        landed.execute(context("2026-06-01"))
        assert {of: [*found] for of, found in told(landed).items()} == {
            "input": ["chronon raw.orders"],
            "output": ["chronon try--shop.orders_daily__1"],
        }


def condition(wait: Wait) -> Any:
    (found,) = as_json(Lineage(reads=(wait,)).to_openlineage())["input"].values()
    return found


def compared(comparison: str, value: str, column: str = "ds") -> dict[str, Any]:
    sides = {"left": {"field": column, "type": "field"}, "right": {"value": value, "type": "literal"}}
    return {**sides, "comparison": comparison, "type": "compare"}


class TestWhatWasRead:
    WAIT = Wait("raw.orders", "ds", (PartitionKey("2026-06-01"),), spec=DAY_SPEC)

    def test_has_its_lookback(self) -> None:
        back = PartitionRange(PartitionKey("2026-05-01"), PartitionKey("2026-05-31"))
        first, last = compared("GREATER_EQUAL_THAN", "2026-05-01"), compared("LESS_EQUAL_THAN", "2026-05-31")
        assert condition(replace(self.WAIT, lookback=back)) == {
            "left": partitions("2026-06-01"),
            "right": {"left": first, "right": last, "operator": "AND", "type": "binary"},
            "operator": "OR",
            "type": "binary",
        }
        endless = condition(replace(self.WAIT, lookback=PartitionRange(None, PartitionKey("2026-05-31"))))
        assert endless["right"] == last

    def test_of_a_time_partitioned_table_is_told_by_time(self) -> None:  # C18
        found = condition(Wait("vendor.clicks", "ts", until=at("2026-06-02T00:00:00Z")))
        assert found == compared("LESS_THAN", "2026-06-02T00:00:00Z", "ts")

    def test_by_an_expression_is_the_table_alone(self) -> None:  # C19
        assert condition(Wait("vendor.clicks", expression="max(ts) > 1")) is None

    def test_has_its_sub_partitions(self) -> None:  # C20
        assert condition(replace(self.WAIT, sub=("hr=23",))) == partitions("2026-06-01", hr="23")

    def test_of_very_many_partitions_is_a_range(self) -> None:  # S7
        table = TableDependency("raw.orders", "ds", DAY_SPEC)
        (wait,) = table.waits(
            at("2020-01-01T00:00:00Z"), at("2020-01-01T00:00:00Z") + 2 * MOST_NAMED * DAY, grid=DAY_SPEC.grid
        )
        found = condition(wait)
        assert found["left"] == compared("GREATER_EQUAL_THAN", "2020-01-01")
        assert found["right"] == compared("LESS_EQUAL_THAN", wait.labels[-1])

    def test_of_a_table_of_the_branch_has_its_name(self) -> None:  # C24
        lineage = Lineage.of("try--", [ConfKey(ConfType.STAGING_QUERY, "t.orders__1")])
        lineage.reads = (replace(self.WAIT, table="ns.t_orders__1__derived"), self.WAIT)
        lineage.writes = (Written("ns.t_mine__1", "ds", ("2026-06-01",)),)
        found = as_json(lineage.to_openlineage())
        assert [*found["input"]] == ["chronon try--ns.t_orders__1__derived", "chronon raw.orders"]
        assert [*found["output"]] == ["chronon try--ns.t_mine__1"]


def test_an_asset_of_anybodys_task_is_the_same_dataset() -> None:
    found = translate_airflow_asset(Asset(name="a", uri="chronon://shop/orders_daily__1"), None)
    assert found is not None and (found.namespace, found.name) == ("chronon", "shop.orders_daily__1")


def test_nothing_of_it_is_imported_where_nobody_asks(tmp_path: Path) -> None:
    import subprocess
    import sys

    script = "import sys, airflow_chronon.airflow.operators.modes as m; print('openlineage' in sys.modules)"
    environment = {"AIRFLOW_HOME": str(tmp_path), "PATH": "/usr/bin", "PYTHONPATH": ":".join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.splitlines()[-1] == "False"
