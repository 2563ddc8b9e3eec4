"""``import airflow-dags``: what an old ``airflow/`` folder of Chronon did, and what takes the place of each of it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from airflow_chronon.cli.old_airflow.constructors import read_constructors
from airflow_chronon.cli.old_airflow.sources import read_sources
from airflow_chronon.cli.old_airflow.successors import (
    Row,
    argument_rows,
    constant_rows,
    dag_rows,
    part_rows,
    settings_of,
)
from airflow_chronon.cli.options import FORMAT, Command, option
from airflow_chronon.cli.output import FINDINGS, GOOD, columns, show, tell
from airflow_chronon.core.describe.json import fault_json

_HEADS = {
    "dags": "what it ran, how often, and what runs it here",
    "parts": "what stood in its DAGs beside the jobs",
    "constants": "its constants",
    "arguments": "the arguments of its DAGs and tasks",
}


def import_airflow_dags(options: argparse.Namespace) -> int:
    """Print what the folder did; its files are read and never run."""
    sources = read_sources(Path(options.folder))
    found = read_constructors(sources)
    rows = {
        "dags": dag_rows(found.dags),
        "parts": part_rows(found),
        "constants": constant_rows(found.constants),
        "arguments": argument_rows(found.dags),
    }
    settings = settings_of(found)
    show(
        options,
        text=lambda: "\n".join(_lines(rows, settings)),
        value=lambda: {
            "folder": str(sources.folder),
            **{name: [asdict(row) for row in of] for name, of in rows.items()},
            "settings": settings,
            "problems": [fault_json(fault) for fault in sources.faults],
        },
    )
    for fault in sources.faults:
        tell(fault)
    if not found.dags:
        tell("no file calls walk_and_define_tasks, as those of Chronon do: nobody can tell which DAGs the folder made")
    return GOOD if found.dags and not sources.faults else FINDINGS


IMPORT = Command(
    "import",
    "tell what takes the place of an old airflow/ folder of Chronon (a schedule of Hopsworks: import-schedule)",
    (
        option("what", choices=("airflow-dags",), help="airflow-dags: a folder of Chronon's own Airflow files"),
        option("folder", nargs="?", default="airflow", metavar="FOLDER", help="the folder; airflow when left out"),
        FORMAT,
    ),
    import_airflow_dags,
)


def _lines(rows: dict[str, list[Row]], settings: dict[str, object]) -> list[str]:
    lines: list[str] = []
    for name, of in rows.items():
        if of:
            lines += [f"{_HEADS[name]}:", *columns(_cells(of), indent=2), ""]
    if settings:
        said = [
            f"  {key}: {str(value).lower() if isinstance(value, bool) else value}" for key, value in settings.items()
        ]
        lines += ["where all agree, chronon.yaml may say the same:", *said]
    return lines or ["nothing that is known here"]


def _cells(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    return [(row.what, row.value, row.place, row.successor) for row in rows]
