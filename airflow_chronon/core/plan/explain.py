"""A plan as text for people and as JSON: the same list of actions that is applied."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, fields
from typing import Any

from airflow_chronon.core.describe.format import counted
from airflow_chronon.core.partitions.labels import span
from airflow_chronon.core.plan.actions import (
    Action,
    Archive,
    Delete,
    Deploy,
    Drain,
    EndStranded,
    Forget,
    Hold,
    Keep,
    ParseSoon,
    Plan,
    Record,
    RememberBad,
    Replay,
    Report,
    Restore,
    SetAside,
    StopIdleRuns,
    StopRuns,
    Unpause,
    Wait,
    WaitForRuns,
)
from airflow_chronon.core.records.pending import WHY_PENDING
from airflow_chronon.core.records.record import DeploymentRecord
from airflow_chronon.core.runs.states import WHY_STRANDED
from airflow_chronon.core.schedules.ranges import LabelRange
from airflow_chronon.errors import Fault


def explain_plan(plan: Plan) -> tuple[str, ...]:
    """A line per action, kept confs as one sum, and a sum of all at the end."""
    lines = [line for action in plan.actions for line in _lines(action)]
    kept = sum(isinstance(action, Keep) for action in plan.actions)
    shown = [action for action in plan.actions if not isinstance(action, Keep)]
    counts = Counter(next(_lines(action)).split()[0].lower() for action in shown)
    sums = ", ".join(f"{word} {number}" for word, number in counts.items()) or "nothing to do"
    return (*lines, f"{counted(kept, 'conf')} unchanged; {sums}")


def format_action(action: Action) -> str:
    """One action as one line; a conf that is kept is none."""
    return " ".join(line.strip() for line in _lines(action))


def plan_json(plan: Plan) -> list[dict[str, Any]]:
    """The plan for programs: an object per action, the kind under ``action``."""
    return [_json(action) for action in plan.actions]


def _lines(action: Action) -> Iterator[str]:
    match action:
        case Keep():
            return
        case SetAside(dag_id=dag_id):
            yield f"damaged   {dag_id}: its record is set aside, and kept"
        case Deploy(dag_id=dag_id, is_new=is_new):
            yield f"deploy    {dag_id}: {'new' if is_new else 'changed'}"
        case Restore(dag_id=dag_id):
            yield f"restore   {dag_id}: its conf is back before it was deleted"
        case Record(dag_id=dag_id, what=what):
            yield f"record    {dag_id}: {what}"
        case Unpause(dag_id=dag_id, why=why):
            yield f"unpause   {dag_id}: {why}"
        case Replay(dag_id=dag_id, label_range=label_range):
            how = "one backfill" if len(label_range.labels) > 1 else "by its key"
            yield f"replay    {dag_id}: {span(label_range.labels)}, {WHY_PENDING}, {how} (H13)"
        case Hold(dag_ids=dag_ids, fault=fault):
            yield f"HOLD      {fault}"
            yield from (f"            would retire {dag_id}" for dag_id in dag_ids)
        case Report(severity=severity, fault=fault, conf=conf):
            yield f"{severity.value.ljust(9)} {conf}{': ' if conf else ''}{fault}"
        case _:
            yield _ending_line(action)


def _ending_line(action: Action) -> str:
    match action:
        case EndStranded(dag_id=dag_id, run_ids=run_ids):
            return f"end       {dag_id}: {counted(len(run_ids), 'run')} queued for ever, {WHY_STRANDED}"
        case Drain(dag_id=dag_id, why=why):
            return f"retire    {dag_id}: {why}; it fires no more"
        case WaitForRuns(dag_id=dag_id, runs=runs):
            return f"wait      {dag_id}: {counted(runs, 'run')} in progress to finish first"
        case StopIdleRuns(dag_id=dag_id, runs=runs):
            return f"stop      {dag_id}: {counted(runs, 'run')} without any work begun, stopped"
        case StopRuns(dag_id=dag_id, runs=runs, why=why):
            return f"stop      {dag_id}: {counted(runs, 'run')} in progress, stopped: {why}"
        case Wait(dag_id=dag_id, what=what):
            return f"wait      {dag_id}: {what}"
        case Archive(dag_id=dag_id):
            return f"archive   {dag_id}: its runs, tasks, notes and conf, read back; then the loader stops producing it"
        case Delete(dag_id=dag_id):
            return f"delete    {dag_id} from Airflow"
        case Forget(dag_id=dag_id, is_taken_over=is_taken_over):
            why = "another deployment has the DAG now" if is_taken_over else "Airflow does not have it"
            return f"forget    {dag_id}: {why}"
        case _:
            return _telling_line(action)


def _telling_line(action: Action) -> str:
    """What has Airflow show the change."""
    match action:
        case ParseSoon(file=file):
            return f"parse     {file} now, so that Airflow shows what has changed"
        case RememberBad(digest=digest):
            return (
                f"record    {'which confs are bad, others than before' if digest else 'that no conf is bad any more'}"
            )
        case _:
            raise TypeError(f"no words for {action!r}")


def _plain(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r" \1", name).lower()


def _json(action: Action) -> dict[str, Any]:
    found: dict[str, Any] = {"action": _plain(type(action).__name__)}
    values = {each.name: getattr(action, each.name) for each in fields(action)}
    return found | {name: _value(value) for name, value in values.items() if not isinstance(value, DeploymentRecord)}


def _value(value: Any) -> Any:
    if isinstance(value, Fault):
        return asdict(value)
    if isinstance(value, tuple):
        return [_value(each) for each in value]
    if hasattr(value, "value"):
        return value.value
    if isinstance(value, LabelRange):
        return list(value.labels)
    return value if isinstance(value, str | int | bool) or value is None else str(value)
