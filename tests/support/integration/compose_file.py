"""docker-compose.yaml as the tests see it: parsed, with `${NAME:?…}` filled in as the compose tool would."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from tests.support.checkout import ROOT

FILE = ROOT / "docker-compose.yaml"
AIRFLOW_SERVICES = ("migrate", "api-server", "scheduler", "worker", "dag-processor", "triggerer")
#: `${NAME}`, `${NAME:?message}`, `${NAME:-default}`; `$$` is a dollar sign
VARIABLE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<name>\w+)(?:(?P<operator>:?[-?+])(?P<rest>[^}]*))?\})")


def services() -> dict[str, dict[str, Any]]:
    """The services with merge keys resolved and nothing filled in."""
    return dict(yaml.safe_load(FILE.read_text())["services"])


def replicas(service: str) -> int:
    """How many containers the file gives a service."""
    return int(services()[service].get("deploy", {}).get("replicas", 1))


def filled(text: str, *, variables: Mapping[str, str]) -> str:
    """A text of the file for these variables; a missing one is a KeyError."""
    return VARIABLE.sub(lambda match: "$" if match["dollar"] else variables[match["name"]], text)


def environment(service: str, *, variables: Mapping[str, str]) -> dict[str, str]:
    """The environment of a service's container for these variables."""
    given = services()[service].get("environment", {})
    return {name: filled(str(value), variables=variables) for name, value in given.items()}
