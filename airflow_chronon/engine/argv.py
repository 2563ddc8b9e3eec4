"""The argument list of a command: a template with placeholders, or Chronon's own driver, which confs have by default.

The driver's was checked against the `run` command of zipline-ai 1.28: the conf is positional there (`--conf` would be taken for the
conf itself), `--start-ds` belongs to backfills only, uploads take the one partition as `--ds`, and a metadata upload
takes none. A conf of the older dialect goes to the driver of that, ``run.py``, as chronon-ai 0.0.115 has it: it takes options only,
reads ``teams.json`` of the repository, and loads no key-value store (D6).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Formatter

from airflow_chronon.core.confs.documents import Dialect
from airflow_chronon.core.confs.execution import left_out_of
from airflow_chronon.core.settings.runners import JOB_TOKEN, placeholder_fault
from airflow_chronon.core.settings.values import VALUE
from airflow_chronon.engine.protocol import JobRequest
from airflow_chronon.errors import Fault, JobRefused, Rejected

_PAPERMILL = "papermill"
_DRIVER = ("zipline", "run", "{conf_path}", "--mode", "{mode}")
_OLDER_DRIVER = (
    *("run.py", "--mode", "{mode}", "--conf", "{conf_path}"),
    *("--repo", "{repo}", "--env", "production"),  # without an environment it takes that of development
)
_OLDER_MODES = ("backfill", "upload", "metadata_upload")

#: What a conf may say, though their like decides what is loaded: the driver's submitters read them.
_OF_SUBMITTERS = ("SPARK_CLUSTER_NAME", "SPARK_VERSION")

#: The driver's name of each mode (C11), and the options that this mode takes.
_MODES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "backfill": ("backfill", ("--start-ds", "{start_ds}", "--end-ds", "{end_ds}")),
    "upload": ("upload", ("--ds", "{partition}")),
    "upload_to_kv": ("upload-to-kv", ("--ds", "{partition}")),
    "metadata_upload": ("metadata-upload", ()),
}


def check_template(template: Sequence[str], *, field: str) -> None:
    """Raises :class:`Rejected` with every placeholder that is not known, and every open brace."""
    found = [(index, argument, placeholder_fault(argument)) for index, argument in enumerate(template)]
    faults = [
        Fault("settings", f"{field}[{index}]", fault[0].replace(VALUE, repr(argument)), fault[1])
        for index, argument, fault in found
        if fault is not None
    ]
    if faults:
        raise Rejected(faults)


def build_argv(job: JobRequest, *, template: Sequence[str] | None) -> list[str]:
    """The argument list of a job: that of the driver of its dialect when ``template`` is None.

    Without a window, arguments that hold one of its placeholders are left out, together with the bare option before
    them (H7). Raises :class:`JobRefused` for a mode that the driver does not know.
    """
    values = placeholders_of(job)
    if template is not None:
        return filled_argv(template, values)
    return filled_argv(_default_template(job), {**values, "repo": _repository_of(values["conf_path"])})


def driver_template(job: JobRequest) -> tuple[str, ...]:
    """The command line of the driver of the newer dialect for the mode of a job, which is one that it knows."""
    return (*_DRIVER, *_MODES[job.mode][1])


def driver_options(job: JobRequest) -> list[str]:
    """What follows the conf in a call of that driver. Raises like :func:`build_argv`."""
    values = placeholders_of(job)
    return filled_argv((*_DRIVER[3:], *_MODES[job.mode][1]), values)


def _default_template(job: JobRequest) -> tuple[str, ...]:
    """The driver of the conf's own dialect, where the settings name no command."""
    if job.dialect is Dialect.CURRENT:
        return driver_template(job)
    if job.mode not in _OLDER_MODES:
        problem = "run.py, the driver of the older dialect, loads no key-value store"
        remedy = "name the command that does it with argv of the runner, which gets {mode}, {table} and {partition}"
        raise JobRefused(Fault("runner", "mode", problem, remedy), conf=job.conf)
    return (*_OLDER_DRIVER, *_MODES[job.mode][1])


def _repository_of(path: str) -> str:
    """The folder that holds ``production/`` and ``teams.json``."""
    found = next((parent.parent for parent in Path(path).parents if parent.name == "production"), Path(path).parent)
    return str(found)


def kept_from_driver(job: JobRequest, *, environment: Mapping[str, str]) -> dict[str, str]:
    """Empty variables, where a conf has some that decide how the driver and its JVM are found or loaded.

    The driver takes from a conf what its environment does not have, and a conf starts no program of its own on a worker (S5).
    """
    names = left_out_of(job.document, placeholders_of(job)["mode"])
    return {name: "" for name in names if name not in environment and name not in _OF_SUBMITTERS}


def placeholders_of(job: JobRequest) -> dict[str, str]:
    """The values of the placeholders that a job has. Raises like :func:`build_argv`."""
    if job.mode not in _MODES:
        raise JobRefused(
            Fault("runner", "mode", f"Chronon's driver has no mode {job.mode!r}", f"use {', '.join(_MODES)}"),
            conf=job.conf,
        )
    values = {
        "conf_path": os.path.abspath(job.path),
        "mode": _MODES[job.mode][0],
        "table": job.table,
        "name": job.name,
        "conf_type": job.conf_type,
    }
    labels = job.partitions
    if labels:
        values |= {"start_ds": labels[0], "end_ds": labels[-1], "partition": labels[-1]}
    return values | ({JOB_TOKEN: job.token} if job.token else {})


def filled_argv(template: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """The arguments of a template. One that holds a placeholder without a value is left out, together with the bare option
    before it."""
    argv: list[str] = []
    for argument in template:
        names = {name for _, name, _, _ in Formatter().parse(argument) if name}
        if names <= values.keys():
            argv.append(argument.format(**values))
        elif argv and argv[-1].startswith("-") and argument.startswith("{"):
            argv.pop()  # the option whose value this would have been
    return argv


@dataclass(frozen=True)
class JobStart:
    """What a job's command may name of its run."""

    name: str  #: ``team.name__version``
    path: str  #: the job file
    mode: str
    logical_date: str | None  #: ISO-8601 with ``Z``; None without a window (H7)
    token: str = ""  #: of the job that the command submits elsewhere

    @property
    def placeholders(self) -> dict[str, str]:
        """The values of the placeholders that it has."""
        values = {"conf_path": os.path.abspath(self.path), "mode": self.mode, "name": self.name, "conf_type": "job"}
        values["table"] = ""
        if self.logical_date is not None:
            values |= dict.fromkeys(("start_ds", "end_ds", "partition"), self.logical_date)
        return values | ({JOB_TOKEN: self.token} if self.token else {})


def job_argv(template: Sequence[str], start: JobStart, *, legacy_start_time: bool) -> list[str]:
    """The arguments of a job. Without a window, those that name its date are left out, as for confs (H7).

    With ``legacy_start_time`` and a window, ``-start_time <logical date>`` follows, or ``-p start_time <logical date>``
    for Papermill (H6).
    """
    argv = filled_argv(template, start.placeholders)
    if legacy_start_time and start.logical_date is not None:
        argv += ["-p", "start_time", start.logical_date] if _is_papermill(argv) else ["-start_time", start.logical_date]
    return argv


def _is_papermill(argv: Sequence[str]) -> bool:
    """``papermill …`` by whatever path and behind whatever wrapper, ``python -m papermill …`` and ``-mpapermill``."""
    return any(os.path.basename(argument) == _PAPERMILL or argument == f"-m{_PAPERMILL}" for argument in argv)
