"""Reading ``chronon.yaml`` from disk, with what its catalogs and runners have against it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from airflow_chronon.catalogs.build import build_catalog
from airflow_chronon.core.settings.model import CatalogSettings, ConfSettings, Settings, over
from airflow_chronon.core.settings.yaml import branches_in, filled, place_of, read_settings
from airflow_chronon.engine.build import build_runner
from airflow_chronon.errors import ChrononError, Fault, Rejected

SETTINGS_FILE = "chronon.yaml"
MAX_SETTINGS_BYTES = 1024**2


def read_settings_file(root: Path, *, environ: Mapping[str, str]) -> Settings:
    """The settings of a conf root; without a file, the defaults. The catalog always has a root.

    Raises :class:`airflow_chronon.errors.Rejected` with every fault, its line in the file included.
    """
    path, text = root / SETTINGS_FILE, ""
    try:
        if os.path.lexists(path):
            text = read_bytes(path, limit=MAX_SETTINGS_BYTES, kind="settings file").decode()
        settings = _with_root(read_settings(text, environ=environ), environ)
    except (OSError, UnicodeDecodeError) as error:
        raise Rejected([_in_file(cannot_read(error, what="the file"))]) from None
    except Rejected as error:
        raise Rejected([_in_file(fault) for fault in error.faults]) from None
    faults = _file_faults(settings, environ, text)
    if faults:
        raise Rejected(faults)
    return settings


def branch_settings(root: Path, *, environ: Mapping[str, str]) -> Settings | None:
    """The branches that a bad settings file names, the defaults beside them; None when it cannot be told."""
    try:
        text = read_bytes(root / SETTINGS_FILE, limit=MAX_SETTINGS_BYTES, kind="settings file").decode(errors="replace")
    except (OSError, Rejected):
        return None
    return branches_in(text, environ)


def default_warehouse(environ: Mapping[str, str]) -> str:
    """The catalog's root where the settings name none: ``warehouse`` in Airflow's home."""
    return str(Path(environ.get("AIRFLOW_HOME", "~/airflow")).expanduser() / "warehouse")


def backend_faults(settings: ConfSettings, environ: Mapping[str, str]) -> tuple[Fault, ...]:
    """What the catalogs and the runner have against their settings; nothing is opened."""
    catalogs = [
        settings.catalog.of_table(""),
        *(settings.catalog.of_table(each.match) for each in settings.catalog.tables),
    ]
    faults: dict[Fault, None] = {}
    for catalog in catalogs:
        faults |= _faults_of(partial(build_catalog, filled(catalog, environ)))
    faults |= dict.fromkeys(runner_faults(settings, environ))
    return tuple(faults)


def runner_faults(settings: ConfSettings, environ: Mapping[str, str]) -> tuple[Fault, ...]:
    """What the runner has against its settings; nothing is started."""
    root = filled(settings.catalog.of_table(""), environ).get("root")
    return tuple(_faults_of(partial(build_runner, filled(settings.runner.model_dump(), environ), default_root=root)))


def _with_root(settings: Settings, environ: Mapping[str, str]) -> Settings:
    given = settings.catalog.model_dump()
    if given["kind"] != "filesystem" or given.get("root"):
        return settings
    catalog = CatalogSettings.model_validate(over(given, {"root": default_warehouse(environ)}))
    return settings.model_copy(update={"catalog": catalog})


def _file_faults(settings: Settings, environ: Mapping[str, str], text: str) -> tuple[Fault, ...]:
    """The backends' faults of the whole file, each where it stands; an override repeats none of the defaults'."""
    found: dict[str, Fault] = {}
    layers: list[tuple[tuple[str | int, ...], ConfSettings]] = [((), settings)]
    layers += [(("overrides", index), settings.with_override(each)) for index, each in enumerate(settings.overrides)]
    for path, layer in layers:
        for fault in backend_faults(layer, environ):
            place = place_of(text, (*path, *fault.field.split(".")))
            found.setdefault(fault.message, _in_file(replace(fault, field=place)))
    return tuple(found.values())


def _faults_of(build: Callable[[], object]) -> dict[Fault, None]:
    try:
        build()
    except ChrononError as error:
        return dict.fromkeys(error.faults if isinstance(error, Rejected) else (error.fault,))
    return {}


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
    size = path.stat().st_size
    if size > limit:
        problem = f"the file has {_size(size)}, and no {kind} is larger than {_size(limit)}"
        raise Rejected([Fault("input", "", problem, "remove it, or put it outside the conf root")])
    if not path.is_file():
        raise Rejected([Fault("input", "", "it is no regular file", "remove it")])
    return path.read_bytes()


def _size(count: int) -> str:
    return f"{count // 1024**2} MB" if count >= 1024**2 else f"{count // 1024} KB"
