"""Validation errors of settings as sentences: the key, what is allowed there, and the nearest known key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from airflow_chronon.core.bounds import KeyPath, path_text, quoted
from airflow_chronon.core.settings.values import SENTENCE, VALUE
from airflow_chronon.errors import Fault

_SECRET = {"env", "storage_options"}  #: passwords stand there, and messages end up in logs


@dataclass(frozen=True)
class Problem:
    """One broken rule at one place of a text."""

    path: KeyPath
    message: str
    remedy: str

    def under(self, *keys: str | int) -> Problem:
        """The same problem of a section that stands below these keys."""
        return replace(self, path=(*keys, *self.path))

    def fault(self, where: Callable[[KeyPath], str] = path_text) -> Fault:
        """As a fault; ``where`` says how its place is written, with the line of a file perhaps."""
        return Fault("settings", where(self.path), self.message, self.remedy)


def unknown_name(path: KeyPath, message: str, *, name: str, known: Collection[str], remedy: str) -> Problem:
    """A name that is none of those ``known``, the nearest of which goes before the remedy."""
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}? {remedy[0].upper()}{remedy[1:]}" if near else remedy
    return Problem(path, message, hint)


def problems_of(
    error: ValidationError, model: type[BaseModel], *, written: object, beside: Collection[str] = ()
) -> list[Problem]:
    """Every problem that ``model`` found in a text that was filled in; messages quote it as it is ``written`` (S4).

    ``beside`` are keys that the text may have and the model never sees.
    """
    return [_problem(model, detail, written, beside) for detail in error.errors()]


def _problem(model: type[BaseModel], detail: Any, written: object, beside: Collection[str]) -> Problem:
    path: KeyPath = tuple(part for part in detail["loc"] if part != "[key]")  # how pydantic names a bad key itself
    kind = detail["type"]
    is_secret = not _SECRET.isdisjoint(path)
    shown = "this value" if is_secret else quoted(_at(written, path))
    if kind == SENTENCE:
        return Problem(path, detail["ctx"]["message"].replace(VALUE, shown), detail["ctx"]["remedy"])
    if kind == "extra_forbidden":
        fields = _model_at(model, path[:-1]).model_fields
        keys = {field.alias or name for name, field in fields.items()}
        allowed = sorted({*keys, *(beside if len(path) == 1 else ())})
        message, remedy = f"unknown key {path[-1]!r}", f"allowed are {', '.join(allowed)}"
        return unknown_name(path, message, name=str(path[-1]), known=allowed, remedy=remedy)
    if kind == "missing":
        return Problem(path, f"the key {path[-1]!r} is missing", f"add {path[-1]}")
    if kind == "invalid_key":
        return Problem(path, f"the key {path[-1]!r} is not text", "write a key by its name")
    if detail["input"] is None:
        shown = "an empty value"
    return Problem(path, f"{shown} is not allowed", _remedy(detail))


def _at(written: Any, path: KeyPath) -> Any:
    """What stands at a place, or above it where the place is one of the model's alone."""
    for part in path:
        try:
            written = written[part]
        except (LookupError, TypeError):
            return written
    return written


def _remedy(detail: Any) -> str:
    """What may stand there instead, as people read it."""
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
    "string_too_long": "write at most {max_length} characters",
    "string_pattern_mismatch": "write a dotted path such as package.module.function",
    "model_type": "write keys and values below it",
    "model_attributes_type": "write keys and values below it",
    "dict_type": "write keys and values below it",
    "tuple_type": "write a list",
    "too_long": "write at most {max_length} of them",
}


def _model_at(model: type[BaseModel], path: KeyPath) -> type[BaseModel]:
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
