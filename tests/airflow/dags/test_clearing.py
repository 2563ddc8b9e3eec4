"""A cleared run takes the tree of now: "mend the cause, clear the run" must use the mend (C23)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from airflow.api_fastapi.common.dagbag import resolve_run_on_latest_version
from airflow.models.dag import DagModel
from airflow.models.dag_version import DagVersion
from airflow.models.dagbundle import DagBundleModel
from airflow.models.dagrun import DagRun
from airflow.models.serialized_dag import SerializedDagModel
from airflow.serialization.definitions.dag import SerializedDAG
from airflow.serialization.serialized_objects import DagSerialization, LazyDeserializedDAG
from airflow.utils.state import DagRunState

from airflow_chronon.airflow.dags.reconciler import DAG_ID as RECONCILER
from airflow_chronon.airflow.dags.reconciler import build_reconciler
from airflow_chronon.core.calendar.instants import to_datetime
from airflow_chronon.dags import build_dags
from tests.support.airflow_jobs import write_job
from tests.support.conf_roots import ConfRootOnDisk
from tests.support.schedules import at

BEGUN, NOW = "a1", "b2"  # commits of a bundle that is a Git repository


@pytest.fixture
def dags(tmp_path: Path) -> dict[str, Any]:
    root = ConfRootOnDisk(tmp_path / "chronon")
    root.staging_query("orders.a")
    write_job(root.path, schedule={"cron_expression": "0 0 * ? * *"})
    return {
        **build_dags(conf_root=root.path),
        RECONCILER: build_reconciler(near=str(tmp_path / "x.py"), conf_root=root.path),
    }


@pytest.mark.parametrize("dag_id", ["staging_query.orders.a__1", "job.etl.hourly", RECONCILER])
@pytest.mark.parametrize("state", [DagRunState.FAILED, DagRunState.RUNNING], ids=["ended", "waits"])
def test_a_cleared_run_goes_on_with_the_newest_commit(
    dags: dict[str, Any], session: Any, dag_id: str, state: DagRunState
) -> None:
    run = run_of(dags[dag_id], session, state)
    latest = resolve_run_on_latest_version(None, dag_id, session)  # what UI and API ask, where nobody ticks a box
    run.dag.clear(run_id=run.run_id, run_on_latest_version=latest, session=session)
    session.flush()
    session.expire_all()
    assert run.bundle_version == NOW
    # the scheduler takes a task's commit from its own version of the DAG
    assert {task.dag_version.bundle_version for task in run.task_instances} == {NOW}


def run_of(dag: Any, session: Any, state: DagRunState) -> DagRun:
    """A run that was made at a commit after which another came."""
    session.add(DagBundleModel(name="features"))
    session.flush()
    model = DagModel(dag_id=dag.dag_id, bundle_name="features")
    model.bundle_version = BEGUN
    session.add(model)
    session.flush()
    stored = write(dag, session, BEGUN)
    start = to_datetime(at("2026-06-01"))
    run = DagRun(dag_id=dag.dag_id, run_id="r", run_type="manual", run_after=start, state=state)
    run.created_dag_version_id, run.bundle_version = (
        DagVersion.get_latest_version(dag.dag_id, session=session).id,
        BEGUN,
    )
    run.dag = stored
    session.add(run)
    session.flush()
    run.verify_integrity(session=session, dag_version_id=run.created_dag_version_id)
    dag.doc_md = f"{dag.doc_md}, mended"
    model.bundle_version = NOW
    run.dag = write(dag, session, NOW)
    session.flush()
    return run


def write(dag: Any, session: Any, commit: str) -> SerializedDAG:
    data = DagSerialization.to_dict(dag)
    SerializedDagModel.write_dag(
        LazyDeserializedDAG(data=data), bundle_name="features", bundle_version=commit, session=session
    )
    session.flush()
    return DagSerialization.from_dict(data)
