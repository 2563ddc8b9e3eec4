"""``import-schedule``: a Hopsworks schedule becomes a job file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from airflow_chronon.cli.options import Command, option
from airflow_chronon.cli.output import FINDINGS, GOOD, tell
from airflow_chronon.conf_root.settings import cannot_read
from airflow_chronon.core.jobs.hopsworks import import_schedule
from airflow_chronon.errors import ChrononError, Fault, Rejected


def import_file(options: argparse.Namespace) -> int:
    """Print the job file, or write it to ``--out``; what is left out is said on stderr."""
    imported = None
    try:
        imported = import_schedule(_text(options.file))
    except Rejected as error:
        for fault in error.faults:
            tell(f"{options.file}: {fault}")
        return FINDINGS
    for note in imported.notes:
        tell(f"{options.file}: {note}")
    if options.out is None:
        print(imported.text, end="")
    else:
        _write(Path(options.out), imported.text)
    return GOOD


IMPORT_SCHEDULE = Command(
    "import-schedule",
    "make a job file of a schedule object as Hopsworks' REST API returns it",
    (
        option("file", metavar="FILE", help="the JSON of one schedule; - for stdin"),
        option("--out", metavar="FILE", help="the job file to make, jobs/<team>/<name>.yaml; stdout when left out"),
    ),
    import_file,
)


def _text(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ChrononError(cannot_read(error, what=f"the file {file}")) from None


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        problem = f"the job file {path} cannot be made: {error.strerror or error}"
        raise ChrononError(Fault("input", "--out", problem, "give a file that is not there yet")) from None
