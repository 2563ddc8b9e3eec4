"""The work of a mode and the check after it, with the embedded engine over real folders (C9, C27, C28, H5, H7)."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from airflow_chronon.airflow.operators.modes import ChrononOperator
from airflow_chronon.dags import build_dags
from airflow_chronon.engine.protocol import FakeRunner
from airflow_chronon.errors import ChrononError, Fault, JobFailed, JobRefused
from tests.support.mode_tasks import context, root, task, warehouse
from tests.support.schedules import at

KEY = "2026-06-01"
__all__ = ["root", "warehouse"]  # fixtures


def rows(warehouse: Path, label: str) -> int:
    folder = warehouse / "shop.orders_daily__1" / f"ds={label}"
    return sum(pq.read_metadata(file).num_rows for file in folder.glob("*.parquet"))


@pytest.fixture
def runner(mocker) -> FakeRunner:
    """A runner that only remembers, in place of the one that the settings name."""
    runner = FakeRunner()
    mocker.patch("airflow_chronon.airflow.operators.modes.build_runner", return_value=runner)
    return runner


class TestTheJob:
    def test_writes_the_partition_of_its_key(self, root, warehouse, caplog):
        # C9
        caplog.set_level(logging.INFO)
        task(root, "backfill").execute(context(KEY))
        assert rows(warehouse, KEY) == 10
        assert not (warehouse / "shop.orders_daily__1" / "ds=2026-06-02").exists()
        assert "partition 2026-06-01, window [2026-06-01T00:00:00Z, 2026-06-02T00:00:00Z)" in caplog.text
        assert "reads raw.orders ds=2026-06-01" in caplog.text

    def test_writes_the_range_of_its_params(self, root, warehouse):
        # C27
        task(root, "backfill").execute(context(start_ds="2026-06-01", end_ds="2026-06-02"))
        assert (rows(warehouse, "2026-06-01"), rows(warehouse, "2026-06-02")) == (10, 20)

    def test_writes_the_interval_that_someone_gave(self, root, warehouse):
        # H7
        days = (datetime(2026, 6, 1, tzinfo=UTC), datetime(2026, 6, 3, tzinfo=UTC))
        task(root, "backfill").execute(context(interval=days))
        assert rows(warehouse, "2026-06-02") == 20

    def test_takes_its_key_and_not_a_logical_date_that_contradicts_it(self, root, warehouse):
        # the key wins
        days = (datetime(2026, 6, 2, tzinfo=UTC), datetime(2026, 6, 3, tzinfo=UTC))
        task(root, "backfill").execute(context(KEY, interval=days))
        assert rows(warehouse, KEY) == 10
        assert not (warehouse / "shop.orders_daily__1" / "ds=2026-06-02").exists()

    def test_of_a_run_without_a_window_is_skipped(self, root, warehouse):
        # H7
        with pytest.raises(AirflowSkipException, match="no partition was asked for"):
            task(root, "backfill").execute(context())
        assert not (warehouse / "shop.orders_daily__1").exists()

    def test_of_a_bare_logical_date_too(self, root):
        moment = datetime(2026, 6, 1, tzinfo=UTC)
        with pytest.raises(AirflowSkipException, match="no partition was asked for"):
            task(root, "backfill").execute(context(interval=(moment, moment)))

    @pytest.mark.parametrize(
        ("request_", "says"),
        [
            ({"key": KEY, "start_ds": KEY}, "give the key, or the range, not both"),
            ({"end_ds": KEY}, "given without start_ds"),
            ({"key": "2026-07-01"}, "has not closed"),
            ({"key": "1 June"}, "is not in the format"),
        ],
    )
    def test_of_a_request_that_contradicts_itself_fails_for_good(self, root, request_, says):
        # C27: a retry would say the same
        with pytest.raises(AirflowFailException, match=f"(?i){says}"):
            task(root, "backfill").execute(context(**request_))

    def test_that_a_runner_refuses_is_not_tried_again(self, root, runner, mocker):
        mocker.patch.object(runner, "run", side_effect=JobRefused(Fault("runner", "", "cannot do it", "use another")))
        with pytest.raises(AirflowFailException, match="cannot do it"):
            task(root, "backfill").execute(context(KEY))

    def test_that_fails_may_be_tried_again(self, root, runner, mocker):
        mocker.patch.object(runner, "run", side_effect=JobFailed(Fault("runner", "", "exit code 1")))
        with pytest.raises(AirflowException, match="exit code 1") as failure:
            task(root, "backfill").execute(context(KEY))
        assert not isinstance(failure.value, AirflowFailException)

    def test_stops_its_runner_when_it_is_killed(self, root, runner):
        work = task(root, "backfill")
        work.on_kill()  # before it began: nothing to stop
        work.execute(context(KEY))
        work.on_kill()
        assert runner.stopped


class TestACommandThatGoesWrong:
    """Each is one sentence; what another try cannot mend is not tried again."""

    @pytest.mark.parametrize(
        ("runner", "is_final", "says"),
        [
            (
                {"argv": ["no-such-driver", "{mode}"]},
                True,
                r"cannot start 'no-such-driver': .* Install it on the worker",
            ),
            ({"argv": ["sh", "-c", "exit 1"]}, False, r"sh ended with exit code 1 \(runner\)\. See the log above"),
            ({"argv": ["sleep", "1000"], "timeout": "1s"}, False, r"sleep was not done in 1s, .* or give it more time"),
        ],
    )
    def test_fails(self, root, warehouse, runner, is_final, says):
        settings = json.dumps({"kind": "command", **runner})
        root.settings(f"catalog: {{kind: filesystem, root: {warehouse}}}\nrunner: {settings}\n")
        with pytest.raises(AirflowException, match=f"^staging_query/orders.daily__1: .*{says}") as failure:
            task(root, "backfill").execute(context(KEY))
        assert isinstance(failure.value, AirflowFailException) is is_final
        assert "\n" not in str(failure.value)

    def test_that_writes_nothing_ends_well_and_fails_the_run(self, root, warehouse):
        root.settings(f"catalog: {{kind: filesystem, root: {warehouse}}}\nrunner: {{kind: command, argv: ['true']}}\n")
        task(root, "backfill").execute(context(KEY))
        says = (
            "the job ended well, yet .* lacks the partitions 2026-06-01 .* does it write another table, label or column"
        )
        with pytest.raises(AirflowFailException, match=says):
            task(root, "landed").execute(context(KEY))


class TestItsEnvironment:
    def test_tells_the_window(self, root, runner):
        # H5
        task(root, "backfill").execute(context(start_ds="2026-06-01", end_ds="2026-06-02"))
        [job] = runner.jobs
        assert job.environment == {
            "CHRONON_CONF": "staging_query/orders.daily__1",
            "CHRONON_MODE": "backfill",
            "CHRONON_RUN_ID": "run-1",
            "HOPS_START_TIME": "2026-06-01T00:00:00Z",
            "HOPS_END_TIME": "2026-06-03T00:00:00Z",
            "HOPS_LOGICAL_DATE": "2026-06-01T00:00:00Z",
            "CHRONON_START_TIME": "2026-06-01T00:00:00Z",
            "CHRONON_END_TIME": "2026-06-03T00:00:00Z",
            "CHRONON_LOGICAL_DATE": "2026-06-01T00:00:00Z",
            "CHRONON_PARTITION": "2026-06-02",
            "CHRONON_PARTITIONS": "2026-06-01,2026-06-02",
        }
        assert (job.conf, job.table, job.mode) == ("staging_query/orders.daily__1", "shop.orders_daily__1", "backfill")
        assert Path(job.path).is_file()

    def test_has_no_window_when_none_was_given(self, root, runner):
        # H7
        task(root, "backfill").execute(context())
        [job] = runner.jobs
        assert set(job.environment) == {"CHRONON_CONF", "CHRONON_MODE", "CHRONON_RUN_ID"}

    def test_gives_way_to_what_was_set_on_the_run(self, root, runner):
        # H5
        task(root, "backfill").execute(context(KEY, conf={"env": {"HOPS_START_TIME": "mine", "REGION": 7}}))
        [job] = runner.jobs
        assert job.environment["HOPS_START_TIME"] == "mine"
        assert job.environment["REGION"] == "7"
        assert job.environment["HOPS_END_TIME"] == "2026-06-02T00:00:00Z"

    @pytest.mark.parametrize("conf", [None, {}, {"env": None}, {"env": "REGION=eu"}])
    def test_takes_a_run_without_one(self, root, runner, conf):
        task(root, "backfill").execute(context(KEY, conf=conf))
        assert "REGION" not in runner.jobs[0].environment


class TestUploads:
    DAG_ID = "group_by.checkout.purchases.daily__3"

    @pytest.fixture
    def tasks(self, corpus, clock, runner) -> dict[str, Any]:
        clock.instant = at("2026-06-10T00:30:00Z")
        return build_dags(conf_root=corpus)[self.DAG_ID].task_dict

    def test_write_only_the_newest_partition(self, tasks, runner):
        # C11
        tasks["upload"].execute(context(start_ds="2026-06-01", end_ds="2026-06-03"))
        [job] = runner.jobs
        assert job.partitions == ("2026-06-03",)
        assert job.table.endswith("__upload")

    def test_of_old_values_do_not_go_online(self, tasks, runner):
        # a newer partition is served already
        with pytest.raises(AirflowSkipException, match="a newer partition has closed"):
            tasks["upload_to_kv"].execute(context("2026-06-08", run_type="backfill"))
        tasks["upload_to_kv"].execute(context("2026-06-09", run_type="backfill"))
        assert [job.mode for job in runner.jobs] == ["upload_to_kv"]

    def test_that_run_late_on_schedule_go_online(self, tasks, runner):
        # C28: what is behind catches up in order
        tasks["upload_to_kv"].execute(context("2026-06-08", run_type="scheduled"))
        assert len(runner.jobs) == 1


class TestLanded:
    def test_fails_when_the_job_ended_well_and_the_partition_is_not_there(self, root):
        # C28
        with pytest.raises(AirflowFailException, match=r"shop\.orders_daily__1 lacks the partitions 2026-06-01"):
            task(root, "landed").execute(context(KEY))

    def test_asks_again_when_the_catalog_cannot_say(self, root, mocker):
        trouble = ChrononError(Fault("catalog", "", "the store does not answer", "is it up?"))
        mocker.patch("airflow_chronon.catalogs.filesystem.FilesystemCatalog.list_partitions", side_effect=trouble)
        with pytest.raises(AirflowException, match="the store does not answer") as failed:
            task(root, "landed").execute(context(KEY))
        assert not isinstance(failed.value, AirflowFailException)

    def test_names_only_the_missing_ones(self, root):
        task(root, "backfill").execute(context(KEY))
        with pytest.raises(AirflowException, match="lacks the partitions 2026-06-02"):
            task(root, "landed").execute(context(start_ds="2026-06-01", end_ds="2026-06-02"))

    def test_tells_every_label_that_the_run_wrote(self, root):
        asked = context(start_ds="2026-06-01", end_ds="2026-06-02")
        task(root, "backfill").execute(asked)
        landed = task(root, "landed")
        assert landed.execute(asked) == ["2026-06-01", "2026-06-02"]
        assert asked["outlet_events"].labels == {"chronon://shop/orders_daily__1": ["2026-06-01", "2026-06-02"]}
        assert [asset.uri for asset in landed.outlets] == ["chronon://shop/orders_daily__1"]

    def test_is_skipped_without_a_window(self, root):
        # H7
        with pytest.raises(AirflowSkipException):
            task(root, "landed").execute(context())

    def test_says_nothing_of_a_mode_that_did_not_run(self, corpus, clock, tmp_path, monkeypatch, mocker):
        # C10: a daily upload beside a weekly backfill; an event of the other table would wake its consumers
        clock.instant = at("2026-06-10T00:30:00Z")
        monkeypatch.setattr(
            "airflow_chronon.airflow.operators.modes._PlanOperator._requested", lambda self, context: run
        )
        [dag] = [
            d for d in build_dags(conf_root=corpus).values() if d.dag_id.endswith("purchases.online_other_time__1")
        ]
        landed = dag.get_task("landed")
        both = [asset.uri for asset in landed.outlets]
        runs = dag.timetable._runs
        whole = runs.run_ending(at("2026-06-03T00:00:00Z"))
        [(mode, of)] = [(mode, of) for mode, of in whole.modes.items() if mode.value == "upload"]
        run = SimpleNamespace(modes={mode: of})
        mocker.patch.object(type(landed), "_check")
        asked = context("2026-06-02", run_type="scheduled")
        landed.execute(asked)
        assert len(both) == 2
        assert list(asked["outlet_events"].labels) == [uri for uri in both if uri.endswith("__upload")]
        assert [asset.uri for asset in landed.outlets] == list(asked["outlet_events"].labels)


def test_a_job_is_a_chronon_operator_that_keeps_its_plan_out_of_the_serialised_dag(root):
    from airflow.serialization.serialized_objects import DagSerialization

    [dag] = build_dags(conf_root=root.path).values()
    assert isinstance(dag.get_task("backfill"), ChrononOperator)
    assert "SELECT id" not in str(DagSerialization.to_dict(dag)["dag"]["tasks"])


class TestWhatAirflowShows:
    """The tab of rendered templates."""

    def shown(self, task: Any, **request: Any) -> str:
        task.render_template_fields(context(**request))
        [field] = task.template_fields
        return str(getattr(task, field))

    def test_the_query_as_it_runs_for_the_partitions_of_the_run(self, root):
        work = task(root, "backfill")
        assert work.template_fields == ("query",)
        said = self.shown(work, start_ds="2026-06-01", end_ds="2026-06-02")
        assert said == "SELECT id, ds FROM raw.orders WHERE ds BETWEEN '2026-06-01' AND '2026-06-02'"

    @pytest.mark.parametrize("request_", [{}, {"start_ds": "2026-06-31"}, {"key": "no label"}])
    def test_the_query_as_it_was_written_where_the_run_cannot_be_told(self, root, request_):
        # H7, C27: what is shown never fails a task
        assert "BETWEEN {{ start_date }} AND {{ end_date }}" in self.shown(task(root, "backfill"), **request_)

    def test_the_json_of_another_conf_without_its_secrets(self, root):
        from tests.support.confs import group_by

        document = group_by("t.g__1", schedule="@daily")
        document["metaData"]["customJson"] = '{"note": "x", "api_key": "k1"}'
        document["metaData"].setdefault("executionInfo", {})["env"] = {
            "common": {"DB_PASSWORD": "k2", "URL": "s://u:k3@h"}
        }
        root.write("group_by", "t.g__1", document)
        work = task(root, "backfill", "group_by.t.g__1")
        said = self.shown(work, key=KEY)
        assert work.template_fields == ("conf",)
        assert '"note": "x"' in said and "s://u:***@h" in said
        assert not [secret for secret in ("k1", "k2", "k3") if secret in said]
