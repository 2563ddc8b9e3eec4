"""Reading a conf root from disk: every file under its own guard, every fault collected."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from airflow_chronon.catalogs.build import build_catalog
from airflow_chronon.core.conf import Conf, ConfKey
from airflow_chronon.core.documents import ConfType, Environment, read_document
from airflow_chronon.core.plan.facts import TreeFacts, TreeState, tree_facts
from airflow_chronon.core.resolve import ConfPlan, RejectedConf, Verdict, resolve
from airflow_chronon.core.settings import CatalogSettings, ConfSettings, Settings
from airflow_chronon.core.settings_text import read_settings
from airflow_chronon.core.tree import ConfTree
from airflow_chronon.engine.build import build_runner
from airflow_chronon.errors import ChrononError, Fault, Rejected

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
    state: TreeState = TreeState.WHOLE  #: whether this can be the whole truth (C23)
    unchanged: frozenset[ConfKey] = frozenset()  #: the same as in ``base_root``, so not deployed on this branch (C24)

    @property
    def branch(self) -> str:
        return self.settings.branch or self.settings.default_branch

    @property
    def namespace_prefix(self) -> str:
        """What sets the assets of a branch apart; empty on the default branch (C24)."""
        return "" if self.branch == self.settings.default_branch else f"{quote(self.branch, safe='')}--"

    def judge(self) -> dict[str, Verdict]:
        """The verdict on every conf, by ``type/name``, in a fixed order; unreadable files included."""
        tree = ConfTree(self.confs, environment=self.settings.environment)
        unchanged = set(map(str, self.unchanged))  # judged all the same: others read them
        verdicts = {
            key: _with_backends(key, verdict)
            for key, verdict in resolve(tree, self.settings, branch=self.branch).items()
            if key not in unchanged
        }
        for rejected in self.unreadable:
            free = rejected.key if rejected.key not in verdicts else rejected.file
            verdicts[free] = rejected
        return dict(sorted(verdicts.items()))

    def facts(self, verdicts: Mapping[str, Verdict] | None = None) -> TreeFacts:
        """What a plan needs to know of the tree; ``verdicts`` when they were worked out already."""
        return tree_facts(
            self.judge() if verdicts is None else verdicts,
            (conf for conf in self.confs if conf.key not in self.unchanged),
            branch=self.branch,
            default_branch=self.settings.default_branch,
            state=self.state,
            problems=self.problems,
        )


def read_conf_root(
    root: Path, *, environ: Mapping[str, str], branch: str | None = None, warehouse: str | None = None
) -> ConfRoot:
    """Read a conf root, or one compiled tree. Never raises for what is wrong with it: it is all in the result.


    ``branch`` and ``warehouse`` (the catalog's root) are used when the settings name none. With settings that cannot be
    read nothing is deployed, since every conf's schedule may depend on them.
    """
    if not root.is_dir():
        remedy = "create it, or set [chronon] conf_root"
        missing = Fault("input", "", f"there is no conf root {root}", remedy)
        return ConfRoot(root, Settings(branch=branch or None), problems=(missing,), state=TreeState.EMPTY)
    try:
        settings = _settings(root, environ)
    except Rejected as error:
        faults = tuple(_in_settings(fault) for fault in error.faults)
        return ConfRoot(root, Settings(branch=branch or None), problems=faults, state=TreeState.UNREADABLE)
    if settings.branch is None and branch:
        settings = settings.model_copy(update={"branch": branch})
    if warehouse and settings.catalog.kind == "filesystem" and not (settings.catalog.model_extra or {}).get("root"):
        catalog = CatalogSettings.model_validate({**settings.catalog.model_dump(), "root": warehouse})
        settings = settings.model_copy(update={"catalog": catalog})
    if faults := backend_faults(settings):
        found_faults = tuple(_in_settings(fault) for fault in faults)
        return ConfRoot(root, settings, problems=found_faults, state=TreeState.UNREADABLE)
    problems: list[Fault] = []
    try:
        tree = _compiled_tree(root, settings.environment)
        found, unreadable = _read_tree(tree, root, problems) if tree is not None else ([], [])
    except OSError as error:
        problem = _unreadable(error, what=f"the conf root {root}")
        return ConfRoot(root, settings, problems=(problem,), state=TreeState.UNREADABLE)
    confs, doubled = _without_doubles(found)
    unchanged = _unchanged(confs, root, settings, problems) if settings.base_root is not None else frozenset()
    state = TreeState.UNREADABLE if problems else TreeState.WHOLE
    if not (found or unreadable or problems):
        problems.append(_nothing_found(root))
        state = TreeState.EMPTY
    return ConfRoot(root, settings, tuple(confs), (*unreadable, *doubled), tuple(problems), state, unchanged)


def _unchanged(confs: list[Conf], root: Path, settings: Settings, problems: list[Fault]) -> frozenset[ConfKey]:
    """The confs that ``base_root``, a checkout of the default branch, holds too, word for word (C24)."""
    if (settings.branch or settings.default_branch) == settings.default_branch:
        return frozenset()
    base = root / str(settings.base_root)
    tree = _compiled_tree(base, settings.environment) if base.is_dir() else None
    if tree is None:  # without it everything would be deployed, which nobody asked for
        problem, remedy = f"there is no compiled tree in {base}", "check the default branch out there, or leave base_root out"
        problems.append(Fault("C24", f"{SETTINGS_FILE} base_root", problem, remedy))
        return frozenset(conf.key for conf in confs)
    found, _ = _read_tree(tree, base, problems)
    same = {conf.key: conf.raw for conf in found}
    return frozenset(conf.key for conf in confs if same.get(conf.key) == conf.raw)


def read_branch(root: Path, *, environ: Mapping[str, str], branch: str | None = None) -> tuple[str, str]:
    """The branch of a conf root and its default branch, from the settings alone; those that cannot be read name none."""
    try:
        settings = _settings(root, environ)
    except Rejected:
        settings = Settings()
    return settings.branch or branch or settings.default_branch, settings.default_branch


def _in_settings(fault: Fault) -> Fault:
    return replace(fault, field=f"{SETTINGS_FILE} {fault.field}".strip())


def _with_backends(key: str, verdict: Verdict) -> Verdict:
    """Reject a conf whose own settings name a catalog or runner that cannot be built."""
    if isinstance(verdict, ConfPlan) and "airflow" in (verdict.conf.meta.custom_json or ""):
        faults = backend_faults(verdict.settings)
        if faults:
            return RejectedConf(key, verdict.conf.file, faults)
    return verdict


def backend_faults(settings: ConfSettings) -> tuple[Fault, ...]:
    """What the catalogs and the runner have against their settings, overrides included; nothing is opened.

    A catalog root may still be missing here: whoever deploys fills it in.
    """
    faults: dict[Fault, None] = {}
    for each in (settings, *getattr(settings, "overrides", ())):
        catalogs = [each.catalog.of_table(""), *(table.model_dump(exclude={"match"}) for table in each.catalog.tables)]
        for catalog in catalogs:
            faults |= _faults_of(partial(build_catalog, {"root": "warehouse", **catalog}))
        faults |= _faults_of(partial(build_runner, each.runner.model_dump(), default_root="warehouse"))
    return tuple(faults)


def _faults_of(build: Callable[[], object]) -> dict[Fault, None]:
    try:
        build()
    except ChrononError as error:
        return dict.fromkeys(error.faults if isinstance(error, Rejected) else (error.fault,))
    return {}


def _settings(root: Path, environ: Mapping[str, str]) -> Settings:
    path = root / SETTINGS_FILE
    if not os.path.lexists(path):
        return Settings()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Rejected([_unreadable(error, what="the file")]) from None
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
            problems.append(_unreadable(error, what=f"the folder {error.filename}"))

    for directory, folders, names in os.walk(folder, onerror=note):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        yield from (Path(directory, name) for name in sorted(names) if not name.startswith("."))


def _read_conf(path: Path, conf_type: ConfType, shown: str) -> Conf:
    document = read_document(conf_type, raw := _read_json(path))
    name = document.meta_data.name
    if not name or name.startswith(".") or ".." in name or "/" in name or "\\" in name or not name.isprintable():
        remedy = "rename it: a name is Python names with dots between them"
        raise Rejected([Fault("input", "metaData.name", f"{name!r} cannot be a conf's name", remedy)])
    return Conf(ConfKey(conf_type, name), document, raw, shown)


def _read_json(path: Path) -> Any:
    try:
        size = path.stat().st_size
        if size > MAX_CONF_BYTES:
            limit = f"{MAX_CONF_BYTES // 1024**2} MB"
            remedy = "remove it, or put it outside the conf root"
            raise Rejected([Fault("input", "", f"the file is {size // 1024**2} MB, and no conf is larger than {limit}", remedy)])
        if not path.is_file():
            raise Rejected([Fault("input", "", "it is no regular file", "remove it")])
        return json.loads(path.read_bytes())
    except (OSError, UnicodeDecodeError) as error:
        raise Rejected([_unreadable(error, what="the file")]) from None
    except RecursionError:
        raise Rejected([_not_json("it is nested too deeply")]) from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise Rejected([_not_json(f"{error.msg[:1].lower()}{error.msg[1:]} at {where}")]) from None
    except ValueError as error:  # a number of thousands of digits
        raise Rejected([_not_json(str(error))]) from None


def _not_json(problem: str) -> Fault:
    return Fault("input", "", f"the file is not JSON: {problem}", "compile it again with zipline compile")


def _unreadable(error: OSError | UnicodeDecodeError, *, what: str) -> Fault:
    if isinstance(error, UnicodeDecodeError):
        return Fault("input", "", f"{what} is not UTF-8 text: byte {error.start} is {error.object[error.start]:#04x}", "save it as UTF-8")
    return Fault("input", "", f"{what} cannot be read: {error.strerror or error}", "check its permissions, or remove it")


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
