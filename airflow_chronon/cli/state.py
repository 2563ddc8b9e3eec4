"""Finding the state folder of the deployment that a command is about."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from airflow_chronon.cli.options import option
from airflow_chronon.conf_root.root import ConfRoot
from airflow_chronon.core.plan.facts import Deployment
from airflow_chronon.state.folder import StateFolder, open_state

DEFAULT_BUNDLE = "dags-folder"  #: Airflow's own name for the bundle of its dags folder

STATE_ROOT = option(
    "--state-root",
    metavar="R",
    help="the state folder (default: [chronon] state_root from the environment, else chronon_state in AIRFLOW_HOME)",
)
BUNDLE = option("--bundle", metavar="NAME", help=f"Airflow's DAG bundle of this deployment ({DEFAULT_BUNDLE})")


def find_state_root(options: argparse.Namespace) -> str:
    """The state root that was named, or Airflow's."""
    home = Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser()
    return options.state_root or os.environ.get("AIRFLOW__CHRONON__STATE_ROOT") or str(home / "chronon_state")


def find_state(root: ConfRoot, options: argparse.Namespace) -> tuple[Deployment, StateFolder]:
    """The deployment of a conf root, and what is remembered of it; nothing is read yet."""
    deployment = Deployment(root.branch, options.bundle or DEFAULT_BUNDLE)
    return deployment, open_state(find_state_root(options), deployment=deployment)
