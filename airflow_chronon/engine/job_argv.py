"""The argument list of a job: its own command, with placeholders filled in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from airflow_chronon.engine.argv import filled_argv

_PAPERMILL = "papermill"


@dataclass(frozen=True)
class JobStart:
    """What a job's command may name of its run."""

    name: str  #: ``team.name``
    path: str  #: the job file
    mode: str
    logical_date: str | None  #: ISO-8601 with ``Z``; None without a window (H7)


def job_argv(template: Sequence[str], start: JobStart, *, legacy_start_time: bool) -> list[str]:
    """The arguments of a job. Without a window, those that name its date are left out, as for confs (H7).

    With ``legacy_start_time`` and a window, ``-start_time <logical date>`` follows, or ``-p start_time <logical date>``
    for Papermill (H6).
    """
    values = {"conf_path": os.path.abspath(start.path), "mode": start.mode, "name": start.name, "conf_type": "job"}
    values["table"] = ""
    if start.logical_date is not None:
        values |= dict.fromkeys(("start_ds", "end_ds", "partition"), start.logical_date)
    argv = filled_argv(template, values)
    if legacy_start_time and start.logical_date is not None:
        argv += ["-p", "start_time", start.logical_date] if _is_papermill(argv) else ["-start_time", start.logical_date]
    return argv


def _is_papermill(argv: Sequence[str]) -> bool:
    """``papermill …`` by whatever path and behind whatever wrapper, ``python -m papermill …`` and ``-mpapermill``."""
    return any(os.path.basename(argument) == _PAPERMILL or argument == f"-m{_PAPERMILL}" for argument in argv)
