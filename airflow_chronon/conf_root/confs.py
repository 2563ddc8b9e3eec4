"""Reading compiled confs from disk: every file under its own guard."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

from airflow_chronon.conf_root.files import FoundFile, files_by_team, no_folder
from airflow_chronon.conf_root.settings import cannot_read, read_bytes
from airflow_chronon.conf_root.teams import TeamReader
from airflow_chronon.core.bounds import MAX_CONF_BYTES
from airflow_chronon.core.confs.conf import Conf, ConfKey
from airflow_chronon.core.confs.documents import (
    ConfType,
    DependencySpec,
    Dialect,
    read_document,
    refuse_unstorable,
    table_count,
)
from airflow_chronon.core.confs.naming import refuse_name, refuse_namespace
from airflow_chronon.core.confs.older import translated
from airflow_chronon.core.confs.plan import RejectedConf
from airflow_chronon.core.confs.rights import namespace_faults, place_faults
from airflow_chronon.core.settings.model import Environment, Settings
from airflow_chronon.errors import Fault, Rejected

COMPILED_TREE = "compiled"  #: what the zipline dialect calls its compiled tree
OLDER_TREE = "production"  #: what the older dialect calls its compiled tree

REPOSITORY_FILES = ("teams.py", "teams.json")  #: in the top folder of the sources of either dialect

CONF_FOLDERS = {
    "group_bys": ConfType.GROUP_BY,
    "joins": ConfType.JOIN,
    "staging_queries": ConfType.STAGING_QUERY,
}
#: What those of the other folders of a compiled tree are called; no DAG runs them.
_MODEL_FOLDERS = {"models": "model", "model_transforms": "model transform"}


def read_confs(root: Path, settings: Settings, *, problems: list[Fault]) -> tuple[list[Conf], list[RejectedConf]]:
    """Every conf below a conf root, and those that cannot be read or take what belongs to others: those are in no tree, so
    that the links of a table go to whom it belongs to (S6).

    A folder that cannot be listed becomes one of ``problems``.
    """
    confs: list[Conf] = []
    unreadable: list[RejectedConf] = []
    for tree in _compiled_trees(root, settings.environment):
        if not tree.is_dir():
            problems.append(no_folder(tree))
            continue
        for folder, conf_type in CONF_FOLDERS.items():
            reader = _reader(conf_type, settings, is_older=tree.name == OLDER_TREE)
            for team in files_by_team(root, tree / folder, problems, home=tree):
                read, bad = reader.read_team(team)
                confs += read
                unreadable += bad
    single, doubled = _without_doubles(confs)
    return single, [*unreadable, *doubled]


def passed_over(root: Path, environment: Environment) -> list[Fault]:
    """A warning for each kind of conf of a conf root that no DAG runs, with how many there are."""
    found = []
    for tree in filter(Path.is_dir, _compiled_trees(root, environment)):
        for folder, what in _MODEL_FOLDERS.items():
            unreadable: list[Fault] = []  # it costs nothing: the confs in there are passed over as well
            teams = files_by_team(root, tree / folder, unreadable, home=tree)
            count = sum(len(team.files) for team in teams)
            if count:
                problem = f"{tree.name}/{folder} has {count} {what}{'s' if count > 1 else ''}, which no DAG runs"
                remedy = "run the driver for them from a job file, before the runs that read their tables"
                found.append(Fault("C11", "", problem, remedy))
    return found


def _reader(conf_type: ConfType, settings: Settings, *, is_older: bool) -> TeamReader[Conf]:
    return TeamReader(
        conf_type.value,
        limit=MAX_CONF_BYTES,
        read=lambda found: _read_conf(found, conf_type, settings, is_older=is_older),
        key_of=lambda found: f"{conf_type.value}/{'.'.join(found.place)}",  # the name that the compiler gave it
        tables=lambda conf: table_count(conf.document),
    )


def _compiled_trees(root: Path, environment: Environment) -> list[Path]:
    """The compiled trees below a conf root, one of each dialect at most, or the root itself when it is one; perhaps names that
    lead nowhere now (D1).

    The folders of a repository with Python sources are called like those of a compiled tree.
    """
    names = [COMPILED_TREE]
    if environment is not Environment.PROD:
        names.insert(0, f"{COMPILED_TREE}_{environment.name.lower()}")
    compiled = next((root / name for name in names if os.path.lexists(root / name)), None)
    older = root / OLDER_TREE
    found = [tree for tree in (compiled, older) if tree is not None and os.path.lexists(tree)]
    is_repository = any(os.path.lexists(root / name) for name in REPOSITORY_FILES)
    if found or is_repository or not any(os.path.lexists(root / folder) for folder in CONF_FOLDERS):
        return found
    return [root]


def _read_conf(found: FoundFile, conf_type: ConfType, settings: Settings, *, is_older: bool) -> Conf:
    raw, place = _read_json(found.path), found.place
    refuse_name(raw)
    dialect, specs = Dialect.CURRENT, tuple[DependencySpec, ...]()
    if is_older and not _says_how_it_runs(raw):
        refuse_unstorable(raw)
        dialect = Dialect.OLDER
        raw, specs = translated(conf_type, raw)
    document = read_document(conf_type, raw)
    meta = document.meta_data
    refuse_namespace(meta.output_namespace)
    faults = [*place_faults(meta, place), *namespace_faults(meta.output_namespace, team=place[0], teams=settings.teams)]
    if faults:
        raise Rejected(faults)
    return Conf(ConfKey(conf_type, meta.name), document, raw, found.file, dialect, specs)


def _says_how_it_runs(raw: Any) -> bool:
    """Whether a conf of ``production/`` is of the newer dialect all the same: some compilers have written it there."""
    meta = raw.get("metaData") if isinstance(raw, dict) else None
    return isinstance(meta, dict) and "executionInfo" in meta


def _read_json(path: Path) -> Any:
    try:
        return json.loads(read_bytes(path, limit=MAX_CONF_BYTES, kind="conf"))
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
