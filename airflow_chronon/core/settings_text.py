"""Reading settings strictly: every fault names the line, the key, what is allowed and the nearest known key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from airflow_chronon.core.settings import ConfSettings, Settings
from airflow_chronon.errors import Fault, Rejected

_Path = tuple[str | int, ...]
_Model = TypeVar("_Model", bound=ConfSettings)
_VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")


class _TextDates(yaml.SafeLoader):
    """SafeLoader that leaves dates as text: each conf reads them against its own grid (C29)."""


_TextDates.yaml_implicit_resolvers = {
    first: [(tag, regex) for tag, regex in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_settings(text: str, *, file: str = "chronon.yaml", environ: Mapping[str, str] | None = None) -> Settings:
    """Read the text of a settings file; ``${NAME}`` and ``${NAME:-default}`` in a value are taken from
    ``environ``.

    Raises :class:`airflow_chronon.errors.Rejected` with every fault of the file.
    """
    try:
        node = yaml.compose(text, Loader=_TextDates)
        raw = yaml.load(text, Loader=_TextDates)  # noqa: S506 (a SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise Rejected([Fault("settings", line, f"no YAML: {problem}", "mend the syntax")], conf=file) from None
    lines = dict(_lines(node, ())) if node is not None else {}
    faults: list[Fault] = []
    expanded = _expand(raw, environ or {}, (), lines, faults)
    settings = _checked(Settings, expanded, lines, faults, file)
    assert settings is not None
    return settings


def read_conf_settings(raw: object, *, conf: str) -> ConfSettings:
    """Read what a conf says of itself in ``metaData.customJson`` under ``"airflow"``. Raises ``Rejected``."""
    return _checked(ConfSettings, raw, {}, [], conf)


def _checked(model: type[_Model], raw: object, lines: Mapping[_Path, int], faults: list[Fault], origin: str) -> _Model:
    try:
        settings = model.model_validate(raw)
    except ValidationError as error:
        faults += [_fault(model, detail, lines) for detail in error.errors()]
        settings = None
    if faults or settings is None:
        raise Rejected(faults, conf=origin)
    return settings


def _lines(node: yaml.Node, path: _Path) -> Iterator[tuple[_Path, int]]:
    yield path, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            below = (*path, key.value)
            yield from _lines(value, below)
            yield below, key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _lines(value, (*path, index))


def _expand(value: Any, environ: Mapping[str, str], path: _Path, lines: Mapping[_Path, int], faults: list[Fault]) -> Any:
    if isinstance(value, dict):
        return {key: _expand(item, environ, (*path, key), lines, faults) for key, item in value.items()}
    if isinstance(value, list):
        return [_expand(item, environ, (*path, index), lines, faults) for index, item in enumerate(value)]
    if not isinstance(value, str):
        return value
    for match in _VARIABLE.finditer(value):
        name, default = match["name"], match["default"]
        if name not in environ and default is None:
            remedy = f"set {name}, or write ${{{name}:-a default}}"
            faults.append(Fault("settings", _where(path, lines), f"the environment has no {name}", remedy))
    return _VARIABLE.sub(lambda match: environ.get(match["name"], match["default"] or ""), value)


def _where(path: _Path, lines: Mapping[_Path, int]) -> str:
    line = next((lines[path[:length]] for length in range(len(path), -1, -1) if path[:length] in lines), None)
    key = ".".join(str(part) for part in path)
    return f"line {line}, {key}" if line else key


def _fault(model: type[BaseModel], detail: Any, lines: Mapping[_Path, int]) -> Fault:
    path: _Path = tuple(detail["loc"])
    where = _where(path, lines)
    if detail["type"] == "extra_forbidden":
        allowed = sorted(_model_at(model, path[:-1]).model_fields)
        near = get_close_matches(str(path[-1]), allowed, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        return Fault("settings", where, f"unknown key {path[-1]!r}", f"{hint}allowed are {', '.join(allowed)}")
    if detail["type"] == "missing":
        return Fault("settings", where, f"the key {path[-1]!r} is missing", f"add {path[-1]}")
    message = detail["msg"].removeprefix("Value error, ")
    return Fault("settings", where, f"{detail['input']!r} is not allowed: {message[:1].lower()}{message[1:]}", "")


def _model_at(model: type[BaseModel], path: _Path) -> type[BaseModel]:
    for part in path:
        if isinstance(part, int):
            continue
        field = model.model_fields.get(part)
        below = None if field is None else next(_models_in(field.annotation), None)
        if below is None:
            return model
        model = below
    return model


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)
