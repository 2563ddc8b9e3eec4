"""Overrides in the settings that match no conf and no job: misspelt, most likely."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from airflow_chronon.core.confs.conf import Conf
from airflow_chronon.core.confs.naming import job_tags, tags
from airflow_chronon.core.jobs.document import Job
from airflow_chronon.core.settings.model import Settings
from airflow_chronon.errors import ChrononError, Fault


def idle_overrides(
    settings: Settings, confs: Iterable[Conf], jobs: Iterable[Job], *, branch: str, file: str
) -> tuple[Fault, ...]:
    """A warning for each; ``file`` is where the overrides stand. With a conf whose tags cannot be known there are none."""
    if not settings.overrides:
        return ()
    try:
        known = [*_names_of_confs(confs, branch), *_names_of_jobs(jobs, branch)]
    except ChrononError:
        return ()
    remedy = "mend the type/name glob or the tag, or take it out"
    return tuple(
        Fault("settings", f"{file} overrides[{number}]", f"{each.match!r} matches no conf and no job", remedy)
        for number, each in enumerate(settings.overrides)
        if not any(each.applies_to(*names) for names in known)
    )


def _names_of_confs(confs: Iterable[Conf], branch: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Keys with every tag that may count: whether something is scheduled may hang on an override."""
    for conf in confs:
        yield str(conf.key), tags(conf, grid=conf.spec.grid, modes=(), branch=branch)


def _names_of_jobs(jobs: Iterable[Job], branch: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for job in jobs:
        yield job.key, job_tags(team=job.team, version=job.document.version, branch=branch, is_scheduled=False)
