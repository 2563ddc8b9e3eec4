"""Putting a schedule into the text of a job file and taking it out again; every other line stays as it is.

The file is its owner's. Only the lines of the section ``schedule`` are read and written again, by ruamel.yaml, which
keeps their comments, order and quotes; those around them are not touched. A file in braces is read as a whole.
"""

from __future__ import annotations

import io
import json
import re
import textwrap
from collections.abc import Callable
from typing import Any, TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from airflow_chronon.core.calendar.instants import iso
from airflow_chronon.core.jobs.document import ScheduleDocument

_KEY = "schedule"
_INSTANTS = {"start_time", "end_time", "skip_to_date"}
_Edit: TypeAlias = Callable[[Any], None]  #: changes the mapping that holds the section


def with_schedule(text: str, schedule: ScheduleDocument, *, replacing: ScheduleDocument | None) -> str:
    """The text of a job file with ``schedule`` in place of ``replacing``, the one that it holds.

    Keys that the file names stay, with their comments; keys that are missing are added unless they hold their default.
    The result is to be read again: a text that cannot be edited comes back as it was.
    """

    def put(document: Any) -> None:
        if not isinstance(document.get(_KEY), CommentedMap):  # none, or `schedule:`, or `schedule: null`
            document[_KEY] = CommentedMap()
        section = document[_KEY]
        for name, field in ScheduleDocument.model_fields.items():
            value = getattr(schedule, name)
            old = getattr(replacing, name, None) if name in section else field.default
            if value != old:
                section[name] = _written(name, value)
        for name, value in section.items():
            if value == "" and type(value) is str and section.fa.flow_style():
                section[name] = "null"  # ruamel would write quotes

    return _edited(text, put)


def without_schedule(text: str) -> str:
    """The text of a job file without its schedule; comments outside it stay. To be read again, as above."""
    return _edited(text, lambda document: document.pop(_KEY, None))


class _AsWritten(VersionedResolver):
    """Takes every plain value for text, so that each is written again as it was: ``on``, ``010``, ``12:30``, ``~``."""

    @property
    def versioned_resolver(self) -> dict[str, Any]:
        return {}


def _edited(text: str, edit: _Edit) -> str:
    body = text.removeprefix("\ufeff")
    newline = "\r\n" if "\r\n" in body else "\n"
    try:
        root = _yaml().compose(body)
        assert isinstance(root, MappingNode)  # a good job file has keys
        if root.flow_style:
            return text[: len(text) - len(body)] + _rewritten(body, edit, exactly=True)
        start, end, indent = _section(body, root)
        margin = " " * _column(root)
        piece = re.sub(f"^{margin}", "", body[start:end].replace("\r\n", "\n"), flags=re.M)
        piece = textwrap.indent(_rewritten(piece, edit, indent=indent), margin)
    except (YAMLError, _CannotKeepError):
        return text
    before = body[:start]
    if piece and before and not before.endswith("\n"):
        before += newline
    return text[: len(text) - len(body)] + before + piece.replace("\n", newline) + body[end:]


class _CannotKeepError(Exception):
    """ruamel.yaml would write more than the edit differently."""


def _rewritten(piece: str, edit: _Edit, *, indent: int = 2, exactly: bool = False) -> str:
    """YAML after an edit. Raises :class:`_CannotKeepError` if comments (``exactly``: any sign) would change besides."""
    yaml = _yaml(indent)
    document = yaml.load(piece) or CommentedMap()
    unedited = _dumped(yaml, document)
    if unedited.count("#") != piece.count("#") or (exactly and unedited.strip() != piece.strip()):
        raise _CannotKeepError
    edit(document)
    return _dumped(yaml, document)


def _dumped(yaml: YAML, document: CommentedMap) -> str:
    stream = io.StringIO()
    if document:
        yaml.dump(document, stream)
    return stream.getvalue()


def _yaml(indent: int = 2) -> YAML:
    yaml = YAML()
    yaml.Resolver = _AsWritten
    yaml.preserve_quotes = True
    yaml.width = 1_000_000  # no line is folded
    yaml.map_indent = indent
    return yaml


def _written(name: str, value: object) -> str:
    """A value as plain text, or in quotes."""
    if name in _INSTANTS and isinstance(value, int):
        return iso(value)
    return DoubleQuotedScalarString(value) if isinstance(value, str) else json.dumps(value)


def _section(text: str, root: MappingNode) -> tuple[int, int, int]:
    """Where the lines of the schedule begin and end, and how far its keys are indented; without one, where it may go."""
    for key, value in root.value:
        if key.value == _KEY:
            is_block = isinstance(value, MappingNode) and not value.flow_style
            indent = _column(value) - _column(root) if is_block and value.value else 2
            return _line_end(text, key.start_mark.index, before=True), _line_end(text, _last(value)), indent
    end = _line_end(text, _last(root))
    return end, end, 2


def _column(mapping: MappingNode) -> int:
    column: int = mapping.value[0][0].start_mark.column
    return column


def _last(node: Node) -> int:
    """Where the last value of a node ends; a block's own end mark lies behind the comments that follow it."""
    if isinstance(node, MappingNode) and not node.flow_style and node.value:
        return max(_last(value) for _, value in node.value)
    if isinstance(node, SequenceNode) and not node.flow_style and node.value:
        return max(_last(value) for value in node.value)
    index: int = node.end_mark.index
    return index


def _line_end(text: str, index: int, *, before: bool = False) -> int:
    """Behind the newline of the line that ``index`` is on, or of the one before; block scalars end behind theirs."""
    if before or (index and text[index - 1] == "\n"):
        return text.rfind("\n", 0, index) + 1
    found = text.find("\n", index)
    return len(text) if found < 0 else found + 1
