"""A Hopsworks schedule, as its REST API writes it, made into the text of a job file (H1 to H15)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_chronon.core.bounds import MAX_INTEGER
from airflow_chronon.core.calendar.instants import SCHEDULABLE, iso
from airflow_chronon.core.jobs.document import read_job
from airflow_chronon.core.jobs.resolve import resolve_jobs
from airflow_chronon.core.settings.model import Settings
from airflow_chronon.errors import Fault, Rejected

#: Every field of the schedule object that has a place in a job file.
FIELDS: Mapping[str, str] = {
    "cronExpression": "cron_expression",
    "startDateTime": "start_time",
    "endDateTime": "end_time",
    "startTimeOffsetSeconds": "start_time_offset_seconds",
    "catchup": "catchup",
    "maxActiveRuns": "max_active_runs",
    "maxCatchupRuns": "max_catchup_runs",
    "skipToDate": "skip_to_date",
    "enabled": "enabled",
}
_OF_THE_SERVER = {"id", "href", "type", "nextExecutionDateTime"}  # read only there, worked out here
_IGNORED = "endTimeOffsetSeconds"
_INSTANTS = {"start_time", "end_time", "skip_to_date"}
_COUNTS = {"max_active_runs", "max_catchup_runs"}
_FLAGS = {"catchup", "enabled"}
_NAMES = {key: name for name, key in FIELDS.items()}
#: In place of what could not be read, so that the rest can be judged.
_STAND_INS = {"cron_expression": "@daily", "start_time": iso(0)}
_INSIDE = "jobSchedule"  #: where a whole job object holds its schedule


@dataclass(frozen=True)
class ImportedSchedule:
    """The text of a job file, and what had to be left out of it."""

    text: str
    notes: tuple[Fault, ...] = ()


def import_schedule(text: str) -> ImportedSchedule:
    """Read a schedule object, or a job object that holds one; camelCase, instants in epoch milliseconds.

    The job file gets ``legacy_start_time_arg``, since the jobs of Hopsworks may expect it (H6), and a command to fill in.
    Raises :class:`Rejected` with every field that cannot be carried.
    """
    faults: list[Fault] = []
    notes: list[Fault] = []
    written = _schedule_of(text, notes)
    schedule: dict[str, Any] = {}
    for name, value in written.items():
        if name in _OF_THE_SERVER:
            continue
        if name == _IGNORED:
            if value is not None:
                problem = f"{value!r} is left out: the end of a window is one interval after its start"
                notes.append(Fault("H2", name, problem))
        elif name not in FIELDS:
            faults.append(Fault("input", name, f"the field cannot be carried: {value!r}", "take it out of the object"))
        elif value is not None:
            known = len(faults)
            schedule[FIELDS[name]] = _value(name, value, faults, notes)
            if len(faults) > known:
                schedule[FIELDS[name]] = _STAND_INS.get(FIELDS[name])
    if "cron_expression" not in schedule:
        faults.append(Fault("H1", "cronExpression", "the field is missing", "give the whole schedule object"))
        schedule["cron_expression"] = _STAND_INS["cron_expression"]
    made = "\n".join(_lines(schedule)) + "\n"
    faults += _unfit(made)
    if faults:
        raise Rejected(faults)
    return ImportedSchedule(made, tuple(notes))


def _schedule_of(text: str, notes: list[Fault]) -> dict[str, Any]:
    remedy = "give the answer of Hopsworks' REST API for one schedule"
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Rejected([Fault("input", "", f"it is not JSON: {error}", remedy)]) from None
    if isinstance(found, dict) and isinstance(found.get(_INSIDE), dict):
        if outside := sorted(found.keys() - {_INSIDE}):
            problem = f"what stands beside it is left out: {', '.join(outside)}"
            notes.append(Fault("input", _INSIDE, problem, "put the job's own command into argv"))
        found = found[_INSIDE]
    if not isinstance(found, dict):
        raise Rejected([Fault("input", "", "it is not a schedule object", remedy)])
    return found


def _value(name: str, value: Any, faults: list[Fault], notes: list[Fault]) -> Any:
    key = FIELDS[name]
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if key in _INSTANTS:
        if not is_number or value // 1000 not in SCHEDULABLE:
            faults.append(_bad(name, value, "give epoch milliseconds of the years 1970 to 2199"))
            return None
        if value % 1000:
            notes.append(Fault("H15", name, f"{value % 1000} milliseconds are left out: instants keep whole seconds"))
        return iso(value // 1000)
    if key in _FLAGS and not isinstance(value, bool):
        faults.append(_bad(name, value, "give true or false"))
    elif key in _COUNTS and not (is_number and 1 <= value <= MAX_INTEGER):
        faults.append(_bad(name, value, f"give a whole number from 1 to {MAX_INTEGER}"))
    elif key == "start_time_offset_seconds" and not is_number:
        faults.append(_bad(name, value, "give a whole number of seconds"))
    elif key == "cron_expression" and not isinstance(value, str):
        faults.append(_bad(name, value, "give a cron expression"))
    return value


def _unfit(text: str) -> Iterator[Fault]:
    """What ``check`` would have against the job file, by Hopsworks' names."""
    faults: tuple[Fault, ...] = ()
    try:
        job = read_job(text, team="team", name="name", file="", environ={})
        for verdict in resolve_jobs([job], Settings()).values():
            faults = verdict.faults
    except Rejected as error:
        faults = error.faults
    for fault in faults:
        field = _renamed(fault.field.rpartition("schedule.")[2])
        rule = "input" if fault.rule == "settings" else fault.rule
        yield Fault(rule, field, _renamed(fault.message), _renamed(fault.remedy))


def _renamed(text: str) -> str:
    """The same text with Hopsworks' names in place of those of job files."""
    return re.sub(r"\w+", lambda word: _NAMES.get(word[0], word[0]), text)


def _lines(schedule: Mapping[str, Any]) -> Iterator[str]:
    yield "version: 1"
    yield "# Put the job's own command here; see docs/jobs.md."
    yield 'runner: {kind: command, argv: ["python", "job.py"]}'
    yield "legacy_start_time_arg: true # appends -start_time <logical date>, as Hopsworks did"
    yield "schedule:"
    for key in FIELDS.values():
        if (value := schedule.get(key)) is not None:
            yield f"  {key}: {value if key in _INSTANTS else json.dumps(value)}"


def _bad(name: str, value: Any, remedy: str) -> Fault:
    return Fault("input", name, f"{value!r} cannot be carried", remedy)
