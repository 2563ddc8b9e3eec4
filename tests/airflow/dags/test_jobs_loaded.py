"""Job files become DAGs, active once the reconciler has a record of them (H8, H12 to H16)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.serialization.serialized_objects import DagSerialization

from airflow_chronon.conf_root.root import read_conf_root
from airflow_chronon.core.describe.jobs import NOT_ACTIVE
from airflow_chronon.core.jobs.resolve import JobPlan
from airflow_chronon.core.records.manifest import OFF_TAG, DeployedManifest, manifest_of, plan_of_manifest
from airflow_chronon.core.schedules.intervals import IntervalSchedule
from airflow_chronon.dags import ImportErrors, build_dags, raise_import_errors
from airflow_chronon.state.folder import StateFolder
from tests.support.airflow_jobs import see, state_of, write_job
from tests.support.schedules import at

DAG_ID = "job.etl.hourly"
HOURLY = {"cron_expression": "0 0 * ? * *"}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "home"))
    return tmp_path / "root"


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    return state_of(tmp_path / "home")


def plan(root: Path, key: str = "job/etl.hourly") -> JobPlan:
    found = read_conf_root(root, environ=os.environ).judge()[key]
    assert isinstance(found, JobPlan)
    return found


def schedule(dag: Any) -> IntervalSchedule:
    found: IntervalSchedule = dag.timetable._job
    return found


def asks_for(dag_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow.sdk.get_parsing_context", lambda: SimpleNamespace(dag_id=dag_id))


class TestArming:
    def test_a_job_that_no_reconcile_has_seen_does_not_fire_and_says_so(self, root):
        # H14
        write_job(root, schedule=HOURLY)
        dag = build_dags(conf_root=root)[DAG_ID]
        assert not schedule(dag).enabled
        assert NOT_ACTIVE in dag.doc_md

    def test_one_that_was_seen_fires_from_then_on(self, root, state):
        write_job(root, schedule=HOURLY)
        see(state, plan(root), now=at("2026-06-01T10:20:00Z"))
        dag = build_dags(conf_root=root)[DAG_ID]
        assert schedule(dag).enabled and schedule(dag).active_since == at("2026-06-01T10:20:00Z")
        assert NOT_ACTIVE not in dag.doc_md

    def test_without_a_start_in_the_file_it_begins_when_it_was_seen(self, root, state):
        # H15
        write_job(root, schedule=HOURLY)
        see(state, plan(root), now=at("2026-06-01T10:20:00Z"))
        assert schedule(build_dags(conf_root=root)[DAG_ID]).catch_up.start == at("2026-06-01T10:20:00Z")

    def test_with_catch_up_too_though_airflow_wants_a_start_with_it(self, root, state):
        # H15
        write_job(root, schedule={**HOURLY, "catchup": True})
        raise_import_errors(conf_root=root)
        assert not schedule(build_dags(conf_root=root)[DAG_ID]).enabled  # no reconcile has seen it
        see(state, plan(root), now=at("2026-06-01T10:20:00Z"))
        dag = build_dags(conf_root=root)[DAG_ID]
        assert dag.catchup and schedule(dag).catch_up.start == at("2026-06-01T10:20:00Z")

    def test_one_that_was_switched_off_and_on_waits_for_the_reconcile_that_sees_it(self, root, state):
        # H14
        write_job(root, schedule={**HOURLY, "enabled": False})
        see(state, plan(root), now=at("2026-06-01T10:20:00Z"))
        write_job(root, schedule=HOURLY)
        assert not schedule(build_dags(conf_root=root)[DAG_ID]).enabled
        see(state, plan(root), now=at("2026-06-02T12:30:00Z"))
        found = schedule(build_dags(conf_root=root)[DAG_ID])
        assert found.enabled and found.active_since == at("2026-06-02T12:30:00Z")

    def test_a_changed_cron_does_not_change_since_when_it_counts(self, root, state):
        write_job(root, schedule=HOURLY)
        see(state, plan(root), now=at("2026-06-01T10:20:00Z"))
        write_job(root, schedule={"cron_expression": "30 * * * *"})
        assert schedule(build_dags(conf_root=root)[DAG_ID]).active_since == at("2026-06-01T10:20:00Z")

    def test_one_that_its_record_has_as_paused_waits_for_a_fire_to_come(self, root, state):
        write_job(root, schedule=HOURLY)
        see(state, plan(root), now=at("2026-06-01T10:20:00Z"))
        see(state, plan(root), now=at("2026-06-01T11:20:00Z"), is_paused=True)
        found = schedule(build_dags(conf_root=root)[DAG_ID])
        assert found.enabled and found.active_since is None

    def test_a_damaged_record_is_reported_and_keeps_its_job_alone_from_firing(self, root, state, tmp_path):
        # S9
        write_job(root, schedule=HOURLY)
        write_job(root, "other", schedule=HOURLY)
        see(state, *(plan(root, f"job/etl.{name}") for name in ("hourly", "other")), now=at("2026-06-01T10:20:00Z"))
        folder = tmp_path / "home" / "chronon_state" / "dags-folder" / "main" / "records"
        (folder / f"{DAG_ID}.json").write_text("{")
        dags = build_dags(conf_root=root)
        assert not schedule(dags[DAG_ID]).enabled and schedule(dags["job.etl.other"]).enabled
        with pytest.raises(ImportErrors, match=r"job\.etl\.hourly\.json is damaged"):
            raise_import_errors(conf_root=root)

    def test_a_task_that_starts_does_not_read_the_record_of_a_job_without_a_schedule(self, root, monkeypatch, mocker):
        write_job(root)
        asks_for(DAG_ID, monkeypatch)
        opened = mocker.patch("airflow_chronon.deployment.open_state")
        assert set(build_dags(conf_root=root)) == {DAG_ID}
        opened.assert_not_called()


class TestTheDag:
    def test_has_one_task_whose_turns_are_few_and_whose_runs_are_many(self, root):
        # H12
        write_job(root, schedule={**HOURLY, "max_active_runs": 2}, retries=3, owner="ann")
        dag = build_dags(conf_root=root)[DAG_ID]
        (task,) = dag.tasks
        assert (task.task_id, task.max_active_tis_per_dag, task.retries, task.owner) == ("run", 2, 3, "ann")
        assert dag.max_active_runs == 64

    def test_has_tags_and_params_and_a_page(self, root):
        write_job(root, schedule={**HOURLY, "start_time_offset_seconds": 3600})
        dag = build_dags(conf_root=root)[DAG_ID]
        assert {"chronon", "type:job", "team:etl", "branch:main", "version:1"} <= set(dag.tags)
        assert set(dag.params) == {"start_time", "end_time", "logical_date"}
        assert "2026-06-01T01:00:00Z | 2026-06-01T00:00:00Z | 2026-05-31T23:00:00Z | 2026-06-01T00:00:00Z" in dag.doc_md

    def test_its_form_says_what_a_logical_date_is_and_what_it_needs(self, root):
        # H7, H19: the same as logical_date of Job.run
        write_job(root, schedule=HOURLY)
        said = build_dags(conf_root=root)[DAG_ID].params.get_param("logical_date").description
        assert (
            "HOPS_LOGICAL_DATE" in said and "needs a window" in said and "Left empty: the start of the window" in said
        )

    def test_an_unchanged_job_serialises_the_same(self, root, state):
        write_job(root, schedule=HOURLY)
        see(state, plan(root), now=at("2026-06-01T10:20:00Z"))
        first, second = (DagSerialization.to_dict(build_dags(conf_root=root)[DAG_ID]) for _ in range(2))
        assert first == second

    def test_survives_serialisation(self, root, state):
        write_job(root, schedule={**HOURLY, "catchup": True, "start_time": "2026-05-01T10:05:00Z"})
        see(state, plan(root), now=at("2026-06-01T10:20:00Z"))
        dag = build_dags(conf_root=root)[DAG_ID]
        back = DagSerialization.from_dict(DagSerialization.to_dict(dag))
        assert schedule(back) == schedule(dag)

    def test_of_a_job_without_a_schedule_runs_by_hand_alone(self, root):
        write_job(root)
        dag = build_dags(conf_root=root)[DAG_ID]
        assert not dag.timetable.can_be_scheduled
        assert "runs when someone starts it" in dag.doc_md

    def test_comes_with_those_of_confs_and_only_for_its_team(self, root):
        write_job(root, schedule=HOURLY)
        assert set(build_dags(conf_root=root, team="etl")) == {DAG_ID}
        with pytest.raises(ImportErrors, match=r"team='shop'"):
            build_dags(conf_root=root, team="shop")
        assert set(build_dags(conf_root=root, match="job/*")) == {DAG_ID}

    def test_that_cannot_be_built_costs_no_other(self, root):
        write_job(root, "bad", schedule=HOURLY, task_defaults={"on_failure_callback": "no.such.thing"})
        write_job(root, schedule=HOURLY)
        assert set(build_dags(conf_root=root)) == {DAG_ID}
        with pytest.raises(ImportErrors, match=r"job/etl\.bad .*no\.such\.thing"):
            raise_import_errors(conf_root=root)


class TestAJobThatIsGone:
    def test_keeps_its_dag_off_from_its_record(self, root, state):
        # C23
        path = write_job(root, schedule=HOURLY, env={"REGION": "${REGION:-eu}"})
        see(state, plan(root), now=at("2026-06-01T10:20:00Z"))
        path.unlink()
        write_job(root, "other")
        dag = build_dags(conf_root=root)[DAG_ID]
        assert OFF_TAG in dag.tags and not schedule(dag).enabled

    def test_its_plan_comes_back_from_its_manifest(self, root):
        write_job(root, schedule=HOURLY, env={"REGION": "${REGION:-eu}"}, legacy_start_time_arg=True)
        before = plan(root)
        after = plan_of_manifest(
            DeployedManifest.from_json(json.loads(json.dumps(manifest_of(before).to_json())), dag_id=DAG_ID)
        )
        assert isinstance(after, JobPlan)
        assert (after.schedule, after.job.document, after.settings, after.key) == (
            before.schedule,
            before.job.document,
            before.settings,
            before.key,
        )

    def test_its_last_task_still_finds_it(self, root, state, monkeypatch):
        path = write_job(root, schedule=HOURLY)
        see(state, plan(root), now=at("2026-06-01T10:20:00Z"))
        path.unlink()
        asks_for(DAG_ID, monkeypatch)
        (task,) = build_dags(conf_root=root)[DAG_ID].tasks
        assert task.task_id == "run"
