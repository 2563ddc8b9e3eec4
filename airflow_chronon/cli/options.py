"""The commands and their options as data: ``airflow-chronon`` and ``airflow chronon`` are built from the same list."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from airflow_chronon.cli.completion import complete_confs
from airflow_chronon.core.calendar.instants import Instant, parse_instant
from airflow_chronon.deployment import DEFAULT_ROOT, variable

NEW = -1  #: the value of ``--after none``


@dataclass(frozen=True)
class Option:
    """One option or positional, in the words of argparse."""

    flags: tuple[str, ...]
    keywords: dict[str, Any] = field(default_factory=dict)
    completer: Callable[..., Iterable[str]] | None = None  #: what a shell offers for it; files by default


@dataclass(frozen=True)
class Command:
    """One command; ``run`` takes the parsed options and returns the exit code."""

    name: str
    help: str
    options: tuple[Option, ...]
    run: Callable[[argparse.Namespace], int]


def option(*flags: str, completer: Callable[..., Iterable[str]] | None = None, **keywords: Any) -> Option:
    return Option(flags, keywords, completer)


def instant(text: str) -> Instant:
    """Read an instant of the command line; ``now`` is the current one."""
    if text == "now":
        return int(time.time())
    try:
        return parse_instant(text)
    except ValueError:
        problem = f"{text!r} is not an instant of the years 1970 to 2199: write it like 2026-06-01 or 2026-06-01T04:15Z"
        raise argparse.ArgumentTypeError(problem) from None


def last_fire(text: str) -> Instant:
    """Read ``--after``: an instant, or ``none`` for a new schedule."""
    return NEW if text == "none" else instant(text)


ROOT = option(
    "--root",
    metavar="R",
    help=f"a conf root or one compiled tree; else what {variable('conf_root')} names, else {DEFAULT_ROOT}",
)
FORMAT = option("--format", choices=("text", "json"), default="text", help="for people, or JSON on stdout")
CONFS = option(
    "conf",
    nargs="*",
    metavar="CONF",
    completer=complete_confs,
    help="a DAG id, type/name, a name or a file; all when left out",
)
BETWEEN = (
    option("--from", dest="start", type=instant, metavar="T", help="first fire, inclusive, UTC"),
    option("--to", dest="end", type=instant, metavar="T", help="last fire, exclusive, UTC"),
)
RECOVERY = (
    option("--after", type=last_fire, metavar="LAST", help="the last run's fire, or none: the schedule is new"),
    option("--now", type=instant, metavar="NOW", help="with --after: show what is created at NOW"),
)
