"""Reading a conf root from disk: every file under its own guard, every fault collected."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from airflow_chronon.core.conf import Conf, ConfKey
from airflow_chronon.core.documents import ConfType, Environment, read_document
from airflow_chronon.core.resolve import RejectedConf, Verdict, resolve
from airflow_chronon.core.settings import CatalogSettings, Settings
from airflow_chronon.core.settings_text import read_settings
from airflow_chronon.core.tree import ConfTree
from airflow_chronon.errors import Fault, Rejected

MAX_CONF_BYTES = 16 * 1024 * 1024  #: larger files are no confs; the largest real ones are below 1 MB
SETTINGS_FILE = "chronon.yaml"

_FOLDERS = {
    "group_bys": ConfType.GROUP_BY,
    "joins": ConfType.JOIN,
    "staging_queries": ConfType.STAGING_QUERY,
}


@dataclass(frozen=True)
class ConfRoot:
    """What was found under one root, before anything is judged."""

    path: Path
    settings: Settings
    confs: tuple[Conf, ...] = ()
    unreadable: tuple[RejectedConf, ...] = ()
    problems: tuple[Fault, ...] = ()  #: what is wrong with the root itself: missing, empty, bad settings

    @property
    def branch(self) -> str:
        return self.settings.branch or self.settings.default_branch

    def judge(self, *, wanted: str | None = None) -> dict[str, Verdict]:
        """The verdict on every conf, by ``type/name``, in a fixed order; unreadable files included.

        With ``wanted``, a DAG id, of the readable confs only those of that id.
        """
        tree = ConfTree(self.confs, environment=self.settings.environment)
        verdicts = resolve(tree, self.settings, branch=self.branch, wanted=wanted)
        verdicts.update((rejected.key, rejected) for rejected in self.unreadable)
        return dict(sorted(verdicts.items()))


def read_conf_root(
    root: Path, *, environ: Mapping[str, str], branch: str | None = None, warehouse: str | None = None
) -> ConfRoot:
    """Read a conf root, or one compiled tree. Never raises for what users wrote: it is all in the result.

    ``branch`` and ``warehouse`` (the catalog's root) are used when the settings name none. With settings that cannot be read nothing is deployed, since every
    conf's schedule may depend on them.
    """
    if not root.is_dir():
        remedy = "create it, or set [chronon] conf_root"
        return ConfRoot(root, Settings(), problems=(Fault("input", "", f"there is no conf root {root}", remedy),))
    try:
        settings = _settings(root, environ)
    except Rejected as error:
        return ConfRoot(root, Settings(), problems=tuple(fault.under(SETTINGS_FILE) for fault in error.faults))
    if settings.branch is None and branch:
        settings = settings.model_copy(update={"branch": branch})
    if warehouse and settings.catalog.kind == "filesystem" and not (settings.catalog.model_extra or {}).get("root"):
        catalog = CatalogSettings.model_validate({**settings.catalog.model_dump(), "root": warehouse})
        settings = settings.model_copy(update={"catalog": catalog})
    tree = _compiled_tree(root, settings.environment)
    found, unreadable = _read_tree(tree, root) if tree is not None else ([], [])
    confs, doubled = _without_doubles(found)
    problems = () if found or unreadable else (_nothing_found(root),)
    return ConfRoot(root, settings, tuple(confs), (*unreadable, *doubled), problems)


def _settings(root: Path, environ: Mapping[str, str]) -> Settings:
    path = root / SETTINGS_FILE
    if not path.is_file():
        return Settings()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Rejected([_unreadable(error)]) from None
    return read_settings(text, file=str(path), environ=environ)


def _compiled_tree(root: Path, environment: Environment) -> Path | None:
    """The compiled tree below a conf root, or the root itself when it is one."""
    if any((root / folder).is_dir() for folder in _FOLDERS):
        return root
    names = ["compiled"] if environment is Environment.PROD else [f"compiled_{environment.name.lower()}", "compiled"]
    return next((root / name for name in names if (root / name).is_dir()), None)


def _nothing_found(root: Path) -> Fault:
    older = " (production/, of the older dialect, is not read yet)" if (root / "production").is_dir() else ""
    return Fault("input", "", f"the conf root {root} holds no compiled confs{older}", "put the output of zipline compile into compiled/")


def _read_tree(tree: Path, root: Path) -> tuple[list[Conf], list[RejectedConf]]:
    confs, unreadable = [], []
    for folder, conf_type in _FOLDERS.items():
        for path in _files(tree / folder):
            shown = str(path.relative_to(root))
            try:
                confs.append(_read_conf(path, conf_type, shown))
            except Rejected as error:
                unreadable.append(RejectedConf(f"{conf_type.value}/{path.name}", shown, error.faults))
    return confs, unreadable


def _files(folder: Path) -> Iterator[Path]:
    for directory, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        yield from (Path(directory, name) for name in sorted(names) if not name.startswith("."))


def _read_conf(path: Path, conf_type: ConfType, shown: str) -> Conf:
    try:
        size = path.stat().st_size
        if size > MAX_CONF_BYTES:
            limit = f"{MAX_CONF_BYTES // 1024**2} MB"
            raise Rejected([Fault("input", "", f"the file is {size // 1024**2} MB, more than {limit}", "is it a conf at all?")])
        if not path.is_file():
            raise Rejected([Fault("input", "", "it is no regular file", "remove it")])
        raw = json.loads(path.read_bytes())
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        raise Rejected([_unreadable(error)]) from None
    except json.JSONDecodeError as error:
        remedy = "compile it again with zipline compile"
        raise Rejected([Fault("input", f"line {error.lineno}", f"the file is not JSON: {error.msg}", remedy)]) from None
    document = read_document(conf_type, raw)
    name = document.meta_data.name
    if not name or name.startswith(".") or any(sign in name for sign in ("..", "/", "\\", "\0", "\n")):
        remedy = "rename it: a name is dots between Python names"
        raise Rejected([Fault("input", "metaData.name", f"{name!r} cannot be a conf's name", remedy)])
    return Conf(ConfKey(conf_type, name), document, raw, shown)


def _unreadable(error: Exception) -> Fault:
    reason = getattr(error, "strerror", None) or str(error)
    return Fault("input", "", f"the file cannot be read: {reason}", "check its permissions and its text")


def _without_doubles(confs: list[Conf]) -> tuple[list[Conf], list[RejectedConf]]:
    """Reject every conf whose type and name stand in two files: neither may win by chance (C26)."""
    by_key: dict[ConfKey, list[Conf]] = defaultdict(list)
    for conf in confs:
        by_key[conf.key].append(conf)
    single = [conf for conf in confs if len(by_key[conf.key]) == 1]
    doubled = []
    for key, same in by_key.items():
        if len(same) > 1:
            files = " and ".join(conf.file for conf in same)
            fault = Fault("C26", "metaData.name", f"{key} stands in {files}", "remove all but one")
            doubled.append(RejectedConf(str(key), same[0].file, (fault,)))
    return single, doubled
