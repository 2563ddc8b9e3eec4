"""Which deployment this is: where its confs are and which branch it belongs to, as Airflow's configuration says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from airflow.dag_processing.bundles.base import get_bundle_base_folder
from airflow.sdk.configuration import conf

DEFAULT_FOLDER = "chronon"  #: the conf root beside the loader file, unless [chronon] conf_root says otherwise


@dataclass(frozen=True)
class Deployment:
    """What Airflow's configuration and the place of the loader file say."""

    conf_root: Path
    branch: str | None  #: None: chronon.yaml or its default decides


def find_deployment(*, near: str | None, conf_root: str | Path | None = None) -> Deployment:
    """The deployment of a loader file; ``near`` is its ``__file__``, ``conf_root`` overrides where the confs are."""
    root = conf_root or conf.get("chronon", "conf_root", fallback="") or _beside(near)
    branch = conf.get("chronon", "branch", fallback="") or (bundle_branch(near) if near else None)
    return Deployment(Path(root), branch or None)


def bundle_branch(near: str) -> str | None:
    """The branch that the DAG bundle of a file follows; None when its bundle has no branch, as a plain folder has none."""
    bundles = conf.getjson("dag_processor", "dag_bundle_config_list", fallback=None)
    if not isinstance(bundles, list):
        return None
    file = Path(near).resolve()
    for bundle in bundles:
        reference = (bundle.get("kwargs") or {}).get("tracking_ref") if isinstance(bundle, dict) else None
        if reference and file.is_relative_to(get_bundle_base_folder(str(bundle.get("name"))).resolve()):
            return str(reference)
    return None


def _beside(near: str | None) -> Path:
    return (Path(near).parent if near else Path(conf.get("core", "dags_folder"))) / DEFAULT_FOLDER
