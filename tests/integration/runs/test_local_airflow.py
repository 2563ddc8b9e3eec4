"""The supervisor that the demo and these tests stand on: what it starts, it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from airflow_api import ApiError
from local_airflow import HOST, MARK, USER, AirflowNotRunning, Component, LocalAirflow
from sessions import end_processes, processes_marked

from tests.support.checkout import ROOT
from tests.support.integration.airflow_client import wait_until
from tests.support.integration.real_airflow import RealAirflow
from tests.support.processes import deaf

pytestmark = pytest.mark.soak

GREETER = """
from datetime import datetime
from airflow.sdk import DAG, task

with DAG("greeter", schedule=None, start_date=datetime(2026, 1, 1)):
    @task
    def greet(**context):
        print("good day,", context["params"]["name"])

    greet()
"""
SLEEPER = """
from datetime import datetime
from airflow.sdk import DAG, task

with DAG("sleeper", schedule=None, start_date=datetime(2026, 1, 1)):
    @task
    def sleep():
        import subprocess
        subprocess.run(["sleep", "600"], start_new_session=True)

    sleep()
"""


def test_every_socket_is_on_the_loopback_interface(real_airflow: RealAirflow) -> None:
    listening: list[str] = []
    for process in processes_marked(variable=MARK, value=str(real_airflow.server.home)):
        with contextlib.suppress(psutil.NoSuchProcess):  # a parse or a task may end meanwhile
            found = process.net_connections("inet")
            listening += [each.laddr.ip for each in found if each.status == psutil.CONN_LISTEN]
    assert listening and set(listening) == {HOST}


def test_a_run_is_triggered_with_params_and_its_log_is_read(real_airflow: RealAirflow) -> None:
    (real_airflow.dags / "greeter.py").write_text(GREETER)
    api = real_airflow.api
    wait_until(lambda: api.dag("greeter"), timeout=60, why="the dropped file becomes a DAG")
    run = api.trigger("greeter", params={"name": "Ada"}, logical_date=datetime(2026, 6, 1, tzinfo=UTC))
    wait_until(lambda: api.run("greeter", run.run_id).state == "success", timeout=90, why="the run succeeds")
    (task,) = api.tasks("greeter", run.run_id)
    assert "good day, Ada" in api.log_text(task)
    assert api.task_states(run) == {"greet": "success"}
    assert [version["version_number"] for version in api.dag_versions("greeter")] == [1]


def test_a_refusal_carries_the_sentence_of_the_server(real_airflow: RealAirflow) -> None:
    with pytest.raises(ApiError, match="no_such_dag") as refused:
        real_airflow.api.trigger("no_such_dag")
    assert refused.value.status == 404


def test_an_unreadable_file_shows_as_an_import_error(real_airflow: RealAirflow) -> None:
    broken = real_airflow.dags / "broken.py"
    broken.write_text(
        "import airflow  # a dag, says the word that Airflow looks for\nraise ValueError('what is wrong, in words')\n"
    )
    try:
        errors = wait_until(
            lambda: [error for error in real_airflow.api.import_errors() if error["filename"].endswith("broken.py")],
            timeout=60,
            why="the broken file is listed",
        )
        assert "what is wrong, in words" in errors[0]["stack_trace"]
    finally:
        broken.unlink()


def test_an_outage_of_the_scheduler_ends_its_workers_and_what_they_started(real_airflow: RealAirflow) -> None:
    (real_airflow.dags / "sleeper.py").write_text(SLEEPER)
    api, server = real_airflow.api, real_airflow.server
    wait_until(lambda: api.dag("sleeper"), timeout=60, why="the dropped file becomes a DAG")
    api.trigger("sleeper")

    def sleepers() -> list[psutil.Process]:
        marked = processes_marked(variable=MARK, value=str(server.home))
        return [process for process in marked if process.name() == "sleep"]

    asleep = wait_until(sleepers, timeout=90, why="the task's own child runs, in a session of its own")
    assert os.getsid(asleep[0].pid) == asleep[0].pid
    server.stop_component(Component.SCHEDULER)
    assert sleepers() == []
    server.start_component(Component.SCHEDULER)
    server.wait_until_healthy(timeout=90)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
@pytest.mark.parametrize("moment", ["at the first process", "at the last process"])
def test_an_interrupted_start_leaves_no_process(tmp_path: Path, number: int, moment: str) -> None:
    home = tmp_path / "home"
    program = (
        "import sys; from pathlib import Path; from local_airflow import LocalAirflow\n"
        "with LocalAirflow(home=Path(sys.argv[1]), dags=Path(sys.argv[1])): print('up', flush=True)"
    )
    parent = subprocess.Popen(
        deaf([sys.executable, "-c", program, str(home)]),
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "examples")])},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wanted = "api-server" if moment == "at the first process" else "triggerer"
        wait_until(lambda: (home / f"{wanted}.log").exists(), timeout=60, why=f"{wanted} starts", every=0.02)
        parent.send_signal(number)
        printed, _ = parent.communicate(timeout=60)
        assert printed == b""  # it was not up yet
        assert parent.returncode != 0
        assert processes_marked(variable=MARK, value=str(home)) == []
    finally:
        parent.kill()
        end_processes(processes_marked(variable=MARK, value=str(home)), grace=1)


def test_a_process_that_dies_early_ends_the_wait_with_its_last_words(tmp_path: Path) -> None:
    settings = {"AIRFLOW__CORE__EXECUTOR": "no.such.Executor"}
    server = LocalAirflow(home=tmp_path, dags=tmp_path, settings=settings)
    try:
        server.start_component(Component.SCHEDULER)
        with pytest.raises(AirflowNotRunning, match=r"airflow scheduler ended with code(?s:.)*no\.such"):
            server.wait_until_healthy([Component.SCHEDULER])
    finally:
        server.stop()


def test_secrets_differ_from_home_to_home_and_the_password_file_is_private(
    real_airflow: RealAirflow, tmp_path: Path
) -> None:
    one, other = real_airflow.server, LocalAirflow(home=tmp_path, dags=tmp_path)
    for name in ("AIRFLOW__API_AUTH__JWT_SECRET", "AIRFLOW__API__SECRET_KEY", "AIRFLOW__CORE__FERNET_KEY"):
        assert one.environment[name] != other.environment[name]
    assert (one.home / "passwords.json").stat().st_mode & 0o077 == 0
    assert USER in (one.home / "passwords.json").read_text()
