"""Tasks of the zipline runner: the real driver submits to stand-in clouds, and there is one job per partition (C28)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from airflow_chronon.airflow.operators import clusters
from airflow_chronon.airflow.operators.remote import KEY as RECORD
from tests.support.clouds import (
    KEYS,
    FolderDataproc,
    StandInAws,
    StandInCloud,
    stand_in_aws,
    stand_in_kyuubi,
    stand_in_storage,
)
from tests.support.conf_roots import ConfRootOnDisk
from tests.support.remote_tasks import Task, fire, until
from tests.support.schedules import at
from tests.support.zipline_driver import StandInJvm


@dataclass
class Lab:
    """A conf whose jobs the driver submits to a stand-in cloud."""

    root: ConfRootOnDisk
    jvm: StandInJvm
    cloud: Any
    provider: str
    program: str

    def task(self, *, program: str = "", env: Mapping[str, str] | None = None, **more: object) -> Task:
        """The task, with a runner of these settings."""
        given = {"PATH": self.jvm.path, "CLOUD_PROVIDER": self.provider, **self.cloud.variables, **(env or {})}
        runner = {
            "kind": "zipline",
            "program": program or self.program,
            "arguments": ["--version", "1.28.0"],
            "env": given,
            "cwd": str(self.root.path),
            "grace_seconds": 0.5,
            **more,
        }
        catalog = f"{{kind: filesystem, root: {self.root.path.parent}/warehouse}}"
        self.root.settings(f"catalog: {catalog}\nrunner: {json.dumps(runner)}\n")
        return Task(self.root)


@pytest.fixture(scope="module")
def moto() -> Iterator[StandInAws]:
    with stand_in_aws() as cloud:
        yield cloud


@pytest.fixture(scope="module")
def storage() -> Iterator[str]:
    with stand_in_storage() as url:
        yield url


@pytest.fixture
def lab_in(
    tmp_path: Path, compiler: Path, moto: StandInAws, storage: str, clock, monkeypatch, quick_waits
) -> Iterator[Callable[[str], Lab]]:
    """Makes the lab of a cloud."""
    clock.instant = at("2026-06-10T00:00:00Z")
    monkeypatch.setattr("airflow_chronon.airflow.operators.remote.SETTLING_SECONDS", 0)
    clusters._emr_client.cache_clear()
    clusters._dataproc_hook.cache_clear()
    moto.runs.clear()
    jvm = StandInJvm.in_folder(tmp_path / "jvm", compiler=compiler)
    root = ConfRootOnDisk(tmp_path / "chronon")
    root.staging_query("orders.daily")
    dataproc = FolderDataproc(jvm.folder, storage)
    client = "airflow.providers.google.cloud.hooks.dataproc.DataprocHook.get_job_client"
    monkeypatch.setattr(client, lambda hook, region: dataproc)
    monkeypatch.setenv("AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT", "google-cloud-platform://")
    aws = {"conn_type": "aws", "login": KEYS["AWS_ACCESS_KEY_ID"], "password": KEYS["AWS_SECRET_ACCESS_KEY"]}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", json.dumps(aws | {"extra": {"endpoint_url": moto.url}}))
    with stand_in_kyuubi(moto) as kyuubi:
        monkeypatch.setenv("AIRFLOW_CONN_KYUUBI_DEFAULT", kyuubi.url)
        all_of_them: dict[str, StandInCloud] = {"aws": moto, "gcp": dataproc, "azure": kyuubi}
        program = str(compiler / "bin/zipline")
        yield lambda provider: Lab(root, jvm, all_of_them[provider], provider, program)


ENDS_WELL = {"aws": "SUCCESS", "gcp": "DONE", "azure": "FINISHED"}


class TestTheRealDriver:
    @pytest.mark.parametrize("provider", ENDS_WELL)
    def test_submits_one_job_that_is_waited_for_without_a_worker(self, lab_in, provider):
        lab = lab_in(provider)
        # the submitter on Azure asks for a version that the driver does not hand on
        of_azure = {"arguments": ["--version", "1.28.0", "--zipline-version=1.28.0"]} if provider == "azure" else {}
        work = lab.task(**of_azure)
        trigger = work.defers()
        work.is_tried_again()
        assert work.defers().job["id"] == trigger.job["id"]
        lab.cloud.end(ENDS_WELL[provider])
        work.begins(fire(trigger))
        assert lab.cloud.jobs == [ENDS_WELL[provider]]
        ((*_, submitter), *_) = [call[:3] for call in lab.jvm.calls]
        assert submitter.endswith("Submitter") and len(lab.jvm.calls) == 1
        assert {"--end-date=2026-06-01", "--start-partition=2026-06-01"} <= {*lab.jvm.calls[0]}

    @pytest.mark.parametrize("provider", ["aws", "gcp"])
    def test_that_is_killed_before_it_prints_the_id_leaves_a_job_that_the_next_try_finds(self, lab_in, provider):
        lab = lab_in(provider)
        work = lab.task()
        lab.jvm.hold("accepted")
        is_killed(work, when=lambda: lab.jvm.is_held)
        assert work.state[RECORD]["job_id"] is None
        lab.jvm.let_go("accepted")
        work.is_tried_again()
        trigger = work.defers()
        lab.cloud.end(ENDS_WELL[provider])
        work.begins(fire(trigger))
        assert lab.cloud.jobs == [ENDS_WELL[provider]]
        assert len(lab.jvm.calls) == 1

    def test_that_fails_before_it_submits_may_be_tried_again(self, lab_in):
        lab = lab_in("gcp")
        work = lab.task()
        lab.jvm.hold("fails")
        with pytest.raises(AirflowException, match="ended with exit code 1") as failed:
            work.begins()
        assert not isinstance(failed.value, AirflowFailException)
        lab.jvm.let_go("fails")
        work.is_tried_again()
        work.defers()
        assert lab.cloud.jobs == ["RUNNING"]


def is_killed(work: Task, *, when: Callable[[], bool]) -> None:
    """The worker of a task is lost while the driver is under way."""

    def kill() -> None:
        until(when)
        work.operator._stop()

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(AirflowException):
        work.begins()
    killer.join()


class TestATask:
    @pytest.fixture
    def lab(self, lab_in) -> Lab:
        """Dataproc, with a driver that does not take as long."""
        lab: Lab = lab_in("gcp")
        lab.program = lab.jvm.quick_driver
        lab.cloud.url = ""
        return lab

    @pytest.fixture
    def work(self, lab) -> Task:
        return lab.task(env={"SUBMITTER": "DataprocSubmitter"})

    def test_is_told_where_its_job_is(self, work, caplog):
        trigger = work.defers()
        assert trigger.job["id"].startswith("dataproc/shop/europe-west1/chronon-")
        assert work.state[RECORD]["job_id"] == trigger.job["id"]

    def test_keeps_no_variable_of_the_runner_in_the_database(self, lab, monkeypatch):  # S4
        monkeypatch.setenv("TOKEN", "s3cret-of-the-store")
        work = lab.task(env={"SUBMITTER": "DataprocSubmitter", "STORE": "${TOKEN}"})
        assert "s3cret" not in json.dumps(work.defers().serialize())

    def test_killed_before_the_service_has_the_job_submits_it_in_the_next_try(self, lab, work):
        lab.jvm.hold("before")
        is_killed(work, when=lambda: lab.jvm.is_held)
        assert lab.cloud.jobs == []
        lab.jvm.let_go("before")
        work.is_tried_again()
        work.defers()
        assert lab.cloud.jobs == ["RUNNING"]

    def test_killed_after_the_id_is_printed_waits_for_that_job(self, lab, work):
        lab.jvm.hold("printed")
        is_killed(work, when=lambda: lab.jvm.is_held and bool(work.state.get(RECORD, {}).get("job_id")))
        lab.jvm.let_go("printed")
        work.is_tried_again()
        work.defers()
        assert (lab.cloud.jobs, len(lab.jvm.calls)) == (["RUNNING"], 1)

    def test_of_a_failed_job_submits_another_one_in_the_next_try(self, lab, work):
        trigger = work.defers()
        lab.cloud.end("ERROR")
        with pytest.raises(AirflowException, match="has ended: ERROR"):
            work.begins(fire(trigger))
        work.is_tried_again()
        work.defers()
        assert lab.cloud.jobs == ["ERROR", "RUNNING"]

    def test_cleared_waits_for_the_end_of_its_job_before_it_submits_anew(self, lab, work):
        work.defers()
        work.is_cleared()
        trigger = work.defers()
        assert lab.cloud.jobs == ["CANCEL_PENDING"]
        lab.cloud.end("CANCELLED")
        work.defers(fire(trigger))
        assert lab.cloud.jobs == ["CANCELLED", "RUNNING"]

    def test_stopped_cancels_its_job(self, lab, work):
        work.defers()
        work.operator.on_kill()
        assert lab.cloud.jobs == ["CANCEL_PENDING"]

    def test_whose_service_is_silent_goes_on_waiting(self, lab, work):
        work.defers()
        lab.cloud.is_silent = True
        work.is_tried_again()
        trigger = work.defers()
        lab.cloud.is_silent = False
        lab.cloud.end("DONE")
        work.begins(fire(trigger))
        assert lab.cloud.jobs == ["DONE"]

    def test_whose_service_cannot_be_asked_submits_nothing(self, lab, work):
        lab.cloud.is_silent = True
        with pytest.raises(AirflowException, match="could not be asked after, so none is submitted") as failed:
            work.begins()
        assert not isinstance(failed.value, AirflowFailException)
        assert (lab.jvm.calls, work.state) == ([], {})

    def test_without_the_connection_fails_for_good_and_names_it(self, lab):
        work = lab.task(env={"SUBMITTER": "DataprocSubmitter"}, connection="dataproc_of_shop")
        with pytest.raises(AirflowFailException, match="See the Airflow connection 'dataproc_of_shop'"):
            work.begins()
        assert (lab.jvm.calls, work.state) == ([], {})

    def test_without_a_cloud_fails_for_good(self, lab):
        work = lab.task(env={"CLOUD_PROVIDER": ""})
        with pytest.raises(AirflowFailException, match="the driver is told of no cloud to submit to"):
            work.begins()
        assert (lab.jvm.calls, work.state) == ([], {})

    def test_where_a_job_cannot_be_found_names_it_and_submits_nothing(self, lab_in):
        lab = lab_in("azure")
        work = lab.task(program=lab.jvm.quick_driver, env={"SUBMITTER": "KyuubiSubmitter"})
        lab.jvm.hold("accepted")
        is_killed(work, when=lambda: lab.jvm.is_held)
        work.is_tried_again()
        with pytest.raises(AirflowFailException, match="Look for a job of backfill of staging_query") as told:
            work.begins()
        assert "find set" not in str(told.value)  # a key of other runners
        assert lab.cloud.jobs == ["RUNNING"]
