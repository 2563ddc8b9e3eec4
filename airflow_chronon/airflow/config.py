"""What Airflow's configuration and the place of a loader file say of a deployment."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

from airflow.dag_processing.bundles.base import get_bundle_base_folder
from airflow.sdk.configuration import conf

from airflow_chronon.deployment import DEFAULT_BUNDLE, OPTIONS, Deployment, find_deployment
from airflow_chronon.errors import ChrononError, Fault, shown_address

DEFAULT_FOLDER = "chronon"  #: the conf root beside the loader file, unless [chronon] conf_root says otherwise


def deployment_of(*, near: str | None, conf_root: str | Path | None = None) -> Deployment:
    """The deployment of a loader file; ``near`` is its ``__file__``, ``conf_root`` overrides where the confs are."""
    return find_deployment(
        environ=os.environ,
        configured=_configured(),
        conf_root=conf_root,
        default_root=_beside(near),
        bundle=bundle_of(near),
        bundle_branch=bundle_branch(near) if near else None,
    )


def deployment_of_bundle(name: str | None, *, conf_root: str | None = None) -> Deployment:
    """The deployment in a DAG bundle, for commands, which lie beside no loader file.

    Its confs are in ``chronon/`` at the top of the bundle's files, as the dag processor fetched them last; ``conf_root`` and
    ``[chronon] conf_root`` win over that. Without a name it is the bundle of the dags folder, or else the only one. Raises
    ``ChrononError`` when the confs are asked of a bundle that is not known, or whose files are not on this machine.
    """
    configured, bundle = _configured(), _bundle_called(name)
    named = conf_root or configured["conf_root"]
    if not named and bundle is None and (known := [str(each.get("name")) for each in _bundles()]):
        raise _no_bundle(name, known)
    return find_deployment(
        environ=os.environ,
        configured=configured,
        conf_root=named or (_beside(None) if bundle is None else _fetched(bundle) / DEFAULT_FOLDER),
        bundle=name if bundle is None else str(bundle.get("name")),
        bundle_branch=_branch_of(bundle or {}),
    )


def api_address() -> str:
    """Where Airflow's configuration has its API: ``[api] base_url``, else this machine."""
    address = conf.get("api", "base_url", fallback="") or f"http://127.0.0.1:{conf.get('api', 'port', fallback='8080')}"
    return str(address).rstrip("/")


def bundle_of(near: str | None) -> str:
    """The DAG bundle that a file is in, as Airflow's configuration has it; the one of the dags folder when none fits."""
    bundle = None if near is None else _bundle_at(near)
    return DEFAULT_BUNDLE if bundle is None else str(bundle.get("name"))


def bundle_branch(near: str) -> str | None:
    """The branch that the DAG bundle of a file follows; None when its bundle has no branch, as a plain folder has none."""
    return _branch_of(_bundle_at(near) or {})


def _branch_of(bundle: dict[str, Any]) -> str | None:
    reference = (bundle.get("kwargs") or {}).get("tracking_ref")
    return str(reference) if reference else None


def _bundle_called(name: str | None) -> dict[str, Any] | None:
    """The bundle of a name; without one that of the dags folder, or else the only one there is."""
    bundles = _bundles()
    found = next((bundle for bundle in bundles if bundle.get("name") == (name or DEFAULT_BUNDLE)), None)
    return bundles[0] if found is None and name is None and len(bundles) == 1 else found


def _no_bundle(name: str | None, known: list[str]) -> ChrononError:
    problem = "it is not said which DAG bundle is meant" if name is None else f"Airflow has no DAG bundle {name!r}"
    remedy = f"name one of {', '.join(known)}, or a conf root with --root"
    return ChrononError(Fault("input", "--bundle", problem, remedy))


def _fetched(bundle: dict[str, Any]) -> Path:
    """Where the files of a bundle are on this machine. Nothing is fetched: what the dag processor reads must not change
    before it looks itself, or runs would begin on a commit that their DAGs are not from."""
    if _is_local(bundle):
        return _folder_of(bundle)
    from airflow.dag_processing.bundles.manager import DagBundlesManager

    name, remedy = str(bundle.get("name")), "run it where the dag-processor runs, or name a conf root with --root"
    try:
        with contextlib.redirect_stdout(sys.stderr):  # Airflow logs to stdout, where a command's JSON may be expected
            place = DagBundlesManager().get_bundle(name).path  # type: ignore[no-untyped-call]
    except Exception as error:  # of any provider's bundle
        problem = f"the DAG bundle {name} cannot be opened: {shown_address(str(error))}"
        raise ChrononError(Fault("input", "--bundle", problem, remedy)) from error
    if not place.is_dir():
        problem = f"the DAG bundle {name} is not fetched on this machine: there is no {place}"
        raise ChrononError(Fault("input", "--bundle", problem, remedy))
    return place


def _bundle_at(near: str) -> dict[str, Any] | None:
    place = Path(near).resolve()
    return next((bundle for bundle in _bundles() if place.is_relative_to(_folder_of(bundle).resolve())), None)


def _folder_of(bundle: dict[str, Any]) -> Path:
    """Where a bundle's files are: a local one's are where they were, others are fetched below Airflow's own folder."""
    if _is_local(bundle):
        return Path((bundle.get("kwargs") or {}).get("path") or conf.get("core", "dags_folder"))
    return get_bundle_base_folder(str(bundle.get("name")))


def _is_local(bundle: dict[str, Any]) -> bool:
    return str(bundle.get("classpath", "")).endswith("LocalDagBundle")


def _configured() -> dict[str, str]:
    return {name: conf.get("chronon", name, fallback="") for name in OPTIONS}


def _bundles() -> list[dict[str, Any]]:
    bundles = conf.getjson("dag_processor", "dag_bundle_config_list", fallback=None)
    return [bundle for bundle in bundles if isinstance(bundle, dict)] if isinstance(bundles, list) else []


def _beside(near: str | None) -> Path:
    return (Path(near).parent if near else Path(conf.get("core", "dags_folder"))) / DEFAULT_FOLDER
