"""Compiled files of confs that are gone, kept on this machine while their last jobs may read them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection
from pathlib import Path

from airflow_chronon.core.records.manifest import DeployedManifest
from airflow_chronon.state.files import open_state_files


def forget_files(folder: Path, *, keep: Collection[str]) -> None:
    """Remove the files of DAGs whose records are gone. What cannot be removed is left for the next time."""
    for each in folder.iterdir() if folder.is_dir() else ():
        if each.name not in keep:
            shutil.rmtree(each, ignore_errors=True)


def conf_file(manifest: DeployedManifest, *, folder: Path, writes: bool) -> str:
    """Where the conf's file is on this machine; with ``writes`` it is put there.

    Its path ends like the one in the tree, since Chronon's driver tells a conf's type from it.
    """
    relative = f"{manifest.dag_id}/{manifest.digest}/{manifest.file}"
    if writes and not (folder / relative).exists():
        open_state_files(str(folder)).write(relative, json.dumps(manifest.document, ensure_ascii=False).encode())
    return str(folder / relative)
