"""The loader goes on producing DAGs of confs that are gone or broken, off, until they are archived (C23)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from airflow_chronon.airflow.config import bundle_of
from airflow_chronon.airflow.operators.modes import ChrononOperator
from airflow_chronon.conf_root.root import read_conf_root
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.plan.facts import Deployment
from airflow_chronon.core.records.history import record_after
from airflow_chronon.core.records.manifest import OFF_TAG, manifest_of
from airflow_chronon.core.records.record import Retirement
from airflow_chronon.core.schedules.partitioned import PartitionedSchedule
from airflow_chronon.dags import ImportErrors, build_dags, raise_import_errors
from airflow_chronon.deployment import DEFAULT_BUNDLE
from airflow_chronon.state.folder import StateFolder, open_state
from tests.support.confs import at, plan_of, staging_query

GONE, HERE = "staging_query.t.gone__1", "staging_query.t.here__1"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A conf root with one conf, and a state folder that remembers another."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "home"))
    write(tmp_path / "root", "here__1")
    deploy(state(tmp_path / "root"), plan_of(staging_query("t.gone__1", schedule="0 2 * * *")))
    return tmp_path / "root"


def write(root: Path, name: str, text: str | None = None, **of: object) -> None:
    path = root / "compiled" / "staging_queries" / "t" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text or json.dumps(staging_query(f"t.{name}", **of)))  # type: ignore[arg-type]


def deploy(state: StateFolder, plan: ConfPlan) -> None:
    """What a reconcile records of a conf that it sees."""
    state.write_record(record_after(plan, manifest_of(plan), None, now=at("2026-06-01")))


def state(root: Path) -> StateFolder:
    return open_state(str(root.parent / "home" / "chronon_state"), deployment=Deployment("main", DEFAULT_BUNDLE))


def asks_for(dag_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task of this DAG starts."""
    monkeypatch.setattr("airflow.sdk.get_parsing_context", lambda: SimpleNamespace(dag_id=dag_id))


def schedule(dag: object) -> PartitionedSchedule:
    found: PartitionedSchedule = dag.timetable._runs  # type: ignore[attr-defined]
    return found


def test_a_gone_conf_keeps_its_dag_but_fires_no_more(root: Path) -> None:
    dags = build_dags(conf_root=root)
    assert set(dags) == {GONE, HERE}
    assert schedule(dags[GONE]).modes == {} and schedule(dags[HERE]).modes != {}
    assert OFF_TAG in dags[GONE].tags and OFF_TAG not in dags[HERE].tags
    assert dags[GONE].task_ids == ["ready", "backfill", "landed"] or set(dags[GONE].task_ids) == set(
        dags[HERE].task_ids
    )


def test_its_last_runs_keep_the_windows_that_they_had(root: Path) -> None:
    task = build_dags(conf_root=root)[GONE].get_task("backfill")
    assert isinstance(task, ChrononOperator)
    assert task._plan.schedule == plan_of(staging_query("t.gone__1", schedule="0 2 * * *")).schedule


def test_a_task_that_starts_finds_its_dag_and_the_file_of_its_conf(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asks_for(GONE, monkeypatch)
    dags = build_dags(conf_root=root)
    assert set(dags) == {GONE}
    task = dags[GONE].get_task("backfill")
    assert isinstance(task, ChrononOperator)
    assert json.loads(Path(task._conf_path).read_text())["metaData"]["name"] == "t.gone__1"


def test_a_task_of_a_good_conf_asks_nothing_of_the_state_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asks_for(HERE, monkeypatch)
    monkeypatch.setattr("airflow_chronon.deployment.open_state", lambda *_, **__: pytest.fail("it was opened"))
    assert set(build_dags(conf_root=root)) == {HERE}


def test_once_its_history_is_archived_the_dag_is_gone(root: Path) -> None:  # case 32
    record = state(root).read_record(GONE)
    assert record is not None
    retirement = Retirement(at("2026-06-02"), "gone", "a test")
    state(root).write_record(replace(record, retirement=retirement))
    assert set(build_dags(conf_root=root)) == {GONE, HERE}
    state(root).write_record(replace(record, retirement=replace(retirement, archive="archive/x")))
    assert set(build_dags(conf_root=root)) == {HERE}


def test_a_damaged_record_of_a_conf_that_is_there_is_not_even_read(root: Path) -> None:  # S9
    folder = root.parent / "home" / "chronon_state" / "dags-folder" / "main" / "records"
    (folder / f"{HERE}.json").write_text("{")
    assert set(build_dags(conf_root=root)) == {GONE, HERE}
    raise_import_errors(conf_root=root)


def test_a_conf_that_was_broken_since_keeps_its_dag_off(root: Path) -> None:
    deploy(state(root), plan_of(staging_query("t.here__1")))
    write(root, "here__1", "{")
    assert schedule(build_dags(conf_root=root)[HERE]).modes == {}


def test_a_conf_that_moved_to_another_environment_keeps_its_dag_off(root: Path) -> None:  # C12, C23
    write(root, "gone__1", environments=[1])
    assert schedule(build_dags(conf_root=root)[GONE]).modes == {}


def test_an_empty_checkout_keeps_every_dag_off(root: Path) -> None:  # case 29
    (root / "compiled" / "staging_queries" / "t" / "here__1").unlink()
    assert set(build_dags(conf_root=root)) == {GONE}


def test_a_loader_file_per_team_keeps_its_own(root: Path) -> None:
    assert set(build_dags(conf_root=root, team="other")) == set()
    assert set(build_dags(conf_root=root, match="staging_query/t.gone*")) == {GONE}


def test_a_damaged_record_costs_no_other_dag_and_is_shown(root: Path) -> None:
    folder = root.parent / "home" / "chronon_state" / "dags-folder" / "main" / "records"
    (folder / f"{GONE}.json").write_text("{")
    assert set(build_dags(conf_root=root)) == {HERE}
    with pytest.raises(ImportErrors, match="is damaged"):
        raise_import_errors(conf_root=root)


def test_the_bundle_of_a_file_is_found_by_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # C24
    bundles = [
        {
            "name": "here",
            "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
            "kwargs": {"path": str(tmp_path / "a")},
        },
        {
            "name": "repo",
            "classpath": "airflow.providers.git.bundles.git.GitDagBundle",
            "kwargs": {"tracking_ref": "try"},
        },
    ]
    monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST", json.dumps(bundles))
    monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH", str(tmp_path / "storage"))
    assert bundle_of(str(tmp_path / "a" / "x.py")) == "here"
    assert bundle_of(str(tmp_path / "storage" / "repo" / "versions" / "1" / "x.py")) == "repo"
    assert bundle_of(str(tmp_path / "b" / "x.py")) == DEFAULT_BUNDLE


def test_the_file_that_another_branchs_last_job_reads_stays(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # C24
    asks_for(GONE, monkeypatch)
    task = build_dags(conf_root=root)[GONE].get_task("backfill")
    assert isinstance(task, ChrononOperator)
    trial = root.parent / "trial"
    write(trial, "other__1")
    (trial / "chronon.yaml").write_text("branch: trial\n")
    asks_for("trial--staging_query.t.left__1", monkeypatch)
    build_dags(conf_root=trial)
    assert Path(task._conf_path).exists()


@pytest.fixture
def trial(root: Path) -> Path:
    """A branch beside the main one: its conf has a record, as the main one's has."""
    path, owner = root.parent / "trial", Deployment("trial", DEFAULT_BUNDLE)
    write(path, "own__1")
    (path / "chronon.yaml").write_text("branch: trial\n")
    plan = read_conf_root(path, environ={}).facts().confs["trial--staging_query.t.own__1"]
    deploy(open_state(str(root.parent / "home" / "chronon_state"), deployment=owner), plan)
    return path


@pytest.mark.parametrize("text", ["branch: trial\ncatchup: maybe\n", "catchup: [\nbranch: 'trial' # ours\n"])
def test_a_mistake_in_the_settings_keeps_the_branchs_own_dags_off(trial: Path, text: str) -> None:  # C23, C24
    (trial / "chronon.yaml").write_text(text)
    dags = build_dags(conf_root=trial)
    assert set(dags) == {"trial--staging_query.t.own__1"}
    assert schedule(dags["trial--staging_query.t.own__1"]).modes == {}


@pytest.mark.parametrize("text", ["branch: [trial]\n", "branch: ${NOBODY_SET_IT}\n", "branch: 'trial\0'\n"])
def test_a_mistake_in_the_name_of_the_branch_stands_for_no_other(trial: Path, text: str) -> None:  # C24
    (trial / "chronon.yaml").write_text(text)
    assert build_dags(conf_root=trial) == {}
    with pytest.raises(ImportErrors, match=r"chronon\.yaml.*\n.*which branch"):
        raise_import_errors(conf_root=trial)


def test_a_root_that_is_gone_stands_for_no_other_branch(trial: Path) -> None:  # C24
    trial.rename(trial.with_name("elsewhere"))
    assert build_dags(conf_root=trial) == {}
    with pytest.raises(ImportErrors, match=r"which branch .* belongs to: main, trial are deployed here"):
        raise_import_errors(conf_root=trial)


def test_a_root_that_is_gone_keeps_the_dags_of_the_only_branch_off(root: Path) -> None:  # C23, case 29
    root.rename(root.with_name("elsewhere"))
    assert set(build_dags(conf_root=root)) == {GONE}
