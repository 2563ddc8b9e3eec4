"""Reading ``chronon.yaml`` from disk."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from airflow_chronon.conf_root.links import leads_out, outside
from airflow_chronon.core.bounds import MAX_SETTINGS_BYTES
from airflow_chronon.core.settings.model import Settings
from airflow_chronon.core.settings.yaml import SETTINGS_FILE, branches_in, read_settings
from airflow_chronon.errors import Fault, Rejected
from airflow_chronon.storage.files import NotAFile, read_regular_file


def read_settings_file(root: Path, *, environ: Mapping[str, str]) -> Settings:
    """The settings of a conf root; without a file, the defaults. The catalog always has a root.

    Raises :class:`airflow_chronon.errors.Rejected` with every fault, its line in the file included.
    """
    return parse_settings(settings_text(root), environ=environ)


def settings_text(root: Path) -> str:
    """The text of the settings file of a conf root; empty without one. Raises ``Rejected`` when it cannot be read."""
    path = root / SETTINGS_FILE
    try:
        if not os.path.lexists(path):
            return ""
        if leads_out(path, root):
            raise Rejected([outside("it")])
        return read_bytes(path, limit=MAX_SETTINGS_BYTES, kind="settings file").decode()
    except (OSError, UnicodeDecodeError) as error:
        raise Rejected([_in_file(cannot_read(error, what="the file"))]) from None
    except Rejected as error:
        raise Rejected([_in_file(fault) for fault in error.faults]) from None


def parse_settings(text: str, *, environ: Mapping[str, str]) -> Settings:
    """The settings that a text holds, read from the file or kept. Raises ``Rejected`` with every fault."""
    try:
        return read_settings(text, environ=environ, warehouse=default_warehouse(environ))
    except Rejected as error:
        raise Rejected([_in_file(fault) for fault in error.faults]) from None


def branch_settings(root: Path, *, environ: Mapping[str, str]) -> Settings | None:
    """The branches that a bad settings file names, the defaults beside them; None when it cannot be read."""
    path = root / SETTINGS_FILE
    try:
        if leads_out(path, root):
            return None
        text = read_bytes(path, limit=MAX_SETTINGS_BYTES, kind="settings file").decode(errors="replace")
    except (OSError, Rejected):
        return None
    return branches_in(text, environ)


def default_warehouse(environ: Mapping[str, str]) -> str:
    """The catalog's root where the settings name none: ``warehouse`` in Airflow's home."""
    return str(airflow_home(environ) / "warehouse")


def airflow_home(environ: Mapping[str, str]) -> Path:
    """Airflow's own folder."""
    return Path(environ.get("AIRFLOW_HOME", "~/airflow")).expanduser()


def _in_file(fault: Fault) -> Fault:
    return replace(fault, field=f"{SETTINGS_FILE} {fault.field}".strip())


def cannot_read(error: OSError | UnicodeDecodeError, *, what: str) -> Fault:
    if isinstance(error, UnicodeDecodeError):
        return Fault(
            "input",
            "",
            f"{what} is not UTF-8 text: byte {error.start} is {error.object[error.start]:#04x}",
            "save it as UTF-8",
        )
    remedy = "check the path" if isinstance(error, FileNotFoundError) else "check its permissions, or remove it"
    return Fault("input", "", f"{what} cannot be read: {error.strerror or error}", remedy)


def read_bytes(path: Path, *, limit: int, kind: str) -> bytes:
    """The bytes of a regular file of at most ``limit``; ``kind`` is what it should be. Raises ``Rejected``, ``OSError``."""
    try:
        data = read_regular_file(path, most=limit + 1)
    except NotAFile:
        raise Rejected([Fault("input", "", "it is not a regular file", "remove it")]) from None
    if len(data) > limit:
        size = max(len(data), path.stat().st_size)
        problem = f"the file has {_size(size)}, and no {kind} is larger than {_size(limit)}"
        raise Rejected([Fault("input", "", problem, "remove it, or put it outside the conf root")])
    return data


def _size(count: int) -> str:
    return f"{count // 1024**2} MB" if count >= 1024**2 else f"{count // 1024} KB"
