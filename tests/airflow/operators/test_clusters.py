"""What the services of Chronon's driver say of a job, read through the official providers' own hooks (C28)."""

from __future__ import annotations

import sys

import boto3
import pytest
from airflow.providers.amazon.aws.hooks.emr import EmrServerlessHook
from google.cloud.dataproc_v1 import JobStatus

from airflow_chronon.airflow.operators import clusters as module
from airflow_chronon.airflow.operators.clusters import Clusters, Dataproc, EmrServerless
from airflow_chronon.engine.remote import JobState
from airflow_chronon.engine.zipline import Cloud, Place
from airflow_chronon.errors import JobFailed, JobRefused
from tests.support.clouds import KEYS, REGION, FolderDataproc, stand_in_aws, stand_in_kyuubi

AWS = Place(Cloud.AWS, region=REGION, application="chronon-serverless-app")
GCP = Place(Cloud.GCP, project="shop", region="europe-west1")
TOKEN = "chronon-0a"


@pytest.fixture(autouse=True)
def no_client_of_before():
    module._emr_client.cache_clear()
    module._dataproc_hook.cache_clear()


@pytest.fixture
def dataproc(tmp_path, monkeypatch) -> FolderDataproc:
    service = FolderDataproc(tmp_path)
    monkeypatch.setenv("AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT", "google-cloud-platform://")
    client = "airflow.providers.google.cloud.hooks.dataproc.DataprocHook.get_job_client"
    monkeypatch.setattr(client, lambda hook, region: service)
    return service


@pytest.fixture(scope="module")
def moto():
    with stand_in_aws() as cloud:
        yield cloud


@pytest.fixture
def aws(moto, monkeypatch):
    for name, value in {**KEYS, "AWS_ENDPOINT_URL": moto.url}.items():
        monkeypatch.setenv(name, value)
    moto.runs.clear()
    return moto


def submitted(aws, name: str = TOKEN) -> str:
    """The id of a job that is there."""
    client = boto3.client("emr-serverless", region_name=REGION)
    role = "arn:aws:iam::123456789012:role/spark"
    run = client.start_job_run(applicationId=aws.application, executionRoleArn=role, name=name)
    return AWS.job_id(f"{aws.application}|{run['jobRunId']}")


class TestStates:
    def test_of_emr_serverless_are_known_every_one(self):
        real = boto3.client("emr-serverless", region_name=REGION).meta.service_model.shape_for("JobRunState").enum
        states = EmrServerless.states
        assert {*real} == {*states} >= EmrServerlessHook.JOB_INTERMEDIATE_STATES | EmrServerlessHook.JOB_TERMINAL_STATES
        assert {each for each in real if states[each] is JobState.SUCCEEDED} == EmrServerlessHook.JOB_SUCCESS_STATES
        # the hook counts CANCELLING among the failures: that job may still write
        failures = {each for each in real if states[each] is JobState.FAILED}
        assert failures == EmrServerlessHook.JOB_FAILURE_STATES - {"CANCELLING"}

    def test_of_dataproc_are_known_every_one_but_none(self):
        real = {each.name for each in JobStatus.State}
        assert {*Dataproc.states} == real - {"STATE_UNSPECIFIED"}
        ended = {each for each, state in Dataproc.states.items() if state.has_ended}
        assert ended == {"DONE", "ERROR", "CANCELLED"}  # those at which the hook's wait_for_job ends
        assert Dataproc.states["DONE"] is JobState.SUCCEEDED

    @pytest.mark.parametrize("state", list(JobStatus.State))
    def test_of_dataproc_are_read_as_its_client_gives_them(self, dataproc, state):
        (dataproc.folder / "dataproc-job").write_text(state.name)
        answer = Clusters().status(GCP.job_id("job"))
        assert (answer.state, answer.said) == (Dataproc.states.get(state.name, JobState.UNKNOWN), state.name)

    @pytest.mark.parametrize("state", EmrServerless.states)
    def test_of_emr_serverless_are_read_as_its_client_gives_them(self, aws, state):
        job_id = submitted(aws)
        aws.end(state)
        assert Clusters().status(job_id).state is EmrServerless.states[state]

    @pytest.mark.parametrize(
        ("state", "application", "expected"),
        [
            ("INITIALIZED", None, JobState.RUNNING),
            ("PENDING", "NOT_FOUND", JobState.RUNNING),
            ("RUNNING", "RUNNING", JobState.RUNNING),
            ("RUNNING", "FINISHED", JobState.RUNNING),
            ("COMPILED", "RUNNING", JobState.RUNNING),
            ("FINISHED", "FINISHED", JobState.SUCCEEDED),
            ("ERROR", "FAILED", JobState.FAILED),
            ("ERROR", None, JobState.FAILED),
            ("TIMEOUT", "KILLED", JobState.FAILED),
            ("CLOSED", "NOT_FOUND", JobState.FAILED),
            ("CANCELED", "KILLED", JobState.FAILED),
            ("CANCELED", "RUNNING", JobState.RUNNING),  # it was told to end, and has not
            ("ERROR", "UNKNOWN", JobState.UNKNOWN),
            ("ERROR", "ZOMBIE", JobState.UNKNOWN),
            ("UNKNOWN", None, JobState.UNKNOWN),
        ],
    )
    def test_of_kyuubi_count_when_the_application_is_gone(self, moto, monkeypatch, state, application, expected):
        with stand_in_kyuubi(moto) as kyuubi:
            monkeypatch.setenv("AIRFLOW_CONN_KYUUBI_DEFAULT", kyuubi.url)
            kyuubi.batches["b"] = {"id": "b", "state": state, "appState": application}
            assert Clusters().status("kyuubi/b").state is expected


class TestWhatCannotBeTold:
    def test_is_not_taken_for_gone(self, dataproc):
        dataproc.is_silent = True
        job_id = GCP.job_id(TOKEN)
        answer = Clusters().status(job_id)
        assert answer.state is JobState.UNKNOWN and "dataproc does not tell: ServiceUnavailable" in answer.said
        assert "ServiceUnavailable" in Clusters().cancel(job_id)
        with pytest.raises(JobFailed, match=f"whether there is a job {TOKEN} is not known: ServiceUnavailable"):
            Clusters().find(GCP, TOKEN)

    def test_is_a_job_that_is_not_found(self, dataproc, aws):
        # another project, region or account, perhaps
        assert Clusters().status(GCP.job_id("gone")).state is JobState.UNKNOWN
        assert Clusters().status(AWS.job_id(f"{aws.application}|gone")).state is JobState.UNKNOWN

    def test_is_an_id_of_another_kind(self):
        assert Clusters().status("job-1").state is JobState.UNKNOWN
        assert "no id of a job" in Clusters().cancel("job-1")

    def test_is_a_service_that_cannot_be_reached(self, monkeypatch):
        monkeypatch.setenv("AIRFLOW_CONN_KYUUBI_DEFAULT", "http://us:s3cret@127.0.0.1:9")
        answer = Clusters().status("kyuubi/b")
        assert answer.state is JobState.UNKNOWN and "s3cret" not in answer.said  # S4


class TestFinding:
    def test_is_by_the_name_that_the_driver_gave_the_job(self, dataproc, aws):
        (dataproc.folder / f"dataproc-{TOKEN}").write_text("RUNNING")
        submitted(aws, "chronon-other")
        job_id = submitted(aws)
        assert Clusters().find(GCP, TOKEN) == GCP.job_id(TOKEN)
        assert Clusters().find(AWS, TOKEN) == job_id
        assert Clusters().find(GCP, "chronon-0b") is Clusters().find(AWS, "chronon-0b") is None

    def test_takes_no_job_without_a_name_for_another_one(self, aws):
        # a jar of before the driver handed on a name: the job may be ours
        submitted(aws, "chronon-job-1780000000000")
        with pytest.raises(JobFailed, match=r"no job has this name, yet .* have none and may be it"):
            Clusters().find(AWS, TOKEN)
        aws.end("SUCCESS")
        assert Clusters().find(AWS, TOKEN) is None

    def test_looks_through_more_jobs_than_a_page_holds(self, aws, monkeypatch):
        for number in range(3):
            submitted(aws, f"chronon-{number}")
        assert Clusters().find(AWS, "chronon-2")


class TestCancelling:
    def test_asks_the_service(self, dataproc, aws, monkeypatch):
        (dataproc.folder / f"dataproc-{TOKEN}").write_text("RUNNING")
        job_id = submitted(aws)
        assert Clusters().cancel(GCP.job_id(TOKEN)) == Clusters().cancel(job_id) == ""
        assert (dataproc.cancelled, aws.jobs) == ([TOKEN], ["CANCELLED"])
        with stand_in_kyuubi(aws) as kyuubi:
            monkeypatch.setenv("AIRFLOW_CONN_KYUUBI_DEFAULT", kyuubi.url.replace("://", "://us:pw@"))
            kyuubi.batches["b"] = {"id": "b", "state": "RUNNING", "appState": "RUNNING"}
            assert Clusters().cancel("kyuubi/b") == ""
            assert Clusters().status("kyuubi/b").state is JobState.RUNNING
            assert kyuubi.asked_by == ["Basic dXM6cHc="] * 2


class TestBeforeASubmission:
    def test_the_service_is_asked_whether_it_answers(self, dataproc, aws):
        Clusters().check(GCP)
        Clusters().check(AWS)
        dataproc.is_silent = True
        with pytest.raises(JobFailed, match="could not be asked after, so none is submitted: Service") as failed:
            Clusters().check(GCP)
        assert not isinstance(failed.value, JobRefused)  # the next try may reach it

    def test_an_application_that_is_not_there_is_named(self, aws):
        with pytest.raises(JobFailed, match="there is no application 'other' in eu-west-1"):
            Clusters().check(Place(Cloud.AWS, region=REGION, application="other"))

    @pytest.mark.parametrize("place", [GCP, Place(Cloud.AZURE)])
    def test_a_connection_that_is_not_there_is_named(self, monkeypatch, place):
        with pytest.raises(JobRefused, match="See the Airflow connection 'nowhere'"):
            Clusters("nowhere", conf="join/t.x").check(place)

    @pytest.mark.parametrize(
        ("place", "provider", "extra"),
        [
            (AWS, "airflow.providers.amazon.aws.hooks.emr", "amazon"),
            (GCP, "airflow.providers.google.cloud.hooks.dataproc", "google"),
        ],
    )
    def test_a_provider_that_is_not_installed_is_named_with_its_extra(self, monkeypatch, place, provider, extra):
        monkeypatch.setitem(sys.modules, provider, None)
        says = (
            rf"needs the package 'apache-airflow-providers-{extra}', .* Run: pip install 'airflow-chronon\[{extra}\]'"
        )
        with pytest.raises(JobRefused, match=says):
            Clusters(conf="join/t.x").check(place)


def test_clients_are_used_again_for_a_while(aws, clock):
    job_id = submitted(aws)
    for instant in (0, 599, 600, 601):
        clock.instant = instant
        Clusters().status(job_id)
    assert module._emr_client.cache_info().misses == 2
