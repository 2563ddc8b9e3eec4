"""Fills in ``${NAME}`` and ``${NAME:-default}`` in settings from the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

REFERENCE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")
#: The JSON schema of a text that holds one, in the regular expressions of ECMA.
REFERENCE_SCHEMA = {"type": "string", "pattern": REFERENCE.pattern.replace("?P<name>", "").replace("?P<default>", "")}


def unfilled(text: str, value: Any, environ: Mapping[str, str]) -> str:
    """A text, about a setting that was filled in, with the names again in place of what the environment holds."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            text = unfilled(text, item, environ)
    if isinstance(value, str):
        for match in REFERENCE.finditer(value):
            for secret in {environ.get(match["name"], ""), repr(environ.get(match["name"], ""))[1:-1]} - {""}:
                text = text.replace(secret, f"${{{match['name']}}}")
    return text


def filled(value: Any, environ: Mapping[str, str]) -> Any:
    """A setting with its ``${NAME}`` taken from ``environ``; what has neither a value nor a default is empty.

    Catalogs and runners are filled in where they are opened: their secrets must not stand in a serialised DAG.
    """
    if isinstance(value, Mapping):
        return {key: filled(item, environ) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [filled(item, environ) for item in value]
    if not isinstance(value, str):
        return value
    return REFERENCE.sub(lambda match: environ.get(match["name"], match["default"] or ""), value)
