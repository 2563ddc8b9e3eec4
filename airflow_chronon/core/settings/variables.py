"""``${NAME}`` and ``${NAME:-default}`` in settings: filled in from the environment, and kept out of what people read (S4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from airflow_chronon.errors import ChrononError

REFERENCE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")
#: The JSON schema of a text that holds one, in the regular expressions of ECMA.
REFERENCE_SCHEMA = {"type": "string", "pattern": REFERENCE.pattern.replace("?P<name>", "").replace("?P<default>", "")}

_LONG = 8  #: a value this long stands in a text as itself, not by chance
_WORD = 4  #: the same for a piece of a value
_PLACE = re.compile(r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://|~?/|\.{1,2}/)[^@?\s]*")
_MARKS = 0xE000  # signs that nobody uses, for names that are put in while values are still looked for
_CLAUSES = re.compile(r"(: |; | \| |\n)")


def references(value: Any) -> Iterator[re.Match[str]]:
    """Every reference in a setting, however deep."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from references(item)
    if isinstance(value, str):
        yield from REFERENCE.finditer(value)


def filled(value: Any, environ: Mapping[str, str]) -> Any:
    """A setting with its ``${NAME}`` taken from ``environ``; what has neither a value nor a default is empty.

    Catalogs and runners are filled in where they are opened: their secrets must not stand in a serialised DAG.
    """
    return _replaced(value, lambda match: _value(match, environ))


def filled_template(value: Any, environ: Mapping[str, str]) -> Any:
    """The same for templates, whose placeholders stand in braces: those of the environment are no placeholders."""
    return _replaced(value, lambda match: _doubled(_value(match, environ)))


def unfilled_template(value: Any) -> Any:
    """Templates as they are written: a reference stays one, and is no placeholder."""
    return _replaced(value, lambda match: _doubled(match[0]))


def _replaced(value: Any, instead: Callable[[re.Match[str]], str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _replaced(item, instead) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replaced(item, instead) for item in value]
    return REFERENCE.sub(instead, value) if isinstance(value, str) else value


def _value(match: re.Match[str], environ: Mapping[str, str]) -> str:
    return environ.get(match["name"], match["default"] or "")


def _doubled(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


@dataclass(frozen=True)
class Secrets:
    """What the environment put into some settings, by name; for messages that are made once they are filled in."""

    values: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, *written: Any, environ: Mapping[str, str]) -> Secrets:
        """Those of settings as they are written."""
        names = {match["name"] for match in references(written)}
        return cls({name: environ[name] for name in sorted(names) if environ.get(name)})

    def spellings(self) -> Iterator[str]:
        """Every value in the ways in which drivers and servers write it, its password alone too; for a masker."""
        for value in self.values.values():
            yield from dict.fromkeys((value, quote(value, safe=""), quote(value), repr(value)[1:-1]))
            if password := _password(value):
                yield password

    def hidden(self, text: str) -> str:
        """A text with the names in place of the values; a clause that still tells of one is left out.

        A short value, and a piece of any, may stand in a text by chance: it is not replaced, since the text around the
        name would tell it.
        """
        marks: dict[str, str] = {}
        for name, value in sorted(self.values.items(), key=lambda item: -len(item[1])):
            if len(value) >= _LONG:
                marks[mark := chr(_MARKS + len(marks))] = f"${{{name}}}"
                for each in {value, repr(value)[1:-1]}:
                    text = re.sub(rf"(?<!\w){re.escape(each)}(?!\w)", mark, text)
        telling = dict[str, None]()

        def told(clause: str) -> str:
            names = [name for name, value in self.values.items() if _tells(clause, value)]
            telling.update(dict.fromkeys(names))
            return "…" if names else clause

        if not any(value in text and _CLAUSES.search(value) for value in self.values.values()):
            text = "".join(told(clause) for clause in _CLAUSES.split(text))
        else:
            text = told(text)
        for mark, shown in marks.items():
            text = text.replace(mark, shown)
        if telling:
            text += f" (left out is what tells {' and '.join(f'${{{name}}}' for name in telling)})"
        return text

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keeps the values out of the errors that users see; what led to such an error is dropped, since it may show them."""
        try:
            yield
        except ChrononError as error:
            if not self.values:
                raise
            error.reword(self.hidden)
            error.__cause__ = error.__context__ = None
            raise


def _tells(clause: str, value: str) -> bool:
    """Whether a clause holds a value, or a piece of one that is more than a place."""
    if not any(sign.isalnum() for sign in value):
        return value in clause
    place = _PLACE.fullmatch(value)
    if place is None:
        pieces = {piece for piece in re.split(r"[\W_]+", value) if piece}
    elif place["scheme"]:
        rest = value.partition("://")[2].strip("/")
        pieces = {value, rest, rest.partition("/")[0]}
    else:
        pieces = {value.rstrip("/"), value.lstrip("~.").rstrip("/")}
    folded = clause.casefold()
    return any(_holds(folded, piece.casefold()) for piece in pieces - {""})


def _holds(clause: str, piece: str) -> bool:
    if len(piece) >= _WORD:
        return piece in clause
    return re.search(rf"(?<![^\W_]){re.escape(piece)}(?![^\W_])", clause) is not None


def _password(value: str) -> str:
    try:
        return urlsplit(value).password or ""
    except ValueError:
        return ""
