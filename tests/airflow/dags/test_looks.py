"""What people see of a conf's DAG in Airflow's lists, grid, forms and asset graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Asset
from airflow.sdk.exceptions import ParamValidationError
from airflow.serialization.serialized_objects import DagSerialization

from airflow_chronon.core.records.grid_contract import CONTRACTS_ASSET
from airflow_chronon.dags import build_dags
from tests.support.conf_roots import ConfRootOnDisk, dependency

READER = "staging_query.orders.reader__1"


@pytest.fixture
def root(tmp_path: Path) -> ConfRootOnDisk:
    """One conf that reads another's table and one that nobody here writes."""
    root = ConfRootOnDisk(tmp_path / "chronon")
    root.staging_query("orders.daily", schedule="0 6 * * *")
    root.staging_query("orders.reader", dependencies=[dependency("shop.orders_daily__1"), dependency("raw.visits")])
    root.settings("owner: amy\n")
    return root


def built(root: ConfRootOnDisk) -> dict[str, Any]:
    return build_dags(conf_root=root.path)


class TestLists:
    def test_name_the_conf_first_and_say_what_it_writes_when(self, root):
        dag = built(root)["staging_query.orders.daily__1"]
        assert dag.dag_display_name == "orders.daily__1 (staging query)"
        assert dag.description == "Writes shop.orders_daily__1, a partition for each 1d: at 0 6 * * * UTC"

    def test_say_of_a_dag_without_a_schedule_when_it_runs(self, root):
        # C12
        root.staging_query("orders.off", schedule="@never")
        assert built(root)["staging_query.orders.off__1"].description.endswith("when a partition is asked for")

    def test_name_the_branch_of_an_experiment(self, root):
        # C24
        root.settings("branch: try-v4\n")
        names = {dag.dag_display_name for dag in built(root).values()}
        assert "orders.daily__1 (staging query, branch try-v4)" in names


class TestGrid:
    def test_has_the_waits_in_one_group_with_short_names_and_unchanged_ids(self, root):
        dag = built(root)[READER]
        group = dag.task_group.children["waits"]
        names = {task_id: task.task_display_name for task_id, task in group.children.items()}
        assert names == {"wait.raw.visits": "visits", "wait.shop.orders_daily__1": "orders_daily__1"}
        assert DagSerialization.from_dict(DagSerialization.to_dict(dag)).task_group.children["waits"].children

    def test_has_no_empty_group(self, root):
        root.staging_query("orders.alone", dependencies=[])
        assert "waits" not in built(root)["staging_query.orders.alone__1"].task_group.children


class TestAssets:
    def inlets(self, dag: Any) -> dict[str, Any]:
        return {asset.uri: asset for task in dag.tasks if task.task_id.startswith("wait.") for asset in task.inlets}

    def test_of_the_tables_that_are_read_name_the_reader_as_their_consumer(self, root):
        assert set(self.inlets(built(root)[READER])) == {"chronon://shop/orders_daily__1", "chronon://raw/visits"}

    def test_tell_the_same_wherever_they_are_named(self, root):
        # what a consumer says and what the producer says are one row of Airflow's
        dags = built(root)
        [written] = dags["staging_query.orders.daily__1"].get_task("landed").outlets
        assert written == self.inlets(dags[READER])["chronon://shop/orders_daily__1"]
        assert written.extra == {
            "conf": "staging_query/orders.daily__1",
            "owner": "amy",
            "grid": "1d",
            "column": "ds",
            "format": "yyyy-MM-dd",
        }

    def test_are_left_out_at_the_start_of_a_task(self, root, monkeypatch):
        # Airflow fails a task that names an asset which it has not seen yet
        monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", READER)
        dag = built(root)[READER]
        assert not self.inlets(dag)
        written, kept = dag.get_task("landed").outlets, dag.get_task("backfill").inlets
        # by their names: an asset would load what every provider has to say of addresses
        assert written == [Asset.ref(name="chronon://shop/orders_reader__1")]
        assert kept == [Asset.ref(name=CONTRACTS_ASSET)]

    def test_of_an_experiment_are_its_own(self, root):
        # C24
        root.settings("branch: try-v4\n")
        dag = built(root)[f"try-v4--{READER}"]
        assert set(self.inlets(dag)) == {"chronon://try-v4--shop/orders_daily__1", "chronon://raw/visits"}

    def test_of_a_name_that_is_no_address_are_left_out(self, root):
        root.staging_query("orders.odd", dependencies=[dependency("bare"), dependency("a[b.c")])
        assert not self.inlets(built(root)["staging_query.orders.odd__1"])

    def test_that_keep_grids_say_that_they_are_no_tables(self, root):
        # C22
        [kept] = built(root)[READER].get_task("backfill").inlets
        assert (kept.uri, kept.group) == (CONTRACTS_ASSET, "chronon-internal")
        assert kept.extra["internal"].startswith("keeps the grid of each table's first write")


class TestTriggerForm:
    @pytest.mark.parametrize("typed", ["2026-06-31x", "yesterday", "26-13-01"])
    def test_refuses_a_range_that_nobody_can_read(self, root, typed):
        # C27
        dag = DagSerialization.from_dict(DagSerialization.to_dict(built(root)[READER]))
        with pytest.raises(ParamValidationError, match="start_ds") as refused:
            dag.params.deep_merge({"start_ds": typed}).validate()
        assert len(str(refused.value).partition("\n")[0]) < 150  # the pattern in it is one that people can read

    @pytest.mark.parametrize("typed", [None, "", "2026-06-01", "2026-06-01 03:00"])
    def test_takes_what_can_be_read(self, root, typed):
        # C27
        dag = DagSerialization.from_dict(DagSerialization.to_dict(built(root)[READER]))
        dag.params.deep_merge({"start_ds": typed, "end_ds": typed}).validate()

    def test_shows_a_label_that_the_grid_has(self, root):
        # C7: 2026-01-01-00-00 lies within a partition of 3h@1h
        table = {"partitionInterval": {"length": 3, "timeUnit": 0}, "partitionOffset": {"length": 1, "timeUnit": 0}}
        root.staging_query(
            "orders.shifted", schedule="15 1-22/3 * * *", execution={"outputTableInfo": table}, dependencies=[]
        )
        for name in ("start_ds", "end_ds"):
            said = built(root)["staging_query.orders.shifted__1"].params.get_param(name).description
            assert "a partition such as 2026-01-01-01-00" in said

    def test_says_that_a_backfill_ignores_a_range(self, root):
        for name in ("start_ds", "end_ds"):
            assert "backfill ignores it" in built(root)[READER].params.get_param(name).description


def test_no_task_repeats_the_parameters_of_its_dag(root):
    # a run takes them from the DAG; in each task they were most of what Airflow serialises and reads back
    dag = DagSerialization.from_dict(DagSerialization.to_dict(built(root)[READER]))
    assert set(dag.params) == {"start_ds", "end_ds"}
    assert not [task.task_id for task in dag.tasks if task.params]


def test_the_same_confs_make_the_same_dags(root):
    def hashes() -> dict[str, str]:
        from airflow.models.serialized_dag import SerializedDagModel

        return {dag_id: SerializedDagModel.hash(DagSerialization.to_dict(dag)) for dag_id, dag in built(root).items()}

    assert hashes() == hashes()
