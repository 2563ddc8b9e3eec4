"""Reading a conf root from disk: every file under its own guard, every fault collected."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from airflow_chronon.core.conf import Conf, ConfKey
from airflow_chronon.core.documents import ConfType, Environment, read_document
from airflow_chronon.core.resolve import ConfPlan, RejectedConf, Verdict, resolve
from airflow_chronon.core.settings import Settings
from airflow_chronon.core.tree import ConfTree
from airflow_chronon.errors import Fault, Rejected
from airflow_chronon.settings_file import backend_faults, cannot_read, read_settings_file

MAX_CONF_BYTES = 16 * 1024 * 1024  #: larger files are no confs; the largest real ones are below 1 MB

_NAMESPACE = re.compile(r"[\w-]+(\.[\w-]+)*")
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
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)  #: what fills ``${NAME}`` in settings

    @property
    def branch(self) -> str:
        return self.settings.branch or self.settings.default_branch

    @property
    def namespace_prefix(self) -> str:
        """What sets the assets of a branch apart; empty on the default branch (C24)."""
        return "" if self.branch == self.settings.default_branch else f"{quote(self.branch, safe='')}--"

    def judge(self, *, wanted: str | None = None) -> dict[str, Verdict]:
        """The verdict on every conf, by ``type/name``, in a fixed order; unreadable files included.

        With ``wanted``, a DAG id, of the readable confs only those of that id.
        """
        tree = ConfTree(self.confs, environment=self.settings.environment)
        verdicts = {
            key: _with_backends(key, verdict, self.environ)
            for key, verdict in resolve(tree, self.settings, branch=self.branch, wanted=wanted).items()
        }
        for rejected in self.unreadable:
            free = rejected.key if rejected.key not in verdicts else rejected.file
            verdicts[free] = rejected
        return dict(sorted(verdicts.items()))


def read_conf_root(root: Path, *, environ: Mapping[str, str], branch: str | None = None) -> ConfRoot:
    """Read a conf root, or one compiled tree. Never raises for what is wrong with it: it is all in the result.

    ``branch`` is used when the settings name none. With settings that cannot be read nothing is deployed, since every
    conf's schedule may depend on them.
    """
    if not root.is_dir():
        remedy = "create it, or set [chronon] conf_root"
        return ConfRoot(root, Settings(), problems=(Fault("input", "", f"there is no conf root {root}", remedy),))
    try:
        settings = read_settings_file(root, environ=environ)
    except Rejected as error:
        return ConfRoot(root, Settings(), problems=error.faults)
    if settings.branch is None and branch:
        settings = settings.model_copy(update={"branch": branch})
    problems: list[Fault] = []
    try:
        tree = _compiled_tree(root, settings.environment)
        found, unreadable = _read_tree(tree, root, problems) if tree is not None else ([], [])
    except OSError as error:
        return ConfRoot(root, settings, problems=(cannot_read(error, what=f"the conf root {root}"),))
    confs, doubled = _without_doubles(found)
    if not (found or unreadable or problems):
        problems.append(_nothing_found(root))
    return ConfRoot(root, settings, tuple(confs), (*unreadable, *doubled), tuple(problems), environ)


def _with_backends(key: str, verdict: Verdict, environ: Mapping[str, str]) -> Verdict:
    """Reject a conf whose own settings name a catalog or runner that cannot be built."""
    if isinstance(verdict, ConfPlan) and "airflow" in (verdict.conf.meta.custom_json or ""):
        faults = backend_faults(verdict.settings, environ)
        if faults:
            return RejectedConf(key, verdict.conf.file, faults)
    return verdict


def _compiled_tree(root: Path, environment: Environment) -> Path | None:
    """The compiled tree below a conf root, or the root itself when it is one."""
    if any((root / folder).is_dir() for folder in _FOLDERS):
        return root
    names = ["compiled"] if environment is Environment.PROD else [f"compiled_{environment.name.lower()}", "compiled"]
    return next((root / name for name in names if (root / name).is_dir()), None)


def _nothing_found(root: Path) -> Fault:
    older = " (production/, of the older dialect, is not read yet)" if (root / "production").is_dir() else ""
    return Fault(
        "input",
        "",
        f"the conf root {root} holds no compiled confs{older}",
        "put the output of zipline compile into compiled/",
    )


def _read_tree(tree: Path, root: Path, problems: list[Fault]) -> tuple[list[Conf], list[RejectedConf]]:
    confs, unreadable = [], []
    for folder, conf_type in _FOLDERS.items():
        for path in _files(tree / folder, problems):
            shown = str(path.relative_to(root))
            try:
                confs.append(_read_conf(path, conf_type, shown))
            except Rejected as error:
                name = ".".join(path.relative_to(tree / folder).parts)  # the name that the compiler gave it
                unreadable.append(RejectedConf(f"{conf_type.value}/{name}", shown, error.faults))
    return confs, unreadable


def _files(folder: Path, problems: list[Fault]) -> Iterator[Path]:
    """Every file below a folder; a folder that cannot be listed becomes a problem, so that its confs do not just vanish."""

    def note(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            problems.append(cannot_read(error, what=f"the folder {error.filename}"))

    for directory, folders, names in os.walk(folder, onerror=note):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        yield from (Path(directory, name) for name in sorted(names) if not name.startswith("."))


def _read_conf(path: Path, conf_type: ConfType, shown: str) -> Conf:
    document = read_document(conf_type, raw := _read_json(path))
    name = document.meta_data.name
    if not name or name.startswith(".") or ".." in name or "/" in name or "\\" in name or not name.isprintable():
        remedy = "rename it: a name is Python names with dots between them"
        raise Rejected([Fault("input", "metaData.name", f"{name!r} cannot be a conf's name", remedy)])
    namespace = document.meta_data.output_namespace
    if _NAMESPACE.fullmatch(namespace) is None:
        remedy = "use letters, digits, underscores and dashes, with single dots between"
        raise Rejected([Fault("input", "metaData.outputNamespace", f"{namespace!r} cannot be a namespace", remedy)])
    return Conf(ConfKey(conf_type, name), document, raw, shown)


def _read_json(path: Path) -> Any:
    try:
        size = path.stat().st_size
        if size > MAX_CONF_BYTES:
            limit = f"{MAX_CONF_BYTES // 1024**2} MB"
            remedy = "remove it, or put it outside the conf root"
            raise Rejected(
                [Fault("input", "", f"the file is {size // 1024**2} MB, and no conf is larger than {limit}", remedy)]
            )
        if not path.is_file():
            raise Rejected([Fault("input", "", "it is no regular file", "remove it")])
        return json.loads(path.read_bytes())
    except (OSError, UnicodeDecodeError) as error:
        raise Rejected([cannot_read(error, what="the file")]) from None
    except RecursionError:
        raise Rejected([_not_json("it is nested too deeply")]) from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise Rejected([_not_json(f"{error.msg[:1].lower()}{error.msg[1:]} at {where}")]) from None
    except ValueError as error:  # a number of thousands of digits
        raise Rejected([_not_json(str(error))]) from None


def _not_json(problem: str) -> Fault:
    return Fault("input", "", f"the file is not JSON: {problem}", "compile it again with zipline compile")


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
