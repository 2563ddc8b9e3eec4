"""Putting a schedule into the text of a job file and taking it out again; every other line stays as it is.

The file is its owner's: comments, order and spacing are kept, also those inside the schedule. Only values are written
over, at the places that the YAML parser names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeAlias

import yaml

from airflow_chronon.core.calendar.instants import iso
from airflow_chronon.core.jobs.document import ScheduleDocument

_KEY = "schedule"
_INSTANTS = {"start_time", "end_time", "skip_to_date"}
_Edit: TypeAlias = tuple[int, int, str]  #: where a piece of the text begins, where it ends, what comes in its place


def with_schedule(text: str, schedule: ScheduleDocument, *, replacing: ScheduleDocument | None) -> str:
    """The text of a job file with ``schedule`` in place of ``replacing``, the one that it holds.

    Keys that the file names stay, with their comments; keys that are missing are added unless they hold their default.
    The result is to be read again: a file that is written in an unforeseen way may have come out wrong.
    """
    root, newline = _root(text), "\r\n" if "\r\n" in text else "\n"
    values = {name: _written(name, getattr(schedule, name)) for name in ScheduleDocument.model_fields}
    given = [name for name, field in ScheduleDocument.model_fields.items() if getattr(schedule, name) != field.default]
    pair = _pair(root, _KEY)
    if pair is None:
        return _applied(text, [_section(text, root, {name: values[name] for name in given}, newline)])
    section = pair[1]
    if not isinstance(section, yaml.MappingNode):  # `schedule:` or `schedule: null`
        filled = _blank_before(section) + _flow({name: values[name] for name in given})
        return _applied(text, [(section.start_mark.index, _end_of(section), filled)])
    present = {key.value: value for key, value in section.value}
    edits = [
        (value.start_mark.index, len(text[: _end_of(value)].rstrip("\r\n")), _blank_before(value) + values[name])
        for name, value in present.items()
        if name in values and getattr(schedule, name) != getattr(replacing, name, None)  # `<<` is no key of it
    ]
    missing = {name: values[name] for name in given if name not in present}
    if missing:
        edits.append((_in_flow if section.flow_style else _in_block)(text, section, missing, newline))
    return _applied(text, edits)


def without_schedule(text: str) -> str:
    """The text of a job file without its schedule; comments outside it stay. To be read again, as above."""
    root = _root(text)
    pair = _pair(root, _KEY)
    if pair is None:
        return text
    if not root.flow_style:
        start, end = _line_start(text, pair[0].start_mark.index), _line_end(text, _last(pair[1]))
        return _applied(text, [(start, end, "")])
    index = next(number for number, (key, _) in enumerate(root.value) if key.value == _KEY)
    if index:  # with the comma before it
        start, end = _end_of(root.value[index - 1][1]), _end_of(pair[1])
    else:
        start = pair[0].start_mark.index
        end = root.value[1][0].start_mark.index if len(root.value) > 1 else _end_of(pair[1])
    return _applied(text, [(start, end, "")])


def _root(text: str) -> yaml.MappingNode:
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(node, yaml.MappingNode)  # a good job file has keys
    return node


def _pair(mapping: yaml.MappingNode, name: str) -> tuple[yaml.Node, yaml.Node] | None:
    return next(((key, value) for key, value in mapping.value if key.value == name), None)


def _section(text: str, root: yaml.MappingNode, values: Mapping[str, str], newline: str) -> _Edit:
    """The whole schedule, where the file has none."""
    if root.flow_style:
        return _in_flow(text, root, {_KEY: _flow(values)}, newline)
    below = "".join(f"{newline}{' ' * _column(root)}  {name}: {value}" for name, value in values.items())
    return _in_block(text, root, {_KEY: below}, newline)


def _in_flow(_text: str, mapping: yaml.MappingNode, values: Mapping[str, str], _newline: str) -> _Edit:
    """New keys in front of the first one of a mapping in braces."""
    opened = mapping.start_mark.index + 1
    return opened, opened, ", ".join(f"{name}: {value}" for name, value in values.items()) + ", " * bool(mapping.value)


def _in_block(text: str, mapping: yaml.MappingNode, values: Mapping[str, str], newline: str) -> _Edit:
    """New lines behind the last one of a mapping."""
    at, indent = _line_end(text, _last(mapping)), " " * _column(mapping)
    before = "" if text[:at].endswith("\n") else newline
    lines = (
        f"{indent}{name}:{'' if value.startswith(newline) else ' '}{value}{newline}" for name, value in values.items()
    )
    return at, at, before + "".join(lines)


def _column(mapping: yaml.MappingNode) -> int:
    column: int = mapping.value[0][0].start_mark.column
    return column


def _written(name: str, value: object) -> str:
    if name in _INSTANTS and isinstance(value, int):
        return iso(value)
    if isinstance(value, str):
        quoted: str = yaml.safe_dump(value, default_style='"', width=1_000_000)
        return quoted.rstrip("\n")
    return json.dumps(value)


def _flow(values: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{name}: {value}" for name, value in values.items()) + "}"


def _applied(text: str, edits: list[_Edit]) -> str:
    for start, end, piece in sorted(edits, reverse=True):
        text = text[:start] + piece + text[end:]
    return text


def _blank_before(node: yaml.Node) -> str:
    """An empty value stands right behind its colon."""
    return " " * (node.start_mark.index == _end_of(node))


def _end_of(node: yaml.Node) -> int:
    index: int = node.end_mark.index
    return index


def _last(node: yaml.Node) -> int:
    """Where the last value of a node ends; a block's own end mark lies behind the comments that follow it."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style and node.value:
        return max(_last(value) for _, value in node.value)
    if isinstance(node, yaml.SequenceNode) and not node.flow_style and node.value:
        return max(_last(value) for value in node.value)
    return _end_of(node)


def _line_start(text: str, index: int) -> int:
    return text.rfind("\n", 0, index) + 1


def _line_end(text: str, index: int) -> int:
    """Behind the newline of the line that ``index`` is on; block scalars end behind theirs already."""
    if index and text[index - 1] == "\n":
        return index
    found = text.find("\n", index)
    return len(text) if found < 0 else found + 1
