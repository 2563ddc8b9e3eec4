"""kubernetes/values.yaml: keys that the official chart has, options that Airflow has, and who gets which secret."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.support.checkout import ROOT
from tests.support.integration.airflow_options import airflow_options
from tests.support.integration.compose_file import services

VALUES = ROOT / "kubernetes" / "values.yaml"
#: What is used of the chart (1.19, read against its values.yaml and values.schema.json): by path the type of the value.
#: Below ``config`` stand Airflow's own sections, below ``annotations`` anything.
CHART: dict[str, type] = {
    "executor": str,
    "airflowVersion": str,
    "images.airflow.repository": str,
    "images.airflow.tag": str,
    "data.metadataSecretName": str,
    "fernetKeySecretName": str,
    "apiSecretKeySecretName": str,
    "jwtSecretName": str,
    "postgresql.enabled": bool,
    "dags.gitSync.enabled": bool,
    "dags.gitSync.repo": str,
    "dags.gitSync.ref": str,
    "dags.gitSync.subPath": str,
    **{f"{component}.replicas": int for component in ("apiServer", "scheduler", "triggerer", "dagProcessor")},
    **{f"{component}.env": list for component in ("triggerer", "workers")},
    **{f"{component}.serviceAccount.annotations": dict for component in ("triggerer", "dagProcessor", "workers")},
    "workers.resources": dict,
}


def values() -> dict[str, Any]:
    return dict(yaml.safe_load(VALUES.read_text()))


def leaves(found: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """What stands at each path, as deep as the chart's own keys go."""
    if path in CHART or not isinstance(found, dict):
        yield path, found
        return
    for name, value in found.items():
        yield from leaves(value, f"{path}.{name}" if path else str(name))


def test_every_key_is_one_of_the_chart_and_has_its_type() -> None:
    given = {name: each for name, each in values().items() if name != "config"}
    wrong = [(path, value) for path, value in leaves(given) if type(value) is not CHART.get(path)]
    assert wrong == []


def test_tasks_run_in_pods_and_what_runs_depend_on_is_there_twice() -> None:
    given = values()
    assert given["executor"] == "KubernetesExecutor"
    assert [given[each]["replicas"] for each in ("scheduler", "triggerer", "apiServer")] == [2, 2, 2]


def test_no_secret_stands_in_the_file_and_each_component_gets_the_connections_that_it_needs() -> None:  # S10
    given = {
        name: {each["name"]: each["valueFrom"]["secretKeyRef"]["name"] for each in component["env"]}
        for name, component in values().items()
        if isinstance(component, dict) and "env" in component
    }
    reader = {"AIRFLOW_CONN_CHRONON_AIRFLOW": "airflow-reader"}
    assert given == {
        "triggerer": reader,
        "workers": {**reader, "AIRFLOW_CONN_CHRONON_RECONCILER": "airflow-editor"},
    }
    assert "env" not in values() and "secret" not in values()  # those go to every component
    assert not re.search(r"(?i)password|fernetKey:|secretKey:|jwtSecret:|connection: \S*://", VALUES.read_text())


def test_state_and_logs_are_in_a_bucket_since_no_pod_shares_a_disk() -> None:
    config = values()["config"]
    assert config["chronon"]["state_root"].startswith("s3://")
    assert config["logging"]["remote_base_log_folder"].startswith("s3://")


def test_schedulers_and_workers_are_set_as_in_the_compose_file() -> None:
    compose = services()["scheduler"]["environment"]
    for section in ("scheduler", "workers"):
        for option, value in values()["config"][section].items():
            assert compose[f"AIRFLOW__{section.upper()}__{option.upper()}"] == str(value), option


@pytest.mark.soak
def test_every_setting_is_an_option_that_airflow_knows() -> None:
    options = airflow_options()
    unknown = [
        f"{section}.{option}"
        for section, chosen in values()["config"].items()
        for option in chosen
        if option not in options.get(section, [])
    ]
    assert unknown == []
