"""What the kinds of catalogs and runners have against the settings: sections merged, filled in and judged, nothing opened."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_chronon.core.settings.catalogs import CATALOGS
from airflow_chronon.core.settings.model import ConfSettings, Settings
from airflow_chronon.core.settings.problems import Problem
from airflow_chronon.core.settings.runners import RUNNERS, with_warehouse
from airflow_chronon.core.settings.variables import filled


def backend_problems(settings: ConfSettings, environ: Mapping[str, str]) -> list[Problem]:
    """What is wrong with the catalogs and the runner that hold for a conf."""
    catalog = settings.catalog
    default = CATALOGS.problems(filled(catalog.default, environ))
    found = [problem.under("catalog") for problem in default]
    for index, entry in enumerate(catalog.tables):
        own = CATALOGS.problems(filled(catalog.of_entry(entry), environ))
        found += [problem.under("catalog", "tables", index) for problem in own if problem not in default]
    return found + runner_problems(settings, environ)


def runner_problems(settings: ConfSettings, environ: Mapping[str, str]) -> list[Problem]:
    """What is wrong with the runner that holds for a conf or a job."""
    root = filled(settings.catalog.of_table(""), environ).get("root")
    section = with_warehouse(filled(settings.runner.model_dump(), environ), root)
    return [problem.under("runner") for problem in RUNNERS.problems(section)]


def file_problems(settings: Settings, environ: Mapping[str, str]) -> list[Problem]:
    """The same for a whole file, each where it stands; an override repeats none of the defaults'."""
    found = backend_problems(settings, environ)
    for index, override in enumerate(settings.overrides):
        own = backend_problems(settings.with_override(override), environ)
        found = [*found, *(problem.under("overrides", index) for problem in own if problem not in found)]
    return found
