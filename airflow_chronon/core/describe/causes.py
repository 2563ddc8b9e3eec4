"""Why a partition is not there, as text: one line that names the roots, and the tree."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_chronon.core.calendar.instants import iso
from airflow_chronon.core.runs.states import State
from airflow_chronon.core.runs.why import Cause, CauseState, some_of


def format_cause(cause: Cause) -> list[str]:
    """The tree as lines for people, the partition that was asked about first."""
    return list(_lines(cause, "", ""))


def format_roots(cause: Cause) -> str:
    """The answer in one line."""
    if cause.state == State.STALE.value:
        return f"{cause.shown} is stale: {cause.text}"
    if cause.state in (State.LANDED.value, State.DONE.value):
        above = dict.fromkeys(root.shown for root in cause.roots if root.state == State.STALE.value)
        made = f", and was made of what is stale: {some_of(list(above))}" if above else ""
        return f"{cause.shown} is there{made}"
    roots = [root for root in cause.roots if root.state != CauseState.SEEN_ABOVE.value] or [cause]
    told = dict.fromkeys(f"{root.shown} is {root.state}" for root in roots)
    when = "" if cause.expected is None else f"; it should land at about {iso(cause.expected)}"
    return f"{cause.shown} is not there: {some_of(list(told))}{when}"


_THERE = (State.LANDED.value, State.STALE.value)


def _lines(cause: Cause, first: str, rest: str) -> Iterator[str]:
    when = "" if cause.expected is None or cause.state in _THERE else f", by about {iso(cause.expected)}"
    yield f"{first}{cause.shown}: {cause.state}{f' ({cause.text})' if cause.text else ''}{when}"
    below = rest + ("|  " if cause.because else "   ")
    if cause.run_id:
        yield f"{below}run {cause.run_id} of {cause.dag_id}"
    yield from (f"{below}> {line}" for line in cause.log)
    if cause.remedy:
        yield f"{below}press: {cause.remedy}"
    for place, each in enumerate(cause.because):
        is_last = place == len(cause.because) - 1
        yield from _lines(each, f"{rest}+- ", f"{rest}{'   ' if is_last else '|  '}")
