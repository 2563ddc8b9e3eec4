"""Job files on disk: ``jobs/<team>/<name>.yaml`` below a conf root, each under its own guard."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path

from airflow_chronon.conf_root.files import FoundFile, files_by_team
from airflow_chronon.conf_root.settings import cannot_read, read_bytes
from airflow_chronon.conf_root.teams import TeamReader
from airflow_chronon.core.bounds import MAX_JOB_BYTES
from airflow_chronon.core.confs.plan import RejectedConf
from airflow_chronon.core.jobs.document import Job, job_key, read_job
from airflow_chronon.errors import Fault, Rejected
from airflow_chronon.storage.files import replace_file

JOBS = "jobs"  #: the folder below the conf root
SUFFIXES = (".yaml", ".yml")


def read_jobs(root: Path, *, environ: Mapping[str, str], problems: list[Fault]) -> tuple[list[Job], list[RejectedConf]]:
    """Every job file below a conf root, and those that cannot be read; other files in there are not looked at.

    A folder that cannot be listed becomes one of ``problems``.
    """
    jobs: list[Job] = []
    unreadable: list[RejectedConf] = []
    reader = TeamReader(
        "job",
        limit=MAX_JOB_BYTES,
        read=lambda found: _read_placed(found, environ),
        key_of=lambda found: job_key(".".join(found.place[:-1]), found.path.stem),
        takes=_is_job,
    )
    for team in files_by_team(root, root / JOBS, problems, home=root / JOBS):
        read, bad = reader.read_team(team)
        jobs += read
        unreadable += bad
    return jobs, unreadable


def _read_placed(found: FoundFile, environ: Mapping[str, str]) -> Job:
    """Read a job file that is where job files are. Raises ``Rejected`` for one elsewhere."""
    if len(found.place) != 2:
        problem, remedy = f"{found.file} is not a place for a job", f"move it to {JOBS}/<team>/{found.path.name}"
        raise Rejected([Fault("input", "", problem, remedy)])
    return read_job_file(found.path, shown=found.file, environ=environ)


def _is_job(file: str) -> bool:
    """Whether it may be a job file, or a folder of them."""
    return file.lower().endswith((*SUFFIXES, "/"))


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
