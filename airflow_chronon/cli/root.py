"""Finding the conf root that a command is about."""

from __future__ import annotations

import os
from pathlib import Path

from airflow_chronon.conf_root.root import DEFAULT_ROOT, ROOT_VARIABLE, ConfRoot, read_conf_root


def open_root(path: str | None) -> ConfRoot:
    """The conf root that is named, here or in Airflow's environment, with the branch that Airflow's environment names."""
    place = path or os.environ.get(ROOT_VARIABLE) or DEFAULT_ROOT
    return read_conf_root(Path(place), environ=os.environ, branch=os.environ.get("AIRFLOW__CHRONON__BRANCH"))
