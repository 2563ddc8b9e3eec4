"""The JSON schemas against the readers: what is read fits, and a typo does not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import yaml

from airflow_chronon.core.jobs.document import JobDocument, read_job
from airflow_chronon.core.settings.model import Settings
from airflow_chronon.core.settings.schema import json_schema
from airflow_chronon.core.settings.yaml import read_settings
from airflow_chronon.errors import Rejected
from tests.support.checkout import ROOT
from tests.support.jobs import job_faults

SETTINGS, JOB = json_schema(Settings, title="settings"), json_schema(JobDocument, title="job")
ENVIRON = {"A": "1"}
HEAD = "version: 1\n"
SCHEDULE = "version: 1\nschedule:\n  cron_expression: '@daily'\n"

GOOD_SETTINGS = [
    "start_date: 20260101\nend_date: 2026-01-02T00:00:00Z\nskip_to_date: 2026-01-01-03-00",
    "catchup: ${A:-true}\nmax_active_runs: ${A}\npause: ${PAUSE:-allow}\nenvironment: ${ENV:-prod}",
    "environment: canary",
    "environment: PROD\nlookback: null\nmax_catchup_runs: null\nowner: null",
    "sensor: {timeout: 90 s, poll_seconds: 1, on_never: wait}",
    "sensor: {timeout: 3600, on_timeout: skip}\ntask_defaults: {email: [a@b.c], on_failure_callback: a.b}",
    "sensor: {timeout: '${WAIT:-2d}'}\ntask_defaults: {email: a@b.c, on_failure_callback: a.b}",
    "catalog: {root: /a, landed: success_file, storage_options: {key: '${A}'}, tables: [{match: 'v.*', root: 's3://b'}]}",
    "runner: {kind: command, argv: [a, '{mode}'], env: {B: '${A}'}, cwd: /a, grace_seconds: 1.5, timeout: 6h}",
    "runner: {kind: local, warehouse: /w, memory_limit: 2GB, spill_limit: 5GB, timeout: 2h, threads: 2, kv_store: /k}",
    "runner: {kind: command, argv: [a, '{job_token}'], job_id: 'ID (.+)', status: [a, '{job_id}'], cancel: [b, '{job_id}'],"
    " find: [c, '{job_token}'], states: {OVER: failed}}",
    "runner: {kind: operator, class: a.b.C, arguments: {a: ['{driver_args}', 1], '{env}': '{env}'}, env: {B: '${A}'}, pass_env: [A_*]}",
    "overrides: [{match: 'a/*', runner: {kind: command, cwd: /a}, catalog: {tables: []}, enabled: false}]",
]
BAD_SETTINGS = [
    "cachup: true",
    "catchup: maybe",
    "max_active_runs: 0",
    "max_active_runs: 2147483648",
    "retries: many",
    "pause: forbit",
    "environment: production",
    "sensor: {timeout: 2w}",
    "sensor: {timeout: 0}",
    "sensor: {on_never: ignore}",
    "sensor: {pol_seconds: 5}",
    "task_defaults: {on_failure_callback: notdotted}",
    "task_defaults: {pools: a}",
    "catalog: {kind: filesystem, rot: /a}",
    "catalog: {kind: hive}",
    "catalog: {root: /a, landed: any}",
    "catalog: {root: /a, tables: [{root: /b}]}",
    "runner: {kind: lokal}",
    "runner: {kind: local, argv: [a]}",
    "runner: {kind: command, argv: run.sh}",
    "runner: {kind: command, grace_seconds: -1}",
    "runner: {kind: local, threads: 0}",
    "runner: {kind: command, job_id: 'ID (.+)', status: [a, '{job_id}'], cancel: [b, '{job_id}'], states: {OVER: gone}}",
    "runner: {kind: operator, class: notdotted}",
    "runner: {kind: operator, class: a.B, argument: {}}",
    "runner: {kind: operator, class: a.B, arguments: [a]}",
    "overrides: [{catchup: true}]",
    "overrides: [{match: 'a/*', branch: b}]",
    "overrides: {match: 'a/*'}",
]
GOOD_JOBS = [
    HEAD,
    "version: v1.2-a\nrunner: {cwd: /a}\nenv: {A: '1'}\nowner: a\nretries: 0\non_retire: stop\nmax_pending_runs: 1",
    "version: '1.0'\nlegacy_start_time_arg: true\ntask_defaults: {pool: a}\nschedule: null",
    SCHEDULE + "  start_time: 20260101\n  end_time: 2026-01-02\n  skip_to_date: 2026-01-01T00:00:00Z",
    SCHEDULE + "  lookback_seconds: 60\n  catchup: true\n  max_active_runs: 2\n  max_catchup_runs: 3\n  enabled: false",
    SCHEDULE + "  start_time_offset_seconds: 0\n  end_time_offset_seconds: 5",
]
BAD_JOBS = [
    "owner: a",
    "version: [1]",
    "version: a b",
    HEAD + "sheduler: {}",
    HEAD + "schedule: {}",
    HEAD + "schedule: '@daily'",
    HEAD + "env: {A: 1}",
    HEAD + "retries: '1'",
    SCHEDULE + "  catch_up: true",
    SCHEDULE + "  catchup: 'true'",
    SCHEDULE + "  max_active_runs: 0",
    SCHEDULE + "  lookback_seconds: '01:00'",
]


def _read_job(text: str) -> object:
    return read_job(text, team="etl", name="a", file="a.yaml", environ=ENVIRON)


def _read_settings(text: str) -> object:
    return read_settings(text, environ=ENVIRON, warehouse="/w")


def _fits(text: str, schema: dict[str, Any]) -> bool:
    value = json.loads(json.dumps(yaml.safe_load(text), default=str))  # to an editor a date is text
    return jsonschema.Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize("schema", [SETTINGS, JOB], ids=["settings", "job"])
def test_it_is_a_schema(schema: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("text", GOOD_SETTINGS)
def test_settings_that_can_be_read_fit(text: str) -> None:
    assert _read_settings(text)
    assert _fits(text, SETTINGS)


@pytest.mark.parametrize("text", BAD_SETTINGS)
def test_settings_with_a_mistake_do_not_fit(text: str) -> None:
    with pytest.raises(Rejected):
        _read_settings(text)
    assert not _fits(text, SETTINGS)


@pytest.mark.parametrize("text", GOOD_JOBS)
def test_a_job_that_can_be_read_fits(text: str) -> None:
    assert _read_job(text)
    assert _fits(text, JOB)


@pytest.mark.parametrize("text", BAD_JOBS)
def test_a_job_with_a_mistake_does_not_fit(text: str) -> None:
    with pytest.raises(Rejected):
        _read_job(text)
    assert not _fits(text, JOB)


def test_a_mistake_in_a_runner_of_a_job_does_not_fit() -> None:
    text = HEAD + "runner: {kind: command, arg: [a]}"
    assert job_faults(text)
    assert not _fits(text, JOB)


def _files() -> Iterator[Any]:
    """Every file and every block of a page that holds settings or a job."""
    for path in sorted(
        [*ROOT.glob("dags/**/*.yaml"), *ROOT.glob("examples/**/*.yaml"), *ROOT.glob("tests/data/**/*.yaml")]
    ):
        yield pytest.param(path.read_text(), id=str(path.relative_to(ROOT)))
    for page in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]):
        for number, text in enumerate(re.findall(r"^```yaml\n(.*?)^```$", page.read_text(), re.S | re.M)):
            yield pytest.param(text, id=f"{page.name}-{number}")


@pytest.mark.parametrize("text", list(_files()))
def test_what_this_project_shows_fits(text: str) -> None:
    assert _fits(text, JOB if "\nversion:" in f"\n{text}" else SETTINGS)


@pytest.mark.parametrize("schema", [SETTINGS, JOB], ids=["settings", "job"])
def test_an_editor_can_explain_every_key(schema: dict[str, Any]) -> None:
    sections = {"": schema, **schema["$defs"]}
    assert [
        f"{section}.{name}"
        for section, of in sections.items()
        for name, field in of.get("properties", {}).items()
        if "description" not in field
    ] == []
