"""The pages of docs/runners, each built for every mode with the real operator of its provider: what a person copies works."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from airflow.serialization.serialized_objects import DagSerialization

from airflow_chronon.airflow.operators.delegating_modes import DelegatingOperator
from airflow_chronon.core.settings.yaml import read_settings
from airflow_chronon.dags import build_dags
from tests.support import airflow_jobs
from tests.support.checkout import ROOT
from tests.support.conf_roots import ConfRootOnDisk
from tests.support.schedules import at

PAGES = sorted((ROOT / "docs" / "runners").glob("*.md"))
KEY, DAG_ID = "2026-06-01", "staging_query.orders.daily__1"
EXECUTION = {
    "env": {"common": {"REGION": "eu"}, "modeEnvironments": {"backfill": {"TIER": "high"}}},
    "conf": {"common": {"spark.executor.memory": "4g"}},
}
KUBE_CONFIG = {  # of a cluster that nobody asks
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "c",
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "c", "user": {}}],
}


def _settings(page: Path) -> str:
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", page.read_text(), re.S | re.M)
    return str(text)


class Made:
    """What a page makes of the task of one run."""

    def __init__(self, page: Path, root: ConfRootOnDisk) -> None:
        root.settings(f"catalog: {{root: {root.path}/w}}\n{_settings(page)}")
        root.staging_query("orders.daily", execution=EXECUTION)
        self.dag = build_dags(conf_root=root.path)[DAG_ID]
        self.task = self.dag.get_task("backfill").prepare_for_execution()
        started = datetime(2026, 6, 9, tzinfo=UTC)
        self.ti = SimpleNamespace(
            dag_id=DAG_ID,
            task_id="backfill",
            run_id="run-1",
            try_number=1,
            max_tries=2,
            map_index=-1,
            start_date=started,
            stats_tags={},
        )
        run = airflow_jobs.context(KEY)
        run["dag_run"].clear_number = 0
        run["params"] |= {"start_ds": None, "end_ds": None}
        state = defaultdict[Any, dict[str, Any]](dict)
        more = {"task_state_store": {}, "asset_state_store": state, "dag": self.dag, "task_instance": self.ti}
        self.context = {**run, "ti": self.ti, **more}

    @property
    def operator(self) -> Any:
        return self.task._made(self.context)[0]


@pytest.fixture
def made(tmp_path: Path, clock, monkeypatch: pytest.MonkeyPatch):
    clock.instant = at("2026-06-10T00:00:00Z")
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[1]"}))
    extra = {"kube_config": json.dumps(KUBE_CONFIG)}
    monkeypatch.setenv("AIRFLOW_CONN_KUBERNETES_DEFAULT", json.dumps({"conn_type": "kubernetes", "extra": extra}))

    def make(name: str) -> Made:
        return Made(ROOT / "docs" / "runners" / f"{name}.md", ConfRootOnDisk(tmp_path / "chronon"))

    return make


def test_there_is_a_page_for_each_operator_that_the_docs_promise() -> None:
    names = ["databricks", "dataproc", "emr-serverless", "kubernetes-pod", "spark-kubernetes", "spark-submit"]
    assert [page.stem for page in PAGES] == names
    links = (ROOT / "docs" / "runners.md").read_text()
    assert [name for name in names if f"](runners/{name}.md)" not in links] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
class TestEveryPage:
    def test_is_good_settings(self, page: Path) -> None:
        assert read_settings(_settings(page), environ={}, warehouse="/w")

    def test_makes_the_operator_that_it_names_with_nothing_left_to_fill_in(self, page: Path, made: Any) -> None:
        found = made(page.stem)
        operator = found.operator
        assert (
            yaml.safe_load(_settings(page))["runner"]["class"]
            == f"{type(operator).__module__}.{type(operator).__name__}"
        )
        assert (operator.task_id, operator.dag.dag_id) == ("backfill", DAG_ID)
        found.task.render_template_fields(found.context)
        shown = json.dumps(found.task.arguments)
        assert not re.search(r"(?<!\$)\{\w+\}", shown)
        for each in (
            "2026-06-01",
            "REGION",
            "TIER",
            "spark.executor.memory" if page.stem != "kubernetes-pod" else "backfill",
        ):
            assert each in shown

    def test_leaves_a_dag_that_airflow_can_keep_without_the_provider(self, page: Path, made: Any) -> None:
        found = made(page.stem)
        assert isinstance(found.task, DelegatingOperator)
        assert "airflow.providers." not in json.dumps(DagSerialization.to_dict(found.dag)["dag"]["tasks"][0])

    @pytest.mark.parametrize("mode", ["upload", "upload_to_kv", "metadata_upload"])
    def test_fits_the_other_modes(self, page: Path, made: Any, mode: str) -> None:
        found = made(page.stem)
        _, request, _ = found.task._prepared(found.context)
        of_mode = replace(request, conf_type="group_by", mode=mode)
        found.task._request = lambda *_: of_mode
        operator, given = found.task._made(found.context)
        shown = json.dumps(given.shown)
        assert "--start-partition" not in shown
        assert "--start-ds" not in shown
        assert operator.task_id == "backfill"


def test_spark_submit_is_called_as_chronons_driver_is(made: Any) -> None:
    operator = made("spark-submit").operator
    hook = operator._get_hook()
    argv = hook._build_spark_submit_command(operator.application)
    path = "compiled/staging_queries/orders/daily__1"
    assert argv[argv.index("--class") : argv.index("--class") + 2] == ["--class", "ai.chronon.spark.Driver"]
    assert argv[-6:-1] == [
        "/opt/chronon/chronon.jar",
        "staging-query-backfill",
        "--conf-type=staging_queries",
        "--end-date=2026-06-01",
        "--start-partition=2026-06-01",
    ]
    assert argv[-1].startswith("--conf-path=/")
    assert argv[-1].endswith(path)
    assert "spark.executor.memory=4g" in argv
    assert hook._env["REGION"] == "eu"


def test_a_pod_gets_the_command_the_variables_and_the_token(made: Any) -> None:
    found = made("kubernetes-pod")
    operator = found.operator
    pod = operator.build_pod_request_obj(None)
    (container,) = pod.spec.containers
    assert container.command == ["zipline", "run", "/opt/features/compiled/staging_queries/orders/daily__1"]
    assert container.args == ["--mode", "backfill", "--start-ds", "2026-06-01", "--end-ds", "2026-06-01"]
    env = {each.name: each.value for each in container.env}
    assert (env["REGION"], env["TIER"], env["CHRONON_PARTITION"]) == ("eu", "high", "2026-06-01")
    assert pod.metadata.labels["chronon-token"].startswith("chronon-")
    assert operator.deferrable is True


def test_a_spark_application_gets_its_settings_and_variables(made: Any) -> None:
    operator = made("spark-kubernetes").operator
    spec = operator.template_body["spark"]["spec"]
    assert spec["arguments"] == [
        "staging-query-backfill",
        "--conf-type=staging_queries",
        "--end-date=2026-06-01",
        "--start-partition=2026-06-01",
        "--conf-path=/opt/features/compiled/staging_queries/orders/daily__1",
    ]
    assert spec["sparkConf"]["spark.executor.memory"] == "4g"
    assert spec["sparkConf"]["spark.kubernetes.driverEnv.REGION"] == "eu"
    assert spec["sparkConf"]["spark.executorEnv.TIER"] == "high"
    assert spec["driver"]["labels"]["chronon-token"].startswith("chronon-")


def test_a_run_on_databricks_has_the_token_and_a_cluster_with_the_confs_settings(made: Any) -> None:
    operator = made("databricks").operator
    asked = operator._get_merged_json()
    (task,) = asked["tasks"]
    assert asked["idempotency_token"].startswith("chronon-")
    assert len(asked["idempotency_token"]) <= 64
    assert task["spark_jar_task"]["parameters"][0] == "staging-query-backfill"
    assert task["new_cluster"]["spark_conf"] == {"spark.executor.memory": "4g"}
    assert task["new_cluster"]["spark_env_vars"]["REGION"] == "eu"


def test_a_job_run_on_emr_serverless_is_asked_for_as_boto_takes_it(made: Any) -> None:
    from botocore.session import get_session
    from botocore.validate import ParamValidator

    operator = made("emr-serverless").operator
    asked = {
        "clientToken": operator.client_request_token,
        "applicationId": operator.application_id,
        "executionRoleArn": operator.execution_role_arn,
        "jobDriver": operator.job_driver,
        "name": operator.name,
        "configurationOverrides": operator.configuration_overrides,
        **operator.config,
    }
    service = get_session().get_service_model("emr-serverless")
    report = ParamValidator().validate(asked, service.operation_model("StartJobRun").input_shape)
    assert not report.has_errors(), report.generate_report()
    assert len(asked["clientToken"]) <= 64
    (defaults,) = asked["configurationOverrides"]["applicationConfiguration"]
    assert defaults["properties"]["spark.emr-serverless.driverEnv.REGION"] == "eu"
    assert defaults["properties"]["spark.executor.memory"] == "4g"


def test_a_job_on_dataproc_is_asked_for_as_google_takes_it(made: Any) -> None:
    from google.cloud.dataproc_v1 import Job

    operator = made("dataproc").operator
    job = Job(operator.job)
    assert job.reference.job_id == operator.request_id
    assert len(operator.request_id) <= 40
    assert job.spark_job.args[0] == "staging-query-backfill"
    assert job.spark_job.args[-1] == "--conf-path=daily__1"
    assert job.spark_job.properties["spark.yarn.appMasterEnv.REGION"] == "eu"
    assert job.spark_job.properties["spark.executor.memory"] == "4g"
