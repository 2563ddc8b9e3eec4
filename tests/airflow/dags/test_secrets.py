"""A secret in a wrong place of the settings or of a job file is in nothing that others read (S4)."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.serialization.serialized_objects import DagSerialization

from airflow_chronon.cli.main import main
from airflow_chronon.core.jobs.document import JobDocument, ScheduleDocument
from airflow_chronon.core.settings.model import SensorSettings, Settings, TaskDefaults
from airflow_chronon.dags import ImportErrors, build_dags, raise_import_errors
from tests.support.airflow_jobs import write_job
from tests.support.conf_roots import ConfRootOnDisk
from tests.support.stub_server import stub_server

MARK = "Zq9x"  #: in every one of the secrets below
SECRETS = (f"hunter-{MARK}", f"s3://key:pa/{MARK}@bucket/w", f"{MARK}'\"{{day}}", f"{MARK}", f"/srv/{MARK}/w")

_CATALOG = ("kind", "root", "landed", "storage_options", "rot")
_RUNNERS = {
    "local": ("warehouse", "threads", "memory_limit", "kv_store", "argv"),
    "command": ("argv", "env", "cwd", "grace_seconds", "pass_env", "threads"),
}
_REFERENCES = ("${S}", "a-${S}", ["${S}"], {"A": "${S}"}, ["x", "{${S}}", "{day}"])


def wrong_settings() -> Iterator[dict[str, Any]]:
    """Settings with ``${S}`` where it does not belong, or where what it stands for is wrong."""
    for wrong in _REFERENCES:
        sections: list[dict[str, Any]] = [
            {name: wrong} for name in Settings.model_fields if name not in ("branch", "default_branch")
        ]
        sections += [{"task_defaults": {name: wrong}} for name in TaskDefaults.model_fields]
        sections += [{"sensor": {name: wrong}} for name in SensorSettings.model_fields]
        sections += [{"catalog": {name: wrong}} for name in _CATALOG]
        sections += [{"catalog": {"tables": [{"match": "*", name: wrong}]}} for name in _CATALOG]
        sections += [
            {"runner": {"kind": kind, name: wrong}} for kind, names in _RUNNERS.items() for name in (*names, "kind")
        ]
        yield from sections
        yield from ({"overrides": [{"match": "*", **section}]} for section in sections[:4] + sections[-18:])


def wrong_jobs() -> Iterator[dict[str, Any]]:
    for wrong in _REFERENCES[:2]:
        yield from ({name: wrong} for name in JobDocument.model_fields if name != "env")
        yield from ({"schedule": {"cron_expression": "@daily", name: wrong}} for name in ScheduleDocument.model_fields)
        yield from ({"env": {"A": each}} for each in (wrong, [wrong]))
        yield from ({"runner": {"argv": ["x", wrong], name: wrong}} for name in ("cwd", "env", "grace_seconds", "kind"))


SETTINGS, JOBS = list(wrong_settings()), list(wrong_jobs())


CONF, JOB = "staging_query/orders.daily__1", "job/etl.hourly"
COMMANDS = (
    ("check",),
    ("check", "--format", "json"),
    ("explain", JOB),
    ("plan",),
    ("plan", "--format", "json"),
    ("reconcile", "--dry-run"),
    ("partitions", CONF, "--start-ds", "2026-06-01"),
    ("backfill", CONF, "--start-ds", "2026-06-01", "--dry-run"),
    ("run", JOB),
)
ASK_AIRFLOW = {"plan", "reconcile", "partitions", "backfill", "run"}


def shown(root: Path, airflow: str | None, capsys: pytest.CaptureFixture[str]) -> str:
    """Everything that anybody can read of a conf root: commands, import errors, serialised DAGs and their pages.

    Without an Airflow, what the commands say that ask it is left out.
    """
    said = []
    for command in COMMANDS:
        asks = command[0] in ASK_AIRFLOW
        if asks and airflow is None:
            continue
        at = ("--airflow", str(airflow)) if asks else ()
        try:
            main([*command, "--root", str(root), *at])
        except SystemExit as error:
            said.append(str(error))
    said += [str(each) for each in capsys.readouterr()]
    try:
        said += [json.dumps(DagSerialization.to_dict(dag)) for dag in build_dags(conf_root=root).values()]
        raise_import_errors(conf_root=root)
    except ImportErrors as error:
        said.append(str(error))
    return "\n".join(said)


@pytest.fixture
def airflow() -> Iterator[str]:
    """The address of an Airflow that has parsed none of it yet."""
    with stub_server() as running:
        listings = {"dags": "dags", "dags/~/dagRuns": "dag_runs", "assets": "assets", "importErrors": "import_errors"}
        for path, name in listings.items():
            running.reply(f"/api/v2/{path}", (200, {name: [], "total_entries": 0}))
        running.reply("/api/v2/dags/job.etl.hourly/dagRuns", (400, {"detail": "Bad Request"}))
        yield running.url.replace("//", "//admin:admin@")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ConfRootOnDisk:
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "home"))
    root = ConfRootOnDisk(tmp_path / "root")
    root.staging_query("orders.daily")
    write_job(root.path)
    return root


@pytest.mark.parametrize(
    "asking", [pytest.param(1, marks=pytest.mark.soak), 5]
)  # every how many files Airflow is asked
@pytest.mark.parametrize("part", range(5))
def test_two_hundred_settings_files_and_job_files_tell_nothing(
    root: ConfRootOnDisk, airflow: str, part: int, asking: int, monkeypatch: pytest.MonkeyPatch, capsys, caplog
) -> None:
    assert len(SETTINGS) + len(JOBS) >= 200
    caplog.set_level(logging.DEBUG)
    for index, settings in enumerate(SETTINGS):
        if index % 5 == part:
            monkeypatch.setenv("S", SECRETS[(index // 5) % len(SECRETS)])
            root.settings(json.dumps(settings))
            assert MARK not in shown(root.path, None if (index // 5) % asking else airflow, capsys), settings
    root.settings("")
    for index, job in enumerate(JOBS):
        if index % 5 == part:
            monkeypatch.setenv("S", SECRETS[(index // 5) % len(SECRETS)])
            write_job(root.path, **job)
            assert MARK not in shown(root.path, None if (index // 5) % asking else airflow, capsys), job
    assert MARK not in caplog.text and os.environ["S"]
