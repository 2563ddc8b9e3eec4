"""``schema``: the JSON schema of a file that people write, for their editors."""

from __future__ import annotations

import argparse
import json

from pydantic import BaseModel

from airflow_chronon.cli.options import Command, option
from airflow_chronon.cli.output import GOOD
from airflow_chronon.core.jobs.document import JobDocument
from airflow_chronon.core.settings.model import Settings
from airflow_chronon.core.settings.schema import json_schema

_FILES: dict[str, tuple[type[BaseModel], str]] = {
    "settings": (Settings, "chronon.yaml"),
    "job": (JobDocument, "A job file"),
}


def schema(options: argparse.Namespace) -> int:
    """Print it."""
    model, title = _FILES[options.file]
    print(json.dumps(json_schema(model, title=title), indent=2))
    return GOOD


SCHEMA = Command(
    "schema",
    "print the JSON schema of chronon.yaml or of a job file, for editors",
    (option("file", choices=tuple(_FILES), help="settings: chronon.yaml; job: jobs/<team>/<name>.yaml"),),
    schema,
)
