"""Job files on disk: ``jobs/<team>/<name>.yaml`` below a conf root, each under its own guard."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path

from airflow_chronon.conf_root.files import files_below
from airflow_chronon.conf_root.settings import cannot_read, read_bytes
from airflow_chronon.core.confs.plan import RejectedConf
from airflow_chronon.core.jobs.document import Job, job_key, read_job
from airflow_chronon.errors import Fault, Rejected
from airflow_chronon.storage.files import replace_file

JOBS = "jobs"  #: the folder below the conf root
SUFFIXES = (".yaml", ".yml")
MAX_JOB_BYTES = 256 * 1024


def read_jobs(root: Path, *, environ: Mapping[str, str], problems: list[Fault]) -> tuple[list[Job], list[RejectedConf]]:
    """Every job file below a conf root, and those that cannot be read; other files in there are not looked at.

    A folder that cannot be listed becomes one of ``problems``.
    """
    jobs, unreadable = [], []
    for path in files_below(root / JOBS, problems):
        if path.suffix.lower() not in SUFFIXES:
            continue
        shown, inside = str(path.relative_to(root)), path.relative_to(root / JOBS).parts
        team, name = ".".join(inside[:-1]), path.stem
        try:
            if len(inside) != 2:
                problem, remedy = f"{shown} is not a place for a job", f"move it to {JOBS}/<team>/{path.name}"
                raise Rejected([Fault("input", "", problem, remedy)], conf=job_key(team, name))
            jobs.append(read_job_file(path, shown=shown, environ=environ))
        except Rejected as error:
            unreadable.append(RejectedConf(error.conf, shown, error.faults))
    return jobs, unreadable


def read_job_file(path: Path, *, shown: str, environ: Mapping[str, str]) -> Job:
    """Read one job file. Raises :class:`Rejected` with every fault; ``conf`` is the job's key, as far as it is known."""
    team, name = path.parent.name, path.stem
    key = job_key(team, name)
    if not (team + name).isprintable():
        raise Rejected([Fault("input", "", f"{shown!r} cannot be a job's name", "rename the file")], conf=key)
    try:
        text = read_bytes(path, limit=MAX_JOB_BYTES, kind="job file").decode()
    except (OSError, UnicodeDecodeError) as error:
        raise Rejected([cannot_read(error, what="the file")], conf=key) from None
    except Rejected as error:
        raise Rejected(error.faults, conf=key) from None
    return read_job(text, team=team, name=name, file=shown, environ=environ)


def replace_job_file(path: Path, data: bytes) -> None:
    """Put a job file in the place of an older one, whole, whenever the writer is killed; its permissions stay."""
    target = path.resolve()
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    replace_file(target, data, permissions=target.stat().st_mode & 0o7777)
