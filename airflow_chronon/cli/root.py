"""The conf root that a command is about."""

from __future__ import annotations

import os

from airflow_chronon.conf_root.root import ConfRoot
from airflow_chronon.deployment import find_deployment


def open_root(path: str | None) -> ConfRoot:
    """The conf root that is named, here or in Airflow's environment, with the branch that Airflow's environment names."""
    return find_deployment(environ=os.environ, conf_root=path).read_root()
