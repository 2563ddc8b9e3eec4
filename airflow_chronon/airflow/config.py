"""Which deployment this is: where its confs are and which branch it belongs to, as Airflow's configuration says."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow.dag_processing.bundles.base import get_bundle_base_folder
from airflow.sdk.configuration import conf

DEFAULT_FOLDER = "chronon"  #: the conf root beside the loader file, unless [chronon] conf_root says otherwise
DEFAULT_BUNDLE = "dags-folder"  #: Airflow's own name for the bundle of its dags folder
STATE_FOLDER = "chronon_state"  #: below AIRFLOW_HOME, unless [chronon] state_root says otherwise


@dataclass(frozen=True)
class Deployment:
    """What Airflow's configuration and the place of the loader file say."""

    conf_root: Path
    branch: str | None  #: None: chronon.yaml or its default decides
    bundle: str  #: the DAG bundle that the loader file is in
    state_root: str  #: where records and archive are kept: a path or an fsspec URL
    orphaned_files: (
        Path  #: a folder of this machine for the files of confs that are gone, while their last jobs need them
    )


def find_deployment(*, near: str | None, conf_root: str | Path | None = None) -> Deployment:
    """The deployment of a loader file; ``near`` is its ``__file__``, ``conf_root`` overrides where the confs are."""
    root = conf_root or conf.get("chronon", "conf_root", fallback="") or _beside(near)
    branch = conf.get("chronon", "branch", fallback="") or (bundle_branch(near) if near else None)
    home = Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser()
    state_root = conf.get("chronon", "state_root", fallback="") or str(home / STATE_FOLDER)
    return Deployment(Path(root), branch or None, bundle_of(near), state_root, home / "chronon_orphaned")


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
