"""What Airflow reads about the provider: what is in it, settings, commands, connections. Imports nothing heavy."""

from __future__ import annotations

from typing import Any

from airflow_chronon import __version__

_NAME = "Chronon"


def get_provider_info() -> dict[str, Any]:
    """The provider's entry in ``airflow providers list``."""
    return {
        "package-name": "airflow-chronon",
        "name": _NAME,
        "description": "Runs compiled Chronon confs: one DAG per conf version, runs on partition grids.",
        "versions": [__version__],
        "integrations": [
            {
                "integration-name": _NAME,
                "external-doc-url": "https://chronon.ai",
                "logo": "airflow_chronon/logo.svg",
                "tags": ["service"],
            }
        ],
        "operators": _modules("operators.job", "operators.modes"),
        "sensors": _modules("sensors.deferred"),
        "triggers": _modules("operators.jobs_left", "operators.remote", "operators.write_order", "sensors.triggers"),
        "hooks": _modules("hooks"),
        "config": {
            "chronon": {
                "description": "Where the deployment's confs are and which branch they belong to.",
                "options": {
                    "conf_root": _option(
                        "The folder that holds compiled/ and chronon.yaml. Empty: chronon/ beside the loader file.",
                        example="/opt/airflow/dags/chronon",
                        default="",
                    ),
                    "state_root": _option(
                        "Where the reconciler keeps its records of deployed confs and the archive of retired"
                        " DAGs: a folder or an fsspec URL that the dag processor, the workers and the reconciler reach."
                        " Empty: chronon_state in AIRFLOW_HOME.",
                        example="s3://bucket/chronon_state",
                        default="",
                    ),
                    "reconcile_schedule": _option(
                        "When the reconciler DAG runs: five cron fields or a preset such as @hourly.",
                        example="*/15 * * * *",
                        default="*/5 * * * *",
                    ),
                    "reconcile_timeout": _option(
                        "After how many seconds a reconcile is ended, whatever holds it up. The next one goes on.",
                        example="3600",
                        default="1800",
                    ),
                    "pass_over_waiting_runs": _option(
                        "True: the scheduler looks at a run of a conf that only waits when one of its tasks has changed, and every five"
                        " minutes. Otherwise it looks at all of them in turn, and replays after them.",
                        example="True",
                        default="False",
                    ),
                    "branch": _option(
                        "The branch that this deployment belongs to. Empty: the branch of the DAG bundle, else chronon.yaml's default.",
                        example="feature-try-v4",
                        default="",
                    ),
                },
            }
        },
        "cli": ["airflow_chronon.airflow.cli.get_chronon_commands"],
        "connection-types": [
            {
                "connection-type": "chronon_airflow",
                "hook-class-name": "airflow_chronon.airflow.hooks.ChrononAirflowHook",
                "hook-name": "Airflow API (Chronon)",
                "ui-field-behaviour": {
                    "hidden-fields": ["schema", "extra"],
                    "relabeling": {"login": "User"},
                    "placeholders": {
                        "host": "http://127.0.0.1:8080",
                        "port": "empty where the host names one",
                        "login": "a user that may read and trigger DAGs",
                        "password": "the user's password",
                        "token": "instead of user and password",
                    },
                },
                "conn-fields": {
                    "token": {
                        "label": "Token",
                        "schema": {"type": ["string", "null"], "format": "password"},
                        "description": "A token of Airflow's API, instead of user and password.",
                    },
                    "scheme": {
                        "label": "Scheme",
                        "schema": {"type": ["string", "null"], "enum": ["http", "https", None]},
                        "description": "Where the host names none: http unless this says https.",
                    },
                },
            }
        ],
        "asset-uris": [
            {
                "schemes": ["chronon"],
                "handler": "airflow_chronon.airflow.assets.sanitize_uri",
                "to_openlineage_converter": "airflow_chronon.airflow.lineage.dataset_of_asset",
            }
        ],
    }


def _modules(*names: str) -> list[dict[str, Any]]:
    return [
        {"integration-name": _NAME, "python-modules": [f"airflow_chronon.airflow.{name}" for name in names]},
    ]


def _option(description: str, *, example: str, default: str) -> dict[str, Any]:
    return {
        "description": description,
        "version_added": "0.1.0",
        "type": "string",
        "example": example,
        "default": default,
    }
