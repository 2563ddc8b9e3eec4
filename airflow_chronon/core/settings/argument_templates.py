"""Arguments with placeholders anywhere in their texts: what an operator is given, filled in for each run.

A text may hold placeholders of texts. A placeholder of a mapping, such as ``{env}``, is a whole value, or it stands in a key:
``"spark.executorEnv.{env}": "{env}"`` is one entry per variable, the name in the key and the value in the value. One of a list
is a whole value, or an item of a list, and then as many items.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any, TypeAlias

Value: TypeAlias = str | Mapping[str, str] | tuple[str, ...]
Values: TypeAlias = Mapping[str, Value]  #: what placeholders stand for


def template_problem(
    template: Any, *, texts: Collection[str], mappings: Collection[str], lists: Collection[str] = (), place: str = ""
) -> tuple[str, str] | None:
    """What is wrong with a template, and the remedy; None for a good one. ``place`` is where it stands."""
    return _problem(template, _Known(tuple(texts), tuple(mappings), tuple(lists)), place)


@dataclass(frozen=True)
class _Known:
    """The names of the placeholders that a template may have."""

    texts: tuple[str, ...]
    mappings: tuple[str, ...]
    lists: tuple[str, ...]

    @property
    def wholes(self) -> tuple[str, ...]:
        return (*self.mappings, *self.lists)

    @property
    def shown(self) -> str:
        return f"use {', '.join((*self.texts, *self.wholes))}"


def _problem(template: Any, known: _Known, place: str) -> tuple[str, str] | None:
    if isinstance(template, Mapping):
        return next(_problems_of_entries(template, known, place), None)
    if isinstance(template, list | tuple):
        found = (_problem(each, known, f"{place}[{index}]") for index, each in enumerate(template))
        return next((problem for problem in found if problem), None)
    if isinstance(template, str):
        return None if _is_one_of(template, known.wholes) else _text_problem(template, known, place)
    if template is None or isinstance(template, bool | int | float):
        return None
    return f"{place} is a {type(template).__name__}", "write text, numbers, true, false, lists and mappings only"


def names_in(template: Any) -> set[str]:
    """The placeholders of a template."""
    if isinstance(template, Mapping):
        return {name for pair in template.items() for each in pair for name in names_in(each)}
    if isinstance(template, list | tuple):
        return {name for each in template for name in names_in(each)}
    return set(_names(template)) if isinstance(template, str) else set()


def filled_arguments(template: Any, values: Values) -> Any:
    """A good template with the values of all its placeholders."""
    if isinstance(template, Mapping):
        return {key: value for entry in template.items() for key, value in _entries(*entry, values)}
    if isinstance(template, list | tuple):
        return [item for each in template for item in _items(each, values)]
    if not isinstance(template, str):
        return template
    whole = values[template[1:-1]] if _is_one_of(template, values) else None
    if isinstance(whole, Mapping):
        return dict(whole)
    return list(whole) if isinstance(whole, tuple) else template.format(**values)


def _items(item: Any, values: Values) -> list[Any]:
    """What one item of a list becomes: as many as its list has, else one."""
    is_list = isinstance(item, str) and _is_one_of(item, values) and isinstance(values[item[1:-1]], tuple)
    found = filled_arguments(item, values)
    return found if is_list else [found]


def _entries(key: str, value: Any, values: Values) -> Iterator[tuple[str, Any]]:
    """What one entry of a mapping becomes: as many as its key's mapping has, else one."""
    for many in _names(key):
        if isinstance(entries := values[many], Mapping):
            for name, text in entries.items():
                yield key.format(**{**values, many: name}), filled_arguments(value, {**values, many: text})
            return
    yield key.format(**values), filled_arguments(value, values)


def _problems_of_entries(template: Mapping[Any, Any], known: _Known, place: str) -> Iterator[tuple[str, str]]:
    for key, value in template.items():
        below = f"{place}.{key}" if place else str(key)
        if not isinstance(key, str):
            yield f"the key {below} is not text", "write it in quotes"
            continue
        in_key = _Known((*known.texts, *known.mappings), (), ())
        problem = _text_problem(key, in_key, f"the key {below}")
        many = {name for name in (_names(key) if problem is None else ()) if name in known.mappings}
        if problem is None and len(many) > 1:
            problem = f"the key {below} has two mappings", f"write one of {' and '.join(_shown(many))}"
        # where the key is one entry each, its mapping is a text in the value too
        rest = tuple(name for name in known.mappings if name not in many)
        problem = problem or _problem(value, _Known((*known.texts, *many), rest, known.lists), below)
        if problem:
            yield problem


def _text_problem(text: str, known: _Known, place: str) -> tuple[str, str] | None:
    try:
        pieces = list(Formatter().parse(text))
    except ValueError as error:
        return f"{place}: {error}", "write {{ and }} for braces"
    for _, name, specification, conversion in pieces:
        if name in known.wholes:
            kind, also = ("mapping", "in a key") if name in known.mappings else ("list", "as an item of a list")
            problem = f"{{{name}}} is a {kind}, and {place} puts it into a text"
            shown = f': "prefix.{{{name}}}": "{{{name}}}"' if name in known.mappings else ""
            return problem, f"give it alone as a value, or {also}{shown}"
        if name is not None and (name not in known.texts or specification or conversion):
            return f"the placeholder {{{name}}} of {place} is not known", known.shown
    return None


def _names(text: str) -> list[str]:
    return [name for _, name, _, _ in Formatter().parse(text) if name]


def _is_one_of(text: str, names: Collection[str]) -> bool:
    """Whether a text is a placeholder of one of these names, and nothing else."""
    return text[:1] == "{" and text[-1:] == "}" and text[1:-1] in names


def _shown(names: Collection[str]) -> list[str]:
    return [f"{{{name}}}" for name in sorted(names)]
