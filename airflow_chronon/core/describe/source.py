"""A conf as people wrote it, for pages and task details: the SQL of a staging query, else its JSON.

What looks like a secret by its key, and a password in an address, is hidden (S4).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from airflow_chronon.core.confs.conf import Conf
from airflow_chronon.core.confs.documents import ConfType
from airflow_chronon.errors import HIDDEN, without_passwords

SHOWN_ON_PAGE = 3_000  #: characters of a conf; a page is stored with its DAG, in every version of it

_SECRET = re.compile(r"pass_?(word|wd|phrase)|secret|token|credential|(private|access|account|api)[_.-]?key", re.I)
_FENCE = re.compile(r"`{3,}")


def query_of(conf: Conf) -> str | None:
    """The query of a staging query as its author wrote it; None for any other conf."""
    return str(conf.raw.get("query") or "") if conf.key.conf_type is ConfType.STAGING_QUERY else None


def json_of(document: Mapping[str, Any]) -> str:
    """A compiled conf as JSON, what it computes first and its metadata last, with what may be a secret hidden.

    Airflow cuts a long text at its end, so what a conf is made of stands without its metadata.
    """
    parts = {key: each if key == "metaData" else _computed(each) for key, each in document.items()}
    parts |= {key: parts.pop(key) for key in ("metaData",) if key in parts}
    return without_passwords(_in_lines(_hidden(parts)))


def page_source(conf: Conf) -> str:
    """Markdown of what a conf computes, at most :data:`SHOWN_ON_PAGE` characters: its query, else its JSON without the
    metadata, which the rest of the page tells."""
    query = query_of(conf)
    language, text = ("json", _in_lines(_hidden(_computed(conf.raw)))) if query is None else ("sql", query)
    text = without_passwords(text)
    more, text = len(text) - SHOWN_ON_PAGE, text[:SHOWN_ON_PAGE].strip()
    fence = "`" * max(3, 1 + max(map(len, _FENCE.findall(text)), default=0))
    shown = f"{fence}{language}\n{text}\n{fence}"
    return f"{shown}\n\nand {more} characters more, in the file." if more > 0 else shown


def _in_lines(document: Mapping[str, Any]) -> str:
    """JSON with a line for each key and each item of a list below it: short, and a parse of many confs makes many of them."""
    lines = []
    for key, value in document.items():
        if isinstance(value, list) and len(value) > 1:
            items = ",\n".join(f"    {_line(each)}" for each in value)
            lines.append(f"  {_line(key)}: [\n{items}\n  ]")
        else:
            lines.append(f"  {_line(key)}: {_line(value)}")
    return "{\n" + ",\n".join(lines) + "\n}"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _computed(value: Any) -> Any:
    """The document without the metadata of the conf and of what it is made of, but for their names."""
    if isinstance(value, Mapping):
        return {
            key: each.get("name") if key == "metaData" and isinstance(each, Mapping) else _computed(each)
            for key, each in value.items()
        }
    return [_computed(each) for each in value] if isinstance(value, list | tuple) else value


def _hidden(value: Any, *, key: str = "") -> Any:
    if isinstance(value, Mapping):
        return {name: _hidden(each, key=str(name)) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_hidden(each, key=key) for each in value]
    if not isinstance(value, str):
        return value
    if key == "customJson" and value.strip():
        try:
            inside = json.loads(value)
            return _hidden(inside, key=key if isinstance(inside, str) else "")  # a text in a text, perhaps
        except (ValueError, RecursionError):
            return HIDDEN  # nobody can tell what is in it
    return HIDDEN if key and _SECRET.search(key) else value
