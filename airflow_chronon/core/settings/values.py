"""The types of values in settings, each with the sentence for a value that is not one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias
from urllib.parse import quote

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from airflow_chronon.core.bounds import (
    MAX_ADDRESSES,
    MAX_BRANCH,
    MAX_CRON,
    MAX_INTEGER,
    MAX_NAME,
    MAX_OWNER,
    MAX_POOL,
    MAX_RETRIES,
    MAX_WEIGHT,
    name_problem,
)
from airflow_chronon.core.calendar.instants import DAY, HOUR, MINUTE
from airflow_chronon.core.settings.variables import REFERENCE_SCHEMA

SENTENCE = "sentence"  #: the type of an error that brings its whole message, and its remedy
VALUE = "\x1avalue\x1a"  #: where such a message quotes the value: as it is written, which a validator does not see

_AMOUNT = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([kmgt])i?b", re.IGNORECASE)
_DURATION = re.compile(r"([0-9]+)\s*([smhd])")
_UNITS = {"s": 1, "m": MINUTE, "h": HOUR, "d": DAY}


class Strict(BaseModel):
    """A section that allows no keys but its own."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


def refusal(message: str, remedy: str) -> PydanticCustomError:
    """What a validator raises to say in its own words what is wrong and what to do.

    Neither holds anything of the value, which may be a secret by now: :data:`VALUE` stands for it.
    """
    shown = message.encode(errors="backslashreplace").decode()  # pydantic takes no half of a surrogate pair
    return PydanticCustomError(SENTENCE, "{message}", {"message": shown, "remedy": remedy})


def judged(is_good: Callable[[Any], bool], problem: str, remedy: str) -> BeforeValidator:
    """Refuses a value as "``value`` ``problem``"."""

    def judge(value: Any) -> Any:
        if not is_good(value):
            raise refusal(f"{VALUE} {problem}", remedy)
        return value

    return BeforeValidator(judge)


def printable(most: int = MAX_NAME, *, least: int = 1) -> AfterValidator:
    """Refuses a text that Airflow's lists and columns do not take: too long, or with a control character (S1)."""

    def judge(value: str) -> str:
        problem = name_problem(value, most=most)
        if problem is None and len(value.strip()) < least:
            problem = "is empty"
        if problem is not None:
            raise refusal(f"{VALUE} {problem}", f"write one line of {least} to {most} characters")
        return value

    return AfterValidator(judge)


def _branch(value: str) -> str:
    if len(quote(value, safe="")) > MAX_BRANCH:
        raise refusal(f"{VALUE} is too long for a branch", f"keep it within {MAX_BRANCH} characters, percent-escaped")
    return value


def is_text(value: object) -> bool:
    """Whether it is text that can be handed to a process."""
    return isinstance(value, str) and "\0" not in value


def is_filled_text(value: object) -> bool:
    """Whether it is text that says something."""
    return isinstance(value, str) and bool(value.strip())


def is_amount(value: object) -> bool:
    """Whether it is an amount of memory or disk that is not nothing, such as ``512MB`` or ``2GiB``."""
    return isinstance(value, str) and amount_in_bytes(value) > 0


def amount_in_bytes(text: str) -> int:
    """The bytes of an amount, in powers of 1024; 0 for what is none."""
    match = _AMOUNT.fullmatch(text.strip())
    return int(float(match[1]) * 1024 ** (" kmgt".index(match[2].lower()))) if match else 0


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _duration(value: Any) -> Any:
    if isinstance(value, str) and (match := _DURATION.fullmatch(value.strip().lower())):
        return int(match[1]) * _UNITS[match[2]]
    if is_whole_number(value):
        return value
    raise ValueError("a duration is a number with s, m, h or d, such as 90s, 15m, 6h or 2d")


def _bound(value: Any) -> Any:
    if isinstance(value, str) or is_whole_number(value):
        return str(value)  # YAML reads an unquoted 20260101 as a number; each conf's grid judges the text
    raise ValueError("a date is text such as 2026-01-15 or 2026-01-15T03:00:00Z")


def _text(value: Any) -> Any:
    if is_text(value):
        return value
    raise ValueError("write text, in quotes where it looks like a number or a date")


#: Seconds, written as ``90s``, ``15m``, ``6h`` or ``2d``.
Duration: TypeAlias = Annotated[
    int,
    BeforeValidator(_duration),
    Field(gt=0, le=MAX_INTEGER),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "exclusiveMinimum": 0, "maximum": MAX_INTEGER},
                {"type": "string", "pattern": r"^\s*[0-9]+\s*[smhdSMHD]\s*$"},
                REFERENCE_SCHEMA,
            ]
        }
    ),
]
#: Memory or disk, in DuckDB's words: ``512MB``, ``2GB``.
Amount: TypeAlias = Annotated[str, judged(is_amount, "is not an amount of memory", "write it like 512MB or 2GB")]
#: An instant or a partition, read against each conf's own grid (C29).
Bound: TypeAlias = Annotated[str, BeforeValidator(_bound), WithJsonSchema({"type": ["string", "integer"]})]
#: The name or the value of a variable.
Text: TypeAlias = Annotated[str, BeforeValidator(_text)]
#: Whose a DAG is.
Owner: TypeAlias = Annotated[str, printable(MAX_OWNER)]
#: The name of one of Airflow's pools or queues.
Pool: TypeAlias = Annotated[str, printable(MAX_POOL)]
_Line: TypeAlias = Annotated[str, printable()]
#: One address, or several.
Emails: TypeAlias = _Line | Annotated[tuple[_Line, ...], Field(max_length=MAX_ADDRESSES)]
#: The text of a cron.
CronText: TypeAlias = Annotated[str, Field(max_length=MAX_CRON)]
#: A branch of a repository.
Branch: TypeAlias = Annotated[str, BeforeValidator(_text), printable(least=0), AfterValidator(_branch)]
#: How often a task is tried again.
Retries: TypeAlias = Annotated[int, Field(ge=0, le=MAX_RETRIES)]
#: Airflow adds up the weights of all tasks that follow a task.
Weight: TypeAlias = Annotated[int, Field(ge=-MAX_WEIGHT, le=MAX_WEIGHT)]
