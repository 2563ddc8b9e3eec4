"""``init``: a deployment begins: settings and loader files for a Chronon repository, and what would run then."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from airflow_chronon.cli.commands.check import json_of, report_findings, text_of
from airflow_chronon.cli.first_day import FirstDay, first_day_lines, first_days
from airflow_chronon.cli.missing import what_is_missing
from airflow_chronon.cli.new_files import FileState, make_files, state_of
from airflow_chronon.cli.options import FORMAT, Command, option
from airflow_chronon.cli.output import FINDINGS, GOOD, columns, show, tell
from airflow_chronon.cli.target import Target, open_root
from airflow_chronon.conf_root.links import leads_out
from airflow_chronon.conf_root.repository import Repository, find_repository
from airflow_chronon.conf_root.starter_files import StarterFiles, starter_files
from airflow_chronon.core.calendar.instants import Instant, iso
from airflow_chronon.core.confs.plan import good_plans
from airflow_chronon.core.describe.json import fault_json
from airflow_chronon.deployment import variable
from airflow_chronon.errors import ChrononError, Fault, readable

_WORDS = {FileState.NEW: "written", FileState.SAME: "there already", FileState.OTHER: "left as it is"}


def init(options: argparse.Namespace) -> int:
    """Write the files that are not there yet, then say what is good, what would run and what is missing."""
    if options.json:
        options.format = "json"
    repository = find_repository(Path(options.folder))
    files = starter_files(repository)
    states = {path: state_of(path, text) for path, text in files.texts.items()}
    _need_inside(files, repository)
    if not options.dry_run:
        make_files({path: files.texts[path] for path, state in states.items() if state is FileState.NEW})
    root = open_root(str(repository.path))
    target, now = Target(root, root.judge()), int(time.time())
    days, missing = first_days(target.verdicts, now=now), what_is_missing(good_plans(target.verdicts), options)
    show(options, text=lambda: "\n".join(_head(repository, states, options)))
    show(options, text=text_of(target))
    bad = report_findings(target)
    show(
        options,
        text=lambda: "\n".join(
            [*(_outlook(days, missing, now=now) if target.verdicts else ()), *_next(files, repository)]
        ),
        value=lambda: _json(repository, states, target, days, missing, now=now, options=options),
    )
    left = [path for path, state in states.items() if state is FileState.OTHER]
    for path in left:
        tell(f"{_shown(path)} is there already, holds something else, and stays as it is")
    return FINDINGS if bad or left else GOOD


INIT = Command(
    "init",
    "begin with a Chronon repository: write chronon.yaml and the loader files, and say what would run",
    (
        option(
            "folder",
            nargs="?",
            default=".",
            metavar="FOLDER",
            help="the repository, or a folder that holds one; this one when left out",
        ),
        option("--dry-run", action="store_true", help="write nothing, and say what would be written"),
        FORMAT,
        option("--json", action="store_true", help="the same as --format json"),
    ),
    init,
)


def _need_inside(files: StarterFiles, repository: Repository) -> None:
    """Refuse a folder of loader files that lies elsewhere: they would look for the confs there."""
    folder = files.loader_folder
    if folder.is_relative_to(repository.path) and leads_out(folder, repository.path):
        problem = f"{_shown(folder)} is a link that leads out of {_shown(repository.path)}, and loader files there would find no confs"
        raise ChrononError(Fault("input", "FOLDER", problem, "remove the link"))


def _head(repository: Repository, states: Mapping[Path, FileState], options: argparse.Namespace) -> list[str]:
    trees = " and ".join(
        f"{tree}/ ({dialect})" for tree, dialect in zip(repository.trees, repository.dialects, strict=True)
    )
    rows = [("conf root", _shown(repository.path), trees or "a compiled tree")]
    for path, state in states.items():
        would = "to be written" if options.dry_run and state is FileState.NEW else _WORDS[state]
        rows.append((would, _shown(path), ""))
    return [*columns(rows), ""]


def _outlook(days: Mapping[str, FirstDay], missing: Sequence[Fault], *, now: Instant) -> list[str]:
    """What would run, and what that needs."""
    lacking = ["nothing is missing, as far as it can be told from here"]
    if missing:
        lacking = ["what is missing:", *(f"  {fault}" for fault in missing)]
    return ["", *first_day_lines(days, now=now), "", *lacking, ""]


def _next(files: StarterFiles, repository: Repository) -> list[str]:
    """What is left to do by hand."""
    lines = [
        f"next: have Airflow read its DAGs from {_shown(files.loader_folder.absolute())} (a DAG bundle, or [core] dags_folder)"
    ]
    if files.loader_folder.is_relative_to(repository.path):
        lines.append(
            f"      for the commands, set {variable('conf_root')}={_shown(repository.path.absolute())}, or give it as --root"
        )
    return lines


def _json(
    repository: Repository,
    states: Mapping[Path, FileState],
    target: Target,
    days: Mapping[str, FirstDay],
    missing: list[Fault],
    *,
    now: Instant,
    options: argparse.Namespace,
) -> dict[str, Any]:
    return {
        "conf_root": str(repository.path),
        "trees": list(repository.trees),
        "dry_run": options.dry_run,
        "files": {str(path): state.value for path, state in states.items()},
        "problems": [fault_json(fault) for fault in target.root.problems],
        "confs": json_of(target),
        "now": iso(now),
        "first_day": {key: day.json for key, day in days.items()},
        "missing": [fault_json(fault) for fault in missing],
    }


def _shown(path: Path) -> str:
    return readable(str(path))
