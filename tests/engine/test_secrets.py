"""What was filled into a runner's or a catalog's settings is in no line of a log and in no error (S4)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from airflow_chronon.catalogs.build import build_catalog
from airflow_chronon.engine.build import build_command_runner, build_runner
from airflow_chronon.engine.command import CommandRunner
from airflow_chronon.errors import CatalogError, JobFailed, JobRefused
from airflow_chronon.storage.files import open_storage

SECRET = "hunter'2/{day}@x"


@pytest.fixture
def log() -> list[str]:
    return []


def test_the_command_is_told_as_it_is_written_and_gets_what_is_meant(make_job, log, tmp_path: Path) -> None:
    told = tmp_path / "told"
    code = f"import sys; open({str(told)!r}, 'w').write(sys.argv[1])"
    argv = [sys.executable, "-c", code, "--pw=${DB_PW}", "{mode}"]
    build_runner({"kind": "command", "argv": argv}, {"DB_PW": SECRET}).run(make_job(), log.append)
    assert told.read_text() == f"--pw={SECRET}"
    assert "--pw=${DB_PW}', 'backfill'" in log[0] and "hunter" not in str(log)


@pytest.mark.parametrize(
    ("settings", "kind", "says"),
    [
        ({"argv": ["/no/${S}/x"]}, JobRefused, "cannot start '/no/${S}/x'"),
        ({"argv": ["true"], "cwd": "/no/${S}"}, JobRefused, "cannot start 'true'"),
        ({"argv": ["sh", "-c", "echo it was $A; exit 3"], "env": {"A": "${S}"}}, JobFailed, "exit code 3"),
        ({"argv": ["sh", "-c", "echo it was $0; exit 3", "${S}"]}, JobFailed, "exit code 3"),
    ],
)
def test_a_command_that_fails_does_not_tell(make_job, log, settings: dict[str, Any], kind: type, says: str) -> None:
    for runner in (
        build_runner({"kind": "command", **settings}, {"S": SECRET}),
        build_command_runner({"kind": "command", **settings}, {"S": SECRET}),
    ):
        assert isinstance(runner, CommandRunner)
        with pytest.raises(kind) as failed:
            runner.run(make_job(), log.append)
        assert says in str(failed.value) and "hunter" not in str(failed.value) + repr(runner)


def test_what_a_jobs_own_variables_hold_is_no_message_either(make_job, log) -> None:
    settings = {"kind": "command", "argv": ["sh", "-c", "echo hunter-of-the-job; exit 3"]}
    runner = build_command_runner(settings, {"S": "hunter-of-the-job"}, own_env={"A": "${S}"})
    with pytest.raises(JobFailed, match=r"its last lines: \$.S.") as failed:
        runner.run(make_job(), log.append)
    assert "hunter" not in str(failed.value)


def test_the_embedded_engine_names_its_folders_as_they_are_written(make_job, log, tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse-of-someone"
    runner = build_runner({"kind": "local", "warehouse": "${W}"}, {"W": str(warehouse)})
    with pytest.raises(JobFailed) as failed:
        runner.run(make_job("SELECT * FROM raw.nothing"), log.append)
    assert "of-someone" not in str(failed.value) + str(log)
    warehouse.mkdir()
    (warehouse / "out.orders").write_text("a file in the way")
    with pytest.raises(JobFailed) as failed:
        runner.run(make_job("SELECT '2026-06-01' AS ds"), log.append)
    assert "of-someone" not in str(failed.value) + str(log) and "${W}" in str(failed.value)


class _Telling(MemoryFileSystem):
    """A store whose errors quote what it was opened with, as drivers do."""

    protocol = "telling"
    cachable = False

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options

    def find(self, path: str, **_: Any) -> Any:
        raise PermissionError(f"403 for {path}: {self.options}")


@pytest.fixture
def telling() -> None:
    fsspec.register_implementation("telling", _Telling, clobber=True)


@pytest.mark.parametrize("secret", ["k3y-of/the@store", "x", "7"])
def test_a_driver_that_quotes_its_options_does_not_tell(telling, secret: str) -> None:
    settings = {"kind": "filesystem", "root": "telling://${S}/w", "storage_options": {"secret": "${S}", "user": "me"}}
    catalog = build_catalog(settings, {"S": secret})
    with pytest.raises(CatalogError) as failed:
        catalog.list_partitions("raw.orders")
    error = failed.value
    assert error.__cause__ is None and error.__context__ is None and "${S}" in str(error)
    assert str(error).replace("${S}", "").count(secret) == 0 or len(secret) == 1
    assert f"{{'secret': '{secret}'" not in str(error)


def test_a_password_in_an_address_is_never_shown(telling) -> None:
    with pytest.raises(Exception, match="403 for") as failed:
        list(open_storage("telling://me:pa/s@s3cr3t@store/w").walk("t", skip=lambda _: False) or ())
    assert "s3cr3t" not in str(failed.value) and "me:" not in str(failed.value)
