"""The files with which a deployment begins: a ``chronon.yaml`` that says the defaults, and the three loader files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from airflow_chronon.conf_root.repository import Repository
from airflow_chronon.core.settings.yaml import SETTINGS_FILE

LOADER_FOLDER = "dags"  #: of the loader files in a repository
_ROOT_BESIDE_LOADERS = "chronon"  #: the conf root that loader files look for beside them

_SETTINGS = """\
# Settings of the Chronon confs in this folder. Every line that is no comment says a default: it may be changed or go.
# `airflow-chronon check` says what is wrong with it; `airflow-chronon schema settings` prints every key for editors.

# When. Without catch-up each conf begins with its newest partition that has closed.
catchup: false
# start_date: 2026-01-01   # the earliest partition; with catchup: true, everything since then is run, oldest first

# How much: runs of one conf that may be at work at once, and tries of a task after the first.
max_active_runs: 4
retries: 2

# Where partitions are seen: folders such as ROOT/db.table/ds=2026-01-01. By default ROOT is warehouse in AIRFLOW_HOME.
catalog:
  kind: filesystem
  # root: /srv/warehouse   # or a URL such as s3://bucket/warehouse; ${NAME:-default} takes it from the environment

# Who does the work: the embedded engine, for one machine.
runner:
  kind: local
  # kind: command          # instead of it: Chronon's own driver, %(driver)s

# What holds for some confs only; the first match wins. The glob is over type/name; a tag such as team:search matches too.
# overrides:
#   - match: "group_by/*"
#     max_active_runs: 2
"""
_DRIVERS = {False: "`zipline run`", True: "`run.py` of chronon-ai"}

_DAGS = '''\
"""Airflow DAGs of the Chronon confs {place}, one per conf version."""

{path}from airflow_chronon.dags import build_dags

globals().update(build_dags(near=__file__{root}))
'''
_IMPORT_ERRORS = '''\
"""Shows every bad Chronon conf as an import error of Airflow, without touching the good DAGs."""

{path}from airflow_chronon.dags import raise_import_errors

raise_import_errors(near=__file__{root})
'''
_RECONCILER = '''\
"""Keeps Airflow as the Chronon confs {place} say: retires what is gone, unpauses, replays what was missed."""

{path}from airflow_chronon.airflow.dags.reconciler import build_reconciler

dag = build_reconciler(near=__file__{root})
globals()[dag.dag_id] = dag
'''
_IGNORED = """\
# The conf root holds confs and jobs, never DAG files: no Python file in there is run by the dag-processor.
chronon/
"""
#: It is looked up on disk, so that a link to the folder of the loader files leads to the right place.
_FOLDER_ABOVE = ', conf_root=Path(__file__).parent / ".."'
_LOADERS = {"chronon.py": _DAGS, "chronon_import_errors.py": _IMPORT_ERRORS, "chronon_reconciler.py": _RECONCILER}


@dataclass(frozen=True)
class StarterFiles:
    """The files that a repository is given, by their paths."""

    loader_folder: Path  #: what Airflow reads DAGs from
    texts: dict[Path, str]


def starter_files(repository: Repository) -> StarterFiles:
    """The files for a repository.

    The loader files of a conf root that is called ``chronon`` and holds no sources lie beside it, as in Airflow's dags folder;
    those of others in its ``dags/``, where Airflow finds them and none of the sources.
    """
    root = repository.path
    is_older_alone = repository.trees != () and all("older" in dialect for dialect in repository.dialects)
    texts = {root / SETTINGS_FILE: _SETTINGS % {"driver": _DRIVERS[is_older_alone]}}
    if root.name == _ROOT_BESIDE_LOADERS and not repository.has_sources:
        folder, place, path, argument = root.parent, "beside this file", "", ""
        texts[folder / ".airflowignore"] = _IGNORED
    else:
        folder, place, path = root / LOADER_FOLDER, "in the folder above", "from pathlib import Path\n\n"
        argument = _FOLDER_ABOVE
    for name, text in _LOADERS.items():
        texts[folder / name] = text.format(place=place, path=path, root=argument)
    return StarterFiles(folder, texts)
