"""What Airflow's configuration and the place of a loader file say of a deployment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from airflow.dag_processing.bundles.base import get_bundle_base_folder
from airflow.sdk.configuration import conf

from airflow_chronon.deployment import DEFAULT_BUNDLE, OPTIONS, Deployment, find_deployment

DEFAULT_FOLDER = "chronon"  #: the conf root beside the loader file, unless [chronon] conf_root says otherwise


def deployment_of(*, near: str | None, conf_root: str | Path | None = None) -> Deployment:
    """The deployment of a loader file; ``near`` is its ``__file__``, ``conf_root`` overrides where the confs are."""
    return find_deployment(
        environ=os.environ,
        configured={name: conf.get("chronon", name, fallback="") for name in OPTIONS},
        conf_root=conf_root,
        default_root=_beside(near),
        bundle=bundle_of(near),
        bundle_branch=bundle_branch(near) if near else None,
    )


def bundle_of(near: str | None) -> str:
    """The DAG bundle that a file is in, as Airflow's configuration has it; the one of the dags folder when none fits."""
    bundle = None if near is None else _bundle_at(near)
    return DEFAULT_BUNDLE if bundle is None else str(bundle.get("name"))


def bundle_branch(near: str) -> str | None:
    """The branch that the DAG bundle of a file follows; None when its bundle has no branch, as a plain folder has none."""
    reference = ((_bundle_at(near) or {}).get("kwargs") or {}).get("tracking_ref")
    return str(reference) if reference else None


def _bundle_at(near: str) -> dict[str, Any] | None:
    place = Path(near).resolve()
    return next((bundle for bundle in _bundles() if place.is_relative_to(_folder_of(bundle).resolve())), None)


def _folder_of(bundle: dict[str, Any]) -> Path:
    """Where a bundle's files are: a local one's are where they were, others are fetched below Airflow's own folder."""
    if str(bundle.get("classpath", "")).endswith("LocalDagBundle"):
        return Path((bundle.get("kwargs") or {}).get("path") or conf.get("core", "dags_folder"))
    return get_bundle_base_folder(str(bundle.get("name")))


def _bundles() -> list[dict[str, Any]]:
    bundles = conf.getjson("dag_processor", "dag_bundle_config_list", fallback=None)
    return [bundle for bundle in bundles if isinstance(bundle, dict)] if isinstance(bundles, list) else []


def _beside(near: str | None) -> Path:
    return (Path(near).parent if near else Path(conf.get("core", "dags_folder"))) / DEFAULT_FOLDER
