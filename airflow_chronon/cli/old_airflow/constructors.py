"""Which DAGs the files of Chronon's Airflow folder built: their modes, schedules and limits, from the syntax trees.

The files all do the same: a function makes a ``DAG(…)``, and ``walk_and_define_tasks(mode, conf_type, …, function)`` calls it for the
confs of one type.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from airflow_chronon.cli.old_airflow.sources import Sources
from airflow_chronon.core.bounds import MAX_DEPTH
from airflow_chronon.core.calendar.instants import duration_text
from airflow_chronon.errors import readable

_WALK = "walk_and_define_tasks"
_UNITS = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1, "weeks": 7 * 86400}
_LONGEST = 80  #: characters of what is shown of a value that is worked out when it runs
_MOST_CALLS = 1_000


@dataclass(frozen=True)
class Constant:
    """A name that a file gives a plain value, at its top."""

    name: str
    value: str  #: as it is shown
    place: str  #: ``constants.py:5``


@dataclass(frozen=True)
class OldDags:
    """The DAGs of one mode and one type of confs."""

    mode: str
    conf_type: str
    place: str  #: where they were asked for
    arguments: Mapping[str, str] = field(
        default_factory=dict
    )  #: of their ``DAG(…)`` and its default arguments, as shown


@dataclass(frozen=True)
class OldAirflow:
    """What the files of a folder say."""

    constants: tuple[Constant, ...]
    dags: tuple[OldDags, ...]
    names: Mapping[str, str] = field(default_factory=dict)  #: every name that a file uses, and where first


def read_constructors(sources: Sources) -> OldAirflow:
    """What the parsed files say; what is worked out when they run is shown as it is written."""
    constants = tuple(each for file, tree in sources.trees.items() for each in _constants(file, tree))
    names: dict[str, str] = {}
    for file, tree in sources.trees.items():
        for name, line in _names(tree):
            names.setdefault(name, f"{file}:{line}")
    functions = {file: _functions(tree) for file, tree in sources.trees.items()}
    reader = _Reader(sources, {each.name: each.value for each in reversed(constants)}, functions)
    return OldAirflow(constants, tuple(reader.dags()), names)


def _names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            yield _name(node), node.lineno
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg, node.lineno


def _constants(file: str, tree: ast.Module) -> Iterator[Constant]:
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        value = getattr(node, "value", None)
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(value, ast.expr) and (text := _plain(value)) is not None:
                yield Constant(target.id, text, f"{file}:{node.lineno}")


def _plain(node: ast.expr, depth: int = 3) -> str | None:
    """The text of a plain value, or of a list of such; None of anything else."""
    if isinstance(node, ast.Constant):
        return _short(repr(node.value) if not isinstance(node.value, str) else f'"{node.value}"')
    if isinstance(node, ast.List | ast.Tuple) and depth and len(node.elts) <= 100:
        parts = [_plain(each, depth - 1) for each in node.elts]
        return None if None in parts else _short(f"[{', '.join(filter(None, parts))}]")
    return None


@dataclass(frozen=True)
class _Reader:
    """Follows the calls of the files from ``walk_and_define_tasks`` to the arguments of ``DAG``."""

    sources: Sources
    constants: Mapping[str, str]
    functions: Mapping[str, Mapping[str, ast.FunctionDef]]  #: of each file, by their names
    known: dict[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)  #: what was read of a function

    def dags(self) -> Iterator[OldDags]:
        for file, tree in self.sources.trees.items():
            calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) == _WALK)
            for _, call in zip(range(_MOST_CALLS), calls, strict=False):
                given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
                named = dict(zip(("mode", "conf_type", "repo", "dag_constructor"), call.args, strict=False)) | given
                mode, conf_type = (self._text(named.get(name)).strip('"') for name in ("mode", "conf_type"))
                constructor = named.get("dag_constructor")
                arguments = self._of_function(_name(constructor), file)
                yield OldDags(mode, conf_type, f"{file}:{call.lineno}", arguments)

    def _of_function(self, name: str, file: str) -> Mapping[str, str]:
        """The arguments of the first ``DAG(…)`` in a function of a file."""
        if (file, name) not in self.known:
            function = self.functions[file].get(name)
            calls = (node for node in ast.walk(function or ast.Pass()) if isinstance(node, ast.Call))
            call = next((each for each in calls if _called(each) == "DAG"), None)
            self.known[file, name] = {} if call is None else self._arguments(call)
        return self.known[file, name]

    def _arguments(self, call: ast.Call, *, follows: bool = True) -> dict[str, str]:
        """The keywords of a call, and beside them what it takes from the helpers behind ``**`` and ``default_args``."""
        found: dict[str, str] = {}
        behind: dict[str, str] = {}
        for keyword in call.keywords:
            value = keyword.value
            if keyword.arg is not None and keyword.arg != "default_args":
                found[keyword.arg] = self._text(value)
            elif isinstance(value, ast.Call) and follows:
                behind |= self._of_helper(_called(value)) | self._arguments(value, follows=False)
            elif isinstance(value, ast.Dict):
                behind |= self._of_dict(value)
        return behind | found

    def _of_helper(self, name: str) -> dict[str, str]:
        """The largest dictionary that a helper of any file writes down: the arguments that it gives every DAG."""
        for of_file in self.functions.values():
            found = [node for node in ast.walk(of_file.get(name) or ast.Pass()) if isinstance(node, ast.Dict)]
            if found:
                return self._of_dict(max(found, key=lambda node: len(node.keys)))
        return {}

    def _of_dict(self, node: ast.Dict) -> dict[str, str]:
        pairs = zip(node.keys, node.values, strict=True)
        return {str(key.value): self._text(value) for key, value in pairs if isinstance(key, ast.Constant)}

    def _text(self, node: ast.expr | None) -> str:
        """A value as it is shown: plain, a time, a constant of any file, or as it is written."""
        if node is None:
            return ""
        if (plain := _plain(node)) is not None:
            return plain
        if isinstance(node, ast.Name | ast.Attribute) and (known := self.constants.get(_name(node))) is not None:
            return known
        if isinstance(node, ast.Call):
            called = _called(node)
            if called == "timedelta" and (seconds := _seconds(node)) is not None:
                return duration_text(seconds)
            if called == "strptime" and node.args and isinstance(node.args[0], ast.Constant):
                return _short(str(node.args[0].value))
            if (
                called == "datetime"
                and len(node.args) >= 3
                and all(isinstance(each, ast.Constant) for each in node.args)
            ):
                return "-".join(str(getattr(each, "value", "")).zfill(2) for each in node.args[:3])
        return _written(node)


def _seconds(call: ast.Call) -> int | None:
    given = dict(zip(("days", "seconds"), call.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    total = 0
    for name, node in given.items():
        value = node.value if isinstance(node, ast.Constant) else None
        if name not in _UNITS or not isinstance(value, int) or not 0 <= value < 10**6:
            return None
        total += _UNITS[name] * value
    return total or None


def _functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """The functions at the top of a file; of two with one name the last counts, as in Python."""
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def _called(call: ast.Call) -> str:
    return _name(call.func)


def _name(node: ast.expr | None) -> str:
    """The last part of a dotted name; empty of anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _written(node: ast.expr) -> str:
    nodes, deepest = [(node, 0)], 0
    while nodes and deepest <= MAX_DEPTH:  # what is nested deeper would stop whoever writes it out
        each, deepest = nodes.pop()
        nodes += [(child, deepest + 1) for child in ast.iter_child_nodes(each)]  # type: ignore[misc]
    return "…" if nodes else _short(ast.unparse(node))


def _short(text: str) -> str:
    shown = readable(" ".join(text.split()))
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
