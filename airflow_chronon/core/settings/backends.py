"""Validation of the sections ``catalog`` and ``runner``, merged and filled in; nothing is opened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_chronon.core.settings.catalogs import CATALOGS
from airflow_chronon.core.settings.model import ConfSettings, Settings
from airflow_chronon.core.settings.problems import Problem
from airflow_chronon.core.settings.runners import RUNNERS, with_warehouse


def backend_problems(settings: ConfSettings, environ: Mapping[str, str]) -> list[Problem]:
    """What is wrong with the catalogs and the runner that hold for a conf."""
    catalog = settings.catalog
    default = CATALOGS.problems(catalog.default, environ, beside=("tables",))
    found = [problem.under("catalog") for problem in default]
    for index, entry in enumerate(catalog.tables):
        own = CATALOGS.problems(catalog.of_entry(entry), environ, beside=("match",))
        found += [problem.under("catalog", "tables", index) for problem in _added(own, default)]
    return found + runner_problems(settings, environ)


def runner_problems(settings: ConfSettings, environ: Mapping[str, str]) -> list[Problem]:
    """What is wrong with the runner that holds for a conf or a job."""
    section = with_warehouse(settings.runner.model_dump(), settings.catalog.of_table("").get("root"))
    return [problem.under("runner") for problem in RUNNERS.problems(section, environ)]


def file_problems(settings: Settings, environ: Mapping[str, str]) -> list[Problem]:
    """The same for a whole file, each where it stands; an override repeats none of the defaults'."""
    found, added = backend_problems(settings, environ), list[Problem]()
    for index, override in enumerate(settings.overrides):
        own = backend_problems(settings.with_override(override), environ)
        added += [problem.under("overrides", index) for problem in _added(own, found)]
    return found + added


def _added(problems: Iterable[Problem], known: Iterable[Problem]) -> list[Problem]:
    """The problems that a section has beyond those of the section which it is laid over."""
    seen = {(problem.path, problem.message) for problem in known}
    return [problem for problem in problems if (problem.path, problem.message) not in seen]
