"""docker-compose.yaml as the tests see it: parsed, with `${NAME:?…}` filled in as the compose tool would."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from tests.support.checkout import ROOT

FILE = ROOT / "docker-compose.yaml"
AIRFLOW_SERVICES = ("migrate", "api-server", "scheduler", "dag-processor", "triggerer")
#: `${NAME}`, `${NAME:?message}`, `${NAME:-default}`; `$$` is a dollar sign
VARIABLE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<name>\w+)(?:(?P<operator>:?[-?+])(?P<rest>[^}]*))?\})")


def services() -> dict[str, dict[str, Any]]:
    """The services with merge keys resolved and nothing filled in."""
    return dict(yaml.safe_load(FILE.read_text())["services"])


def environment(service: str, *, variables: Mapping[str, str]) -> dict[str, str]:
    """The environment of a service's container for these variables; a missing one is a KeyError."""

    def fill(match: re.Match[str]) -> str:
        return "$" if match["dollar"] else variables[match["name"]]

    return {name: VARIABLE.sub(fill, str(value)) for name, value in services()[service]["environment"].items()}
