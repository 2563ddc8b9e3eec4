"""The setting ``runner``."""

from __future__ import annotations

import pytest

from airflow_chronon.core.settings.runners import RUNNERS
from airflow_chronon.engine.build import CLASSES, build_runner, jobs_elsewhere
from airflow_chronon.engine.command import CommandRunner
from airflow_chronon.engine.local import LocalRunner
from airflow_chronon.errors import Rejected


def test_the_local_runner_takes_the_catalogs_root_by_default():
    assert build_runner({"kind": "local"}, default_root="/w").warehouse == "/w"
    assert build_runner({"kind": "local", "warehouse": "file:///x"}, default_root="/w").warehouse == "/x"


def test_settings_reach_the_runner():
    local = build_runner(
        {"kind": "local", "warehouse": "/w", "memory_limit": "1GB", "spill_limit": "5GB", "timeout": "2h"}
    )
    assert isinstance(local, LocalRunner)
    assert (local.memory_limit, local.spill_limit, local.timeout, local.threads) == ("1GB", "5GB", 7200, None)
    settings = {"kind": "command", "argv": ["x", "{mode}"], "env": {"A": "b"}, "cwd": "/c", "grace_seconds": 5}
    command = build_runner(settings)
    assert isinstance(command, CommandRunner)
    assert (command.argv, command.env, command.cwd, command.grace_seconds) == (["x", "{mode}"], {"A": "b"}, "/c", 5.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "runner.kind: the runner kind None is not known .settings.. Use local or command"),
        ({"kind": "spark_submit"}, "'spark_submit' is not known .settings.. Use local or command"),
        (
            {"kind": "local", "warehouse": "/w", "thread": 1},
            r"runner.thread: unknown key 'thread' .* Did you mean threads\? Allowed are kind, kv_store, memory_limit, spill_limit, threads",
        ),
        ({"kind": "local"}, "runner.warehouse: the key 'warehouse' is missing"),
        ({"kind": "local", "warehouse": "s3://b"}, "folders of this machine only, not to 's3://b'"),
        ({"kind": "local", "warehouse": "/w", "threads": 0}, "runner.threads: 0 is not a number of threads"),
        ({"kind": "local", "warehouse": "/w", "memory_limit": 3}, "runner.memory_limit: 3 is not an amount of memory"),
        (
            {"kind": "local", "warehouse": "/w", "spill_limit": "plenty"},
            "runner.spill_limit: 'plenty' is not an amount of memory .* Write it like 512MB or 2GB",
        ),
        (
            {"kind": "command", "shell": "x"},
            "unknown key 'shell' .* Allowed are argv, cancel, cwd, env, find, grace_seconds",
        ),
        ({"kind": "command", "argv": "zipline run"}, "runner.argv: 'zipline run' is not a list of arguments"),
        ({"kind": "command", "argv": []}, "runner.argv: .. is not a list of arguments"),
        ({"kind": "command", "argv": ["a\0b"]}, "runner.argv: .*a.x00b.* is not a list of arguments"),
        ({"kind": "command", "argv": [""]}, "runner.argv: .* is not a list of arguments"),
        (
            {"kind": "command", "argv": ["x", "{day}"]},
            r"runner.argv\[1\]: the placeholder .day. of '.day.' is not known",
        ),
        ({"kind": "command", "env": {"A": 1}}, "runner.env.A: this value is not allowed .* in quotes"),
        ({"kind": "command", "env": {1: "a"}}, r"runner.env\[1\]: this value is not allowed"),
        ({"kind": "command", "timeout": 0}, "runner.timeout: "),
        ({"kind": "command", "threads": 2}, "unknown key 'threads'"),
        ({"kind": "command", "argv": ["{\ud800}"]}, r"runner.argv\[0\]: the placeholder .* is not known"),
        ({"kind": "command", "cwd": 1}, "runner.cwd: 1 is not a folder"),
        ({"kind": "command", "grace_seconds": -1}, "runner.grace_seconds: -1 is not a number of seconds"),
    ],
)
def test_what_is_not_known_is_refused_with_what_is_allowed(settings, message):
    with pytest.raises(Rejected, match=message):
        build_runner(settings)


def test_every_kind_of_settings_has_its_runner():
    assert set(CLASSES) == set(RUNNERS) - {"operator"}  # which works as a task: tests/airflow/operators


ELSEWHERE = {
    "kind": "command",
    "argv": ["submit", "{job_token}"],
    "job_id": r"ID: (\S+)",
    "status": ["status", "{job_id}"],
    "cancel": ["cancel", "{job_id}"],
}


def test_a_job_elsewhere_is_whole():
    assert jobs_elsewhere(ELSEWHERE, {}).pattern == r"ID: (\S+)"
    assert jobs_elsewhere({**ELSEWHERE, "find": ["find", "{job_token}"], "states": {"OVER": "failed"}}, {})
    assert jobs_elsewhere({**ELSEWHERE, "idempotent": True}, {}).is_idempotent
    assert not jobs_elsewhere(ELSEWHERE, {}).is_idempotent
    assert jobs_elsewhere({"kind": "command"}, {}) is None
    assert jobs_elsewhere({"kind": "local"}, {}) is None


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"job_id": "ID"}, r"runner.job_id: 'ID' has 0 groups, not one .* Put what the id looks like in one pair"),
        ({"job_id": "(a)(b)"}, "runner.job_id: .* has 2 groups"),
        ({"job_id": "(a"}, "runner.job_id: '.a' is not a regular expression: missing"),
        ({"job_id": 5}, "runner.job_id: 5 is not a regular expression"),
        ({"status": None}, "a job that is known by its job_id has no status .* Add status: .program, '{job_id}'"),
        ({"cancel": None}, "a job that is known by its job_id has no cancel"),
        ({"status": ["status"]}, "status does not say which job .* Give it '{job_id}'"),
        ({"cancel": ["cancel", "{job}"]}, r"runner.cancel\[1\]: the placeholder {job} of '{job}' is not known"),
        ({"find": ["find"]}, "find does not say which job .* Give it '{job_token}'"),
        ({"find": ["find", "{job_token}"], "argv": ["submit"]}, "find looks for a token that argv gives to no job"),
        ({"idempotent": True, "argv": ["submit"]}, "idempotent is about a token that argv gives to no job"),
        ({"idempotent": "perhaps"}, "runner.idempotent: .* Write true or false"),
        (
            {"states": {"OVER": "gone"}},
            "runner.states.OVER: 'gone' is no state of a job .* Write running, succeeded or",
        ),
        ({"job_id": None}, "status is about a job elsewhere, whose id nothing tells .* Add job_id, or leave it out"),
        (
            {"job_id": None, "status": None, "cancel": None},
            "of argv is the token of a job elsewhere, whose id nothing tells .* Add job_id",
        ),
    ],
)
def test_half_a_job_elsewhere_is_refused(more, message):
    settings = {name: value for name, value in {**ELSEWHERE, **more}.items() if value is not None}
    with pytest.raises(Rejected, match=message):
        build_runner(settings)
