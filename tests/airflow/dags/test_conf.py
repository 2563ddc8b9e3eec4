"""The DAG of a conf: its id, tags, tasks, wiring and page (C10, C11, C12, C24, C26)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from airflow.serialization.serialized_objects import DagSerialization

from airflow_chronon.airflow.dags.reconciler import build_reconciler
from airflow_chronon.conf_root.root import read_conf_root
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.dags import build_dags
from tests.support.conf_roots import ConfRootOnDisk, dependency, staging_query

ANY_SUCCESS = "none_failed_min_one_success"


@pytest.fixture(scope="module")
def dags() -> dict[str, Any]:
    """The DAGs of the whole corpus."""
    return build_dags(conf_root=Path(__file__).resolve().parents[2] / "data" / "main")


@pytest.fixture
def root(tmp_path: Path) -> ConfRootOnDisk:
    return ConfRootOnDisk(tmp_path / "chronon")


def shape(dag: Any) -> dict[str, list[str]]:
    """Each task with those before it."""
    return {task.task_id: sorted(task.upstream_task_ids) for task in dag.tasks}


def rules(dag: Any) -> dict[str, str]:
    return {task.task_id: str(getattr(task.trigger_rule, "value", task.trigger_rule)) for task in dag.tasks}


class TestEveryConf:
    def test_has_one_dag_with_the_id_that_check_says(self, dags, corpus):
        # C26
        verdicts = read_conf_root(corpus, environ={}).judge().values()
        assert set(dags) == {verdict.dag_id for verdict in verdicts if isinstance(verdict, ConfPlan)}
        assert "staging_query.checkout.orders.unversioned_bigquery" in dags  # no version, no suffix
        assert "group_by.checkout.purchases.daily__3" in dags

    def test_is_no_cycle_and_comes_back_from_its_serialised_form(self, dags):
        for dag in dags.values():
            dag.check_cycle()
            back = DagSerialization.from_dict(DagSerialization.to_dict(dag))
            assert back.timetable == dag.timetable
            assert back.catchup == dag.catchup
            assert {task.task_id for task in back.tasks} == {task.task_id for task in dag.tasks}

    def test_ends_in_landed_and_every_task_leads_there(self, dags):
        for dag in dags.values():
            assert [task.task_id for task in dag.tasks if not task.downstream_task_ids] == ["landed"], dag.dag_id

    def test_waits_and_gates_start_deferred_and_are_never_retried(self, dags):
        # a retry would begin the time limit anew
        for dag in dags.values():
            for task in dag.tasks:
                is_sensor = task.task_id.startswith(("wait.", "gate."))
                assert bool(task.start_from_trigger) is is_sensor
                if is_sensor:
                    assert task.retries == 0

    def test_waits_and_gates_know_what_their_run_writes(self, dags):
        # C22: they fail before they wait where the table is on another grid
        def told(dag_id: str) -> set[tuple[str, str]]:
            tasks = [task for task in dags[dag_id].tasks if task.task_id.startswith(("wait.", "gate."))]
            kwargs = [task.start_trigger_args.trigger_kwargs for task in tasks]
            return {(each["conf"], each["output"]) for each in kwargs}

        conf = "staging_query/checkout.orders.daily_default__1"
        assert told("staging_query.checkout.orders.daily_default__1") == {
            (conf, "checkout_features.checkout_orders_daily_default__1")
        }

    def test_limits_its_work_and_keeps_the_dag_wide(self, dags):
        # H12: a due fire waits for a slot; a narrow DAG would lose fires
        for dag in dags.values():
            assert dag.max_active_runs == 64
            work = [t for t in dag.tasks if t.task_id in ("backfill", "upload", "upload_to_kv", "metadata_upload")]
            assert work
            assert {(task.max_active_tis_per_dag, task.retries) for task in work} == {(4, 2)}

    def test_takes_a_range_in_its_trigger_form(self, dags):
        # C27
        for dag in dags.values():
            assert dag.params.dump() == {"start_ds": None, "end_ds": None}

    def test_is_never_held_back_by_a_person(self, dags):
        # C25: the config is the source of truth
        assert {dag.is_paused_upon_creation for dag in dags.values()} == {False}

    def test_has_the_tags_people_filter_by(self, dags):
        assert sorted(dags["group_by.checkout.purchases.daily__3"].tags) == [
            "branch:main",
            "chronon",
            "grid:1d",
            "online",
            "team:checkout",
            "type:group_by",
            "version:3",
        ]
        assert "unscheduled" in dags["staging_query.checkout.orders.never_scheduled__1"].tags
        assert "grid:3h@1h" in dags["staging_query.risk.signals.three_hour_signals__3"].tags


class TestWiring:
    def test_staging_query(self, dags):
        dag = dags["staging_query.checkout.orders.daily_default__1"]
        assert shape(dag) == {
            "wait.vendor.orders": [],
            "ready": ["wait.vendor.orders"],
            "backfill": ["ready"],
            "landed": ["backfill"],
        }
        assert rules(dag) == dict.fromkeys(("wait.vendor.orders", "ready", "backfill"), "all_success") | {
            "landed": ANY_SUCCESS
        }

    def test_group_by_that_is_not_online(self, dags):
        dag = dags["group_by.checkout.purchases.from_staging_daily__1"]
        assert {"upload", "upload_to_kv"}.isdisjoint(shape(dag))
        assert shape(dag)["landed"] == ["backfill"]

    def test_group_by_with_one_schedule_has_no_gates(self, dags):
        # C10, C11
        tasks = shape(dags["group_by.checkout.purchases.daily__3"])
        assert tasks == {
            "wait.vendor.purchases": [],
            "ready": ["wait.vendor.purchases"],
            "backfill": ["ready"],
            "upload": ["backfill", "ready"],
            "upload_to_kv": ["upload"],
            "landed": ["backfill", "upload", "upload_to_kv"],
        }

    def test_two_schedules_have_a_gate_before_each_mode(self, dags):
        # C10: modes that skip and modes that wait for their own fire, green in every case
        [dag] = [d for d in dags.values() if d.dag_id.endswith("purchases.online_other_time__1")]
        tasks, trigger = shape(dag), rules(dag)
        assert tasks["gate.backfill"] == ["ready"]
        assert tasks["backfill"] == ["gate.backfill"]
        assert tasks["gate.upload"] == ["backfill", "ready"]
        assert tasks["upload"] == ["gate.upload"]
        assert tasks["upload_to_kv"] == ["upload"]
        assert tasks["landed"] == ["backfill", "upload", "upload_to_kv"]
        assert trigger["gate.backfill"] == trigger["upload"] == trigger["upload_to_kv"] == "all_success"
        assert trigger["gate.upload"] == trigger["landed"] == ANY_SUCCESS

    def test_online_join_uploads_metadata_without_waiting_for_data(self, dags):
        # C11
        found = [d for d in dags.values() if d.dag_id.startswith("join.") and "metadata_upload" in d.task_ids]
        assert found
        for dag in found:
            tasks = shape(dag)
            entry = tasks["gate.metadata_upload"] if "gate.metadata_upload" in tasks else tasks["metadata_upload"]
            assert "metadata_upload" in tasks["landed"]
            if "backfill" in tasks:
                assert not {"ready", "backfill"} & set(entry), dag.dag_id
                assert all(name.endswith("__upload") for name in entry)

    def test_a_mode_waits_only_for_its_own_tables(self, dags):
        dag = dags["join.checkout.training.online_join__1"]
        tasks = shape(dag)
        assert tasks["ready"]
        assert not [name for name in tasks["ready"] if name.endswith("__upload")]

    def test_an_unscheduled_conf_has_a_dag_for_replays(self, dags):
        # C12
        dag = dags["staging_query.checkout.orders.never_scheduled__1"]
        assert dag.timetable.summary == "@never"
        assert "backfill" in shape(dag)

    def test_unscheduled_confs_can_be_left_out(self, root):
        # C12
        root.staging_query("orders.a", schedule="@never")
        root.staging_query("orders.b")
        assert len(build_dags(conf_root=root.path)) == 2
        root.settings("unscheduled: omit\n")
        assert list(build_dags(conf_root=root.path)) == ["staging_query.orders.b__1"]

    def test_a_conf_of_another_environment_has_none(self, dags):
        # C12
        assert not [dag_id for dag_id in dags if "canary_only" in dag_id]


class TestSettings:
    def test_of_work_reach_its_tasks(self, root):
        root.staging_query("orders.a")
        root.settings(
            "retries: 5\nmax_active_runs: 2\nmax_pending_runs: 9\nowner: amy\ncatchup: true\nstart_date: 2026-01-01\n"
            "task_defaults: {pool: heavy, queue: big, priority_weight: 7, email: a@b.example,"
            " on_failure_callback: airflow_chronon.core.calendar.instants.iso}\n"
        )
        [dag] = build_dags(conf_root=root.path).values()
        work = dag.get_task("backfill")
        assert (work.retries, work.max_active_tis_per_dag, work.pool, work.queue, work.priority_weight) == (
            5,
            2,
            "heavy",
            "big",
            7,
        )
        assert work.owner == "amy"
        assert [callback.__name__ for callback in _as_list(work.on_failure_callback)] == ["iso"]
        assert (dag.max_active_runs, dag.catchup) == (9, True)
        assert dag.start_date.isoformat() == "2026-01-01T00:00:00+00:00"
        assert [dag.get_task(name).retries for name in ("landed", "wait.raw.orders")] == [5, 0]
        for around in (dag.get_task("landed"), dag.get_task("wait.raw.orders")):  # the pool is for work
            assert (around.pool, around.queue) == ("default_pool", "big")
            assert around.email == "a@b.example"
            assert [callback.__name__ for callback in _as_list(around.on_failure_callback)] == ["iso"]

    def test_whatever_the_priority_what_ends_a_run_goes_before_work_and_the_reconciler_before_all(self, root):
        root.staging_query("orders.a")
        root.settings("task_defaults: {priority_weight: 1000000}\n")
        [dag] = build_dags(conf_root=root.path).values()
        ordered = [
            dag.get_task("backfill"),
            dag.get_task("landed"),
            build_reconciler(near=__file__, conf_root=root.path).get_task("reconcile"),
        ]
        assert {str(task.weight_rule) for task in ordered} == {"absolute"}  # nothing is added for what lies behind
        weights = [task.priority_weight for task in ordered]
        assert weights == sorted(set(weights)) and weights[-1] < 2**31
        assert weights[0] == 1_000_000

    def test_of_waits_reach_the_trigger(self, root):
        root.staging_query("orders.a")
        root.settings(
            "sensor: {poll_seconds: 7, timeout: 3h, on_timeout: skip}\ncatalog: {kind: filesystem, root: /w}\n"
        )
        [dag] = build_dags(conf_root=root.path).values()
        args = dag.get_task("wait.raw.orders").start_trigger_args
        assert (args.trigger_kwargs["poll_seconds"], args.trigger_kwargs["on_timeout"]) == (7, "skip")
        assert args.trigger_kwargs["catalog"] == {"kind": "filesystem", "root": "/w"}
        assert args.timeout.total_seconds() > 3 * 3600  # the trigger's own deadline comes first


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


class TestAssets:
    def test_an_output_table_is_an_asset(self, dags):
        dag = dags["group_by.checkout.purchases.daily__3"]
        uris = [asset.uri for asset in dag.get_task("landed").outlets]
        table = "chronon://checkout_features/checkout_purchases_daily__3"
        assert uris == [table, f"{table}__upload"]

    def test_another_branch_has_ids_and_assets_of_its_own(self, root):
        # C24: an experiment never wakes production's consumers
        root.staging_query("orders.a")
        root.settings("branch: try-v4\n")
        [dag] = build_dags(conf_root=root.path).values()
        assert dag.dag_id == "try-v4--staging_query.orders.a__1"
        assert [asset.uri for asset in dag.get_task("landed").outlets] == ["chronon://try-v4--shop/orders_a__1"]
        assert "branch:try-v4" in dag.tags


class TestNames:
    def test_a_name_that_is_too_long_keeps_its_version_and_stays_unique(self, root):
        # C26, prior art 18
        for end in ("a", "b"):
            place = ("orders", "x" * 150, "y" * 150 + f"{end}__12")
            name = ".".join(place)
            root.write("staging_query", name, staging_query(name, version="12"), file="/".join(place))
        dags = build_dags(conf_root=root.path)
        assert len(dags) == 2
        for dag_id in dags:
            assert len(dag_id) <= 250
            assert dag_id.endswith("__12")

    def test_letters_that_airflow_does_not_take_are_distinguished(self, root):
        # C26, prior art 17
        for name in ("orders.ö", "orders.ä"):
            root.staging_query(name)
        dags = build_dags(conf_root=root.path)
        assert len(dags) == 2
        assert all(dag_id.isascii() for dag_id in dags)

    def test_a_table_name_that_is_no_task_id_still_has_a_wait(self, root):
        tables = ["cat`alog.ä", "cat`alog.ö", "raw." + "t" * 300]
        root.staging_query("orders.a", dependencies=[dependency(table) for table in tables])
        [dag] = build_dags(conf_root=root.path).values()
        waits = [name for name in dag.task_ids if name.startswith("wait.")]
        assert len(waits) == 3
        assert all(len(name) <= 250 and name.isascii() for name in waits)
        DagSerialization.to_dict(dag)


class TestPage:
    def test_shows_grid_schedule_reads_neighbours_and_reference_runs(self, dags):
        page = dags["staging_query.risk.signals.three_hour_signals__3"].doc_md
        for part in (
            "3h@1h",
            "every 3h",
            "#### Reads",
            "Producers:",
            "Consumers:",
            "2026-06-01",
            "#### Runs of a reference week",
        ):
            assert part in page

    def test_links_producers_and_consumers_to_their_dags(self, dags):
        page = dags["staging_query.checkout.orders.daily_rollup_of_hourly__1"].doc_md
        producer = "staging_query.checkout.orders.hourly_rollup__1"
        assert f"Producers: [`{producer}`](dags/{producer})." in page  # relative: the UI may have a base path
        other = dags["staging_query.checkout.orders.hourly_rollup__1"].doc_md
        assert (
            "`staging_query.checkout.orders.daily_rollup_of_hourly__1`" in other.split("Consumers:")[1].splitlines()[0]
        )

    def test_a_bar_in_a_name_breaks_no_table(self, root):
        root.staging_query(
            "orders.a",
            execution={
                "outputTableInfo": {"partitionFormat": "yyyy|MM|dd", "partitionInterval": {"length": 1, "timeUnit": 1}}
            },
        )
        [dag] = build_dags(conf_root=root.path).values()
        lines = [line for line in dag.doc_md.splitlines() if line.startswith("|")]
        for line in lines:
            cells = line.replace("\\|", "").count("|")
            assert cells in (5, 6)
        assert any("yyyy\\|MM\\|dd" in line for line in lines)

    def test_a_changed_query_changes_the_page(self, root):
        root.staging_query("orders.a", query="SELECT 1 AS a, '{{ start_date }}' AS ds")
        [before] = build_dags(conf_root=root.path).values()
        root.staging_query("orders.a", query="SELECT 2 AS a, '{{ start_date }}' AS ds")
        [after] = build_dags(conf_root=root.path).values()
        assert before.doc_md != after.doc_md
