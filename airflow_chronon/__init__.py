"""An Airflow provider for compiled Chronon confs (one DAG per version, runs on partition grids) and for scheduled jobs."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """``land`` comes with its first use: most who import the package need nothing of Airflow."""
    if name == "land":
        return import_module("airflow_chronon.airflow.land").land
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
