"""Finding the deployment that a command is about, and what is remembered of it."""

from __future__ import annotations

import argparse
import os

from airflow_chronon.cli.options import option
from airflow_chronon.conf_root.root import ConfRoot
from airflow_chronon.deployment import DEFAULT_BUNDLE, Deployment, find_deployment
from airflow_chronon.state.folder import StateFolder

STATE_ROOT = option(
    "--state-root",
    metavar="R",
    help="the state folder (default: [chronon] state_root from the environment, else chronon_state in AIRFLOW_HOME)",
)
BUNDLE = option(
    "--bundle",
    metavar="NAME",
    help=f"Airflow's DAG bundle of this deployment ({DEFAULT_BUNDLE}); airflow chronon reads the confs that are in it",
)


def deployment_of(options: argparse.Namespace) -> Deployment:
    """The deployment that a command's options name, and Airflow's environment where they name none."""
    return find_deployment(
        environ=os.environ, conf_root=options.root, bundle=options.bundle, state_root=options.state_root
    )


def find_state(root: ConfRoot, options: argparse.Namespace) -> StateFolder:
    """What is remembered of a conf root's deployment; nothing is read yet."""
    return deployment_of(options).open_state(root)
