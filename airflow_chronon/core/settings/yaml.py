"""Reading settings strictly: every fault names the line, the key, what is allowed and the nearest known key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from airflow_chronon.core.bounds import MAX_YAML_VALUES, KeyPath, path_text, unstorable
from airflow_chronon.core.settings.backends import file_problems
from airflow_chronon.core.settings.environment import WINDOW_VARIABLES, is_airflows_own
from airflow_chronon.core.settings.model import ConfSettings, Settings
from airflow_chronon.core.settings.problems import problems_of
from airflow_chronon.core.settings.variables import REFERENCE, filled, references
from airflow_chronon.errors import Fault, Rejected

SETTINGS_FILE = "chronon.yaml"

_Model = TypeVar("_Model", bound=BaseModel)
#: What is filled in late, where it is used, and what everybody may see: the branch is in every DAG id.
_LATE = {"catalog", "runner", "env", "base_root"}
_SEEN = {"branch", "default_branch", "environment"}
#: What is a number, a truth value or one of a few words: nothing that is a secret can stand there.
_TYPED = {
    *("catchup", "enabled", "retries", "max_catchup_runs", "max_active_runs", "max_pending_runs", "priority_weight"),
    *("pause", "unscheduled", "on_retire", "lookback", "covers", "poll_seconds", "timeout", "on_timeout", "on_never"),
}
_SEEN_PATHS, _TYPED_PATHS = {(key,) for key in _SEEN}, {(key,) for key in _TYPED}
_BRANCHES = ("branch", "default_branch")
_BRANCH_LINE = re.compile(r"""^(?P<key>branch|default_branch)[ \t]*:[ \t]*["']?(?P<value>[^"'#\n]+)""", re.M)


class _PlainYaml(yaml.SafeLoader):
    """SafeLoader that reads as written: dates stay text (each conf reads them against its own grid, C29), and a number is a
    plain decimal one, so that the version ``010`` is not octal 8 and ``12:30`` not a count of seconds."""


def _resolvers(first: str, given: list[tuple[str, re.Pattern[str]]]) -> list[tuple[str, re.Pattern[str]]]:
    kept = [(tag, regex) for tag, regex in given if tag not in (_INT, "tag:yaml.org,2002:timestamp")]
    return [*kept, (_INT, _DECIMAL)] if first in "-+0123456789" else kept


#: What YAML has and JSON has not; a tag that names anything else is no YAML to a safe loader.
_NOT_JSON = {f"tag:yaml.org,2002:{name}" for name in ("binary", "timestamp", "set", "omap", "pairs")}
_INT, _DECIMAL = "tag:yaml.org,2002:int", re.compile(r"[-+]?(0|[1-9][0-9]*)$")
_PlainYaml.yaml_implicit_resolvers = {
    first: _resolvers(first, given) for first, given in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True)
class StrictText:
    """A YAML text before any model has judged it."""

    raw: Any  #: its value as it is written
    lines: Mapping[KeyPath, int]
    faults: tuple[Fault, ...]  #: keys that stand twice, variables that the environment lacks
    values: Any = None  #: its value where something is filled in

    def where(self, path: KeyPath) -> str:
        """Where a key stands, such as ``line 7, schedule.catchup``."""
        return _where(path, self.lines)

    def checked(self, model: type[_Model], *, file: str) -> _Model:
        """The text as ``model``. Raises :class:`airflow_chronon.errors.Rejected` with every fault of the file."""
        values = self.raw if self.values is None else self.values
        return _checked(model, values, self.lines, list(self.faults), file, written=self.raw)


def read_settings(text: str, *, environ: Mapping[str, str] | None = None, warehouse: str | None = None) -> Settings:
    """Read the text of a settings file; ``${NAME}`` and ``${NAME:-default}`` are taken from ``environ``.

    ``warehouse`` is the root of a catalog that names none; left out, catalogs and runners are taken as they are written.
    Raises :class:`airflow_chronon.errors.Rejected` with every fault of the file.
    """
    given = environ or {}
    strict = read_strictly(text, file=SETTINGS_FILE, environ=given)
    settings = strict.checked(Settings, file=SETTINGS_FILE)
    if warehouse is None:
        return settings
    settings = settings.model_copy(update={"catalog": settings.catalog.with_root(warehouse)})
    faults = [problem.fault(strict.where) for problem in file_problems(settings, given)]
    if faults:
        raise Rejected(faults, conf=SETTINGS_FILE)
    return settings


def read_strictly(text: str, *, file: str, environ: Mapping[str, str]) -> StrictText:
    """Read YAML with the line of every key. Raises :class:`airflow_chronon.errors.Rejected` for what is no YAML."""
    faults: list[Fault] = []
    lines: dict[KeyPath, int] = {}
    try:
        loader = _PlainYaml(text)
        node = _composed(loader, file)
        if node is not None:
            lines.update(_lines(node, (), faults))
        raw = None if node is None else loader.construct_document(node)
        bad = unstorable(raw, most=MAX_YAML_VALUES)
        if bad is not None:
            raise Rejected([Fault("settings", _where(bad.path, lines), bad.problem, bad.remedy)], conf=file)
        values = _expand(raw, environ, (), lines, faults)
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
    return StrictText(raw, lines, tuple(faults), values)


def _composed(loader: _PlainYaml, file: str) -> yaml.Node | None:
    """The one document of a YAML text as nodes; None for an empty text.

    Raises ``Rejected`` for one without bounds: a few aliases of aliases, written out, have more values than any memory.
    """
    node: yaml.Node | None = loader.get_single_node()
    if node is None:
        return None
    if _size(node, {}) > MAX_YAML_VALUES:
        problem = f"it holds more than {MAX_YAML_VALUES} values, its aliases written out"
        raise Rejected([Fault("settings", "", problem, "write less")], conf=file)
    _refuse_tags(node, file)
    return node


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """The values below a node, itself included, its aliases written out. Raises RecursionError where one holds itself."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in known:
        known[id(node)] = 0  # until it is known: whoever meets it again is inside it
        pairs = isinstance(node, yaml.MappingNode)
        known[id(node)] = 1 + sum(_size(each, known) for part in node.value for each in (part if pairs else (part,)))
    elif known[id(node)] == 0:
        raise RecursionError
    return known[id(node)]


def _refuse_tags(root: yaml.Node, file: str) -> None:
    """Refuse by name what YAML has and JSON has not, such as ``!!binary`` and ``!!set`` (S1)."""
    waiting, seen = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.tag in _NOT_JSON:
            tag = node.tag.replace("tag:yaml.org,2002:", "!!")
            problem, line = f"values of the kind {tag} are not JSON", f"line {node.start_mark.line + 1}"
            raise Rejected([Fault("settings", line, problem, "write text, in quotes, or a list")], conf=file)
        if isinstance(node, yaml.MappingNode):
            waiting += [each for pair in node.value for each in pair]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value


def branches_in(text: str, environ: Mapping[str, str]) -> Settings | None:
    """What a settings file says under ``branch`` and ``default_branch``, whatever else is wrong with it: a mistake elsewhere
    must not make it another branch's (C24). None when the mistake is in one of these."""
    try:
        loader = _PlainYaml(text)
        node = _composed(loader, "")
        raw = None if node is None else loader.construct_document(node)
    except Exception:  # as many as there are ways to be no YAML
        raw = {match["key"]: match["value"].strip() for match in _BRANCH_LINE.finditer(text)}
    found = raw if isinstance(raw, Mapping) else {}
    given = {key: found[key] for key in _BRANCHES if found.get(key) not in (None, "")}
    if any(is_airflows_own(match["name"]) for match in references(given)):
        return None
    said = filled(given, environ)
    try:
        return Settings.model_validate(said) if all(said.values()) else None
    except ValidationError:
        return None


def read_conf_settings(raw: object, *, conf: str) -> ConfSettings:
    """Read what a conf says of itself in ``metaData.customJson`` under ``"airflow"``. Raises ``Rejected``."""
    return _checked(ConfSettings, raw, {}, [], conf, written=raw)


def _checked(
    model: type[_Model],
    values: object,
    lines: Mapping[KeyPath, int],
    faults: list[Fault],
    origin: str,
    *,
    written: object,
) -> _Model:
    try:
        settings = model.model_validate(values)
    except ValidationError as error:
        found = problems_of(error, model, written=written)
        faults += [problem.fault(partial(_where, lines=lines)) for problem in found]
        settings = None
    if faults or settings is None:
        raise Rejected(faults, conf=origin)
    return settings


def _lines(node: yaml.Node, path: KeyPath, faults: list[Fault]) -> Iterator[tuple[KeyPath, int]]:
    """The line of every key and item; a key that stands twice is a fault, since YAML would let the last one win unseen."""
    yield path, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue  # no value of JSON: refused once it is made
            below, line = (*path, key.value), key.start_mark.line + 1
            if key.value in seen:
                where = f"line {line}, {path_text(below)}"
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
    value: Any, environ: Mapping[str, str], path: KeyPath, lines: Mapping[KeyPath, int], faults: list[Fault]
) -> Any:
    if isinstance(value, dict):
        return {key: _expand(item, environ, (*path, key), lines, faults) for key, item in value.items()}
    if isinstance(value, list):
        return [_expand(item, environ, (*path, index), lines, faults) for index, item in enumerate(value)]
    if not isinstance(value, str):
        return value
    for match in REFERENCE.finditer(value):
        name, default = match["name"], match["default"]
        if name in WINDOW_VARIABLES:  # it would be filled in before the run has any
            problem = f"${{{name}}} is not there yet when the braces are filled in"
            remedy = f"write ${name} without braces: a shell fills it in when the run starts"
            faults.append(Fault("H5", _where(path, lines), problem, remedy))
        elif not _LATE & {*path} and (not _is_filled_early(path) or is_airflows_own(name)):
            problem = f"what {match[0]} stands for would be in DAGs and messages, for everybody to see"
            places = (
                f"only {', '.join(sorted(_LATE))} keep what is filled in, and {', '.join(sorted(_SEEN))} may show it"
            )
            faults.append(Fault("S4", _where(path, lines), problem, f"write the value itself: {places}"))
        elif name not in environ and default is None:
            remedy = f"set {name}, or write ${{{name}:-a default}}"
            faults.append(Fault("settings", _where(path, lines), f"the environment has no {name}", remedy))
    return filled(value, environ) if _is_filled_early(path) else value


def _is_filled_early(path: KeyPath) -> bool:
    return path[:1] in _SEEN_PATHS or path[-1:] in _TYPED_PATHS


def _where(path: KeyPath, lines: Mapping[KeyPath, int]) -> str:
    line = next((lines[path[:length]] for length in range(len(path), -1, -1) if path[:length] in lines), None)
    key = path_text(path)
    return ", ".join(part for part in (f"line {line}" if line else "", key) if part)
