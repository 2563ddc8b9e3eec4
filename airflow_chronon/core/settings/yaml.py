"""Reading settings strictly: every fault names the line, the key, what is allowed and the nearest known key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from airflow_chronon.core.settings.environment import WINDOW_VARIABLES
from airflow_chronon.core.settings.model import ConfSettings, Settings
from airflow_chronon.errors import Fault, Rejected

_Path = tuple[str | int, ...]
_Model = TypeVar("_Model", bound=BaseModel)
#: The sections that are filled in late, by :func:`filled`.
_LATE = {"catalog", "runner", "env"}
_MOST_VALUES = 100_000
_BRANCHES = ("branch", "default_branch")
_BRANCH_LINE = re.compile(r"""^(?P<key>branch|default_branch)[ \t]*:[ \t]*["']?(?P<value>[^"'#\n]+)""", re.M)
_VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")


class _PlainYaml(yaml.SafeLoader):
    """SafeLoader that reads as written: dates stay text (each conf reads them against its own grid, C29), and a number is a
    plain decimal one, so that the version ``010`` is not octal 8 and ``12:30`` not a count of seconds."""


def _resolvers(first: str, given: list[tuple[str, re.Pattern[str]]]) -> list[tuple[str, re.Pattern[str]]]:
    kept = [(tag, regex) for tag, regex in given if tag not in (_INT, "tag:yaml.org,2002:timestamp")]
    return [*kept, (_INT, _DECIMAL)] if first in "-+0123456789" else kept


_INT, _DECIMAL = "tag:yaml.org,2002:int", re.compile(r"[-+]?(0|[1-9][0-9]*)$")
_PlainYaml.yaml_implicit_resolvers = {
    first: _resolvers(first, given) for first, given in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True)
class StrictText:
    """A YAML text before any model has judged it."""

    raw: Any  #: its value, ``${NAME}`` filled in where that is not done late
    lines: Mapping[_Path, int]
    faults: tuple[Fault, ...]  #: keys that stand twice, variables that the environment lacks

    def where(self, path: _Path) -> str:
        """Where a key stands, such as ``line 7, schedule.catchup``."""
        return _where(path, self.lines)

    def checked(self, model: type[_Model], *, file: str) -> _Model:
        """The text as ``model``. Raises :class:`airflow_chronon.errors.Rejected` with every fault of the file."""
        return _checked(model, self.raw, self.lines, list(self.faults), file)


def read_settings(text: str, *, file: str = "chronon.yaml", environ: Mapping[str, str] | None = None) -> Settings:
    """Read the text of a settings file; ``${NAME}`` and ``${NAME:-default}`` in a value are taken from
    ``environ``.

    Raises :class:`airflow_chronon.errors.Rejected` with every fault of the file.
    """
    return read_strictly(text, file=file, environ=environ or {}).checked(Settings, file=file)


def read_strictly(text: str, *, file: str, environ: Mapping[str, str]) -> StrictText:
    """Read YAML with the line of every key. Raises :class:`airflow_chronon.errors.Rejected` for what is no YAML."""
    faults: list[Fault] = []
    try:
        node = yaml.compose(text, Loader=_PlainYaml)
        raw = yaml.load(text, Loader=_PlainYaml)  # noqa: S506 (a SafeLoader)
        places = list(islice(_lines(node, (), faults), _MOST_VALUES + 1)) if node is not None else []
        if len(places) > _MOST_VALUES:  # an alias of aliases grows without end
            problem = f"it holds more than {_MOST_VALUES} values, its aliases written out"
            raise Rejected([Fault("settings", "", problem, "write less")], conf=file)
        lines = dict(places)
        expanded = _expand(raw, environ, (), lines, faults)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise Rejected([Fault("settings", line, f"it is not YAML: {problem}", "mend the syntax")], conf=file) from None
    except RecursionError:
        problem = "it is nested too deeply, or an alias holds itself"
        raise Rejected([Fault("settings", "", problem, "write the values out")], conf=file) from None
    except (ValueError, LookupError, AttributeError, TypeError) as error:  # as PyYAML raises for 0x_ or !!int abc
        problem = f"a value is not of its type: {str(error)[:200]}"
        raise Rejected([Fault("settings", "", problem, "put it in quotes, or mend it")], conf=file) from None
    return StrictText(expanded, lines, tuple(faults))


def branches_in(text: str, environ: Mapping[str, str]) -> Settings | None:
    """What a settings file says under ``branch`` and ``default_branch``, whatever else is wrong with it: a mistake elsewhere
    must not make it another branch's (C24). None when the mistake is in one of these."""
    try:
        raw = yaml.load(text, Loader=_PlainYaml)  # noqa: S506 (a SafeLoader)
    except Exception:  # as many as there are ways to be no YAML
        raw = {match["key"]: match["value"].strip() for match in _BRANCH_LINE.finditer(text)}
    found = raw if isinstance(raw, Mapping) else {}
    said = {key: filled(found[key], environ) for key in _BRANCHES if found.get(key) not in (None, "")}
    try:
        return Settings.model_validate(said) if all(said.values()) else None
    except ValidationError:
        return None


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


def _lines(node: yaml.Node, path: _Path, faults: list[Fault]) -> Iterator[tuple[_Path, int]]:
    """The line of every key and item; a key that stands twice is a fault, since YAML would let the last one win unseen."""
    yield path, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            below, line = (*path, key.value), key.start_mark.line + 1
            if key.value in seen:
                where = f"line {line}, {_path_text(below)}"
                faults.append(
                    Fault("settings", where, f"the key stands on line {seen[key.value]} too", "remove one of them")
                )
            seen[key.value] = line
            yield from _lines(value, below, faults)
            yield below, line
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _lines(value, (*path, index), faults)


def _expand(
    value: Any, environ: Mapping[str, str], path: _Path, lines: Mapping[_Path, int], faults: list[Fault]
) -> Any:
    if isinstance(value, dict):
        return {key: _expand(item, environ, (*path, key), lines, faults) for key, item in value.items()}
    if isinstance(value, list):
        return [_expand(item, environ, (*path, index), lines, faults) for index, item in enumerate(value)]
    if not isinstance(value, str):
        return value
    for match in _VARIABLE.finditer(value):
        name, default = match["name"], match["default"]
        if name in WINDOW_VARIABLES:  # it would be filled in before the run has any
            problem = f"${{{name}}} is not there yet when the braces are filled in"
            remedy = f"write ${name} without braces: a shell fills it in when the run starts"
            faults.append(Fault("H5", _where(path, lines), problem, remedy))
        elif name not in environ and default is None:
            remedy = f"set {name}, or write ${{{name}:-a default}}"
            faults.append(Fault("settings", _where(path, lines), f"the environment has no {name}", remedy))
    return value if _LATE & {*path} else _filled(value, environ)


def filled(value: Any, environ: Mapping[str, str]) -> Any:
    """A setting with its ``${NAME}`` taken from ``environ``; what has neither a value nor a default is empty.

    Catalogs and runners are filled in where they are opened: their secrets must not stand in a serialised DAG.
    """
    if isinstance(value, Mapping):
        return {key: filled(item, environ) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [filled(item, environ) for item in value]
    return _filled(value, environ) if isinstance(value, str) else value


def _filled(text: str, environ: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda match: environ.get(match["name"], match["default"] or ""), text)


def place_of(text: str, path: tuple[str | int, ...]) -> str:
    """Where a key of a settings file stands, such as ``line 7, catalog.root``; the file must be readable."""
    node = yaml.compose(text, Loader=_PlainYaml)
    return _where(path, dict(_lines(node, (), [])) if node is not None else {})


def _where(path: _Path, lines: Mapping[_Path, int]) -> str:
    line = next((lines[path[:length]] for length in range(len(path), -1, -1) if path[:length] in lines), None)
    key = _path_text(path)
    return ", ".join(part for part in (f"line {line}" if line else "", key) if part)


def _path_text(path: _Path) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def _fault(model: type[BaseModel], detail: Any, lines: Mapping[_Path, int]) -> Fault:
    path: _Path = tuple(part for part in detail["loc"] if part != "[key]")  # how pydantic names a bad key itself
    where = _where(path, lines)
    if detail["type"] == "extra_forbidden":
        allowed = sorted(_model_at(model, path[:-1]).model_fields)
        near = get_close_matches(str(path[-1]), allowed, n=1)
        hint = f"did you mean {near[0]}? A" if near else "a"
        return Fault("settings", where, f"unknown key {path[-1]!r}", f"{hint}llowed are {', '.join(allowed)}")
    if detail["type"] == "missing":
        return Fault("settings", where, f"the key {path[-1]!r} is missing", f"add {path[-1]}")
    if detail["type"] == "invalid_key":
        return Fault("settings", where, f"the key {path[-1]!r} is no text", "write a key by its name")
    is_secret = "env" in path  # passwords stand there, and messages end up in logs
    shown = "an empty value" if detail["input"] is None else "this value" if is_secret else repr(detail["input"])
    return Fault("settings", where, f"{shown[:200]} is not allowed", _remedy(detail))


def _remedy(detail: Any) -> str:
    """What may stand there instead, in words."""
    kind, limits = detail["type"], detail.get("ctx", {})
    if kind in _REMEDIES:
        return _REMEDIES[kind].format(**limits)
    text = str(detail["msg"]).removeprefix("Value error, ")
    return text[:1].lower() + text[1:]


_REMEDIES = {
    "bool_type": "write true or false",
    "bool_parsing": "write true or false",
    "int_type": "write a whole number",
    "int_parsing": "write a whole number",
    "int_from_float": "write a whole number",
    "greater_than_equal": "write {ge} or more",
    "greater_than": "write more than {gt}",
    "less_than_equal": "write {le} or less",
    "enum": "write {expected}",
    "string_type": "write text, in quotes where it looks like a number",
    "string_pattern_mismatch": "write a dotted path such as package.module.function",
    "model_type": "write keys and values below it",
    "model_attributes_type": "write keys and values below it",
    "dict_type": "write keys and values below it",
    "tuple_type": "write a list",
}


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
