"""Chronon's own driver, told to submit and return: its arguments, where it submits, and the ids that it prints."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import pytest

from airflow_chronon.engine.build import build_runner, jobs_elsewhere
from airflow_chronon.engine.zipline import PRINTED_ID, Cloud, Place, ZiplineRunner, driver_variables, parts_of, place_of
from airflow_chronon.errors import JobRefused, Rejected
from tests.support.zipline_driver import parsed_by_driver

TOKEN = "chronon-0123456789abcdef0123456789abcdef"
#: Every mode that a kind of conf has (C11), and the window options that its driver takes.
MODES = [
    ("staging_queries", "staging_query", "backfill", {"start_ds": "2026-06-01", "end_ds": "2026-06-03"}),
    ("group_bys", "group_by", "backfill", {"start_ds": "2026-06-01", "end_ds": "2026-06-03"}),
    ("group_bys", "group_by", "upload", {"ds": "2026-06-03"}),
    ("group_bys", "group_by", "upload_to_kv", {"ds": "2026-06-03"}),
    ("joins", "join", "backfill", {"start_ds": "2026-06-01", "end_ds": "2026-06-03"}),
    ("joins", "join", "metadata_upload", {}),
]
LINES = {
    "Job submitted with ID: 00fabc|00grun": "00fabc|00grun",
    "INFO ... Dataproc submitter job id: chronon-0a": "chronon-0a",
    "26/06/10 INFO KyuubiSubmitter: Kyuubi batch job submitted. ID: 0b-1c": "0b-1c",
}
OTHERS = [
    "Job submitted with ID: flink:space:deployment",  # the driver takes no such answer for a batch
    "DATAPROC_SUBMITTER_ID_STR",
    "Submitting Dataproc job with ID: chronon-0a",  # it is about to
    "KyuubiSubmitter job id",
    "Job submitted with ID:",
]


def runner_of(**more: object) -> ZiplineRunner:
    runner = build_runner({"kind": "zipline", **more})
    assert isinstance(runner, ZiplineRunner)
    return runner


class TestTheCommand:
    @pytest.mark.parametrize("window", ["2026-06-01", None], ids=["window", "no window"])
    def test_of_every_conf_type_and_mode_is_parsed_by_the_real_driver(self, make_job, compiler, window):  # C11
        runner = runner_of(arguments=["--version", "1.28.0", "--env=prod", "--uploader", "spark"])
        jobs = [
            make_job(conf_type=kind, mode=mode, start=window, end="2026-06-04", path=f"compiled/{folder}/team/x__1")
            for folder, kind, mode, _ in MODES
        ]
        argvs = [runner.command_of(replace(job, token=TOKEN)).argv for job in jobs]
        for job, answer, (*_, mode, options) in zip(
            jobs, parsed_by_driver(argvs, compiler=compiler), MODES, strict=True
        ):
            assert (answer["conf"], answer["mode"]) == (os.path.abspath(job.path), mode.replace("_", "-"))
            assert answer["route"], f"the driver has no {mode} for {job.conf_type}"
            # it returns when it has submitted, and hands the token on
            assert (answer["no_cloud_logging"], answer["extra"]) == (True, [f"--job-id={TOKEN}"])
            assert (answer["version"], answer["env"], answer["uploader"]) == ("1.28.0", "prod", "spark")
            assert (answer["parallelism"], answer["sub_help"]) == (None, False)
            asked = {name: answer[name] for name in ("ds", "start_ds", "end_ds") if answer[name] is not None}
            assert asked == (options if window else {})

    def test_is_of_the_program_that_is_set(self, make_job):
        assert runner_of(program="/opt/chronon/bin/zipline").command_of(make_job()).argv[:2] == [
            "/opt/chronon/bin/zipline",
            "run",
        ]

    def test_is_shown_as_it_is_written(self, make_job):  # S4
        section = {"kind": "zipline", "arguments": ["--online-args=${SECRET}", "{table}"]}
        command = build_runner(section, {"SECRET": "{s3cret}"}).command_of(make_job())
        assert command.argv[-2:] == ["--online-args={s3cret}", "out.orders"]
        assert command.shown[-2:] == ["--online-args=${SECRET}", "out.orders"]

    def test_does_not_see_what_is_airflows_own(self, monkeypatch):  # S5
        monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", "x")
        monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", "y")
        seen = runner_of(pass_env=["AIRFLOW_CONN_WAREHOUSE"], env={"AWS_REGION": "eu-west-1"}).environment_of({})
        assert (seen["AIRFLOW_CONN_WAREHOUSE"], seen["AWS_REGION"]) == ("x", "eu-west-1")
        assert "AIRFLOW__CORE__FERNET_KEY" not in seen

    def test_takes_nothing_from_a_conf_that_decides_how_it_is_loaded(self, make_job, monkeypatch):  # S5, S6
        monkeypatch.setenv("JAVA_HOME", "/opt/java")
        env = {
            "JAVA_TOOL_OPTIONS": "-javaagent:x.jar",
            "JAVA_HOME": "/tmp/x",
            "SPARK_CLUSTER_NAME": "mine",
            "TEAM": "t",
        }
        job = make_job(metaData=conf(common=env)["metaData"], environment={"LD_PRELOAD": "given"})
        # the driver takes from a conf what its environment does not have
        for runner in (runner_of(), build_runner({"kind": "command"})):
            assert runner.command_of(job).environment == {"JAVA_TOOL_OPTIONS": "", "LD_PRELOAD": "given"}


class TestTheSettings:
    def test_of_a_job_elsewhere_follow_it(self):
        assert jobs_elsewhere({"kind": "zipline"}, {}).pattern == PRINTED_ID

    @pytest.mark.parametrize(
        ("more", "says"),
        [
            ({"arguments": ["--mode", "upload"]}, "'--mode' is not for the settings to say"),
            ({"arguments": ["--parallelism=3"]}, "'--parallelism=3' is not for the settings to say"),
            ({"arguments": ["--ds", "{partition}"]}, "'--ds' is not for the settings to say"),
            ({"arguments": ["--job-id=mine"]}, "'--job-id=mine' is not for the settings to say"),
            ({"arguments": "--version 1"}, r'is not a list of arguments .* Write \["--version", "1.28.0"\]'),
            ({"arguments": ["{job_id}"]}, "the placeholder {job_id} of '{job_id}' is not known"),
            ({"program": ""}, "'' is not a program"),
            ({"connection": 3}, "3 is not a connection"),
            ({"argv": ["x"]}, "unknown key 'argv'.*Allowed are arguments, connection"),
        ],
    )
    def test_that_are_wrong_are_refused(self, more, says):
        with pytest.raises(Rejected, match=f"runner.*{says}"):
            build_runner({"kind": "zipline", **more})


class TestAnId:
    @pytest.mark.parametrize(("line", "printed"), LINES.items())
    def test_is_read_from_the_line_of_each_submitter(self, line, printed):
        assert re.search(PRINTED_ID, line)[1] == printed

    @pytest.mark.parametrize("line", OTHERS)
    def test_is_in_no_other_line(self, line):
        assert re.search(PRINTED_ID, line) is None

    @pytest.mark.parametrize(
        ("place", "printed", "whole"),
        [
            (Place(Cloud.AWS, region="eu-west-1"), "00fabc|00grun", "emr-serverless/eu-west-1/00fabc/00grun"),
            (Place(Cloud.GCP, project="shop", region="europe-west1"), "chronon-0a", "dataproc/shop/europe-west1/chronon-0a"),
            (Place(Cloud.AZURE), "0b-1c", "kyuubi/0b-1c"),
        ],
    )  # fmt: skip
    def test_says_where_its_job_is(self, place, printed, whole):
        assert place.job_id(printed) == whole
        assert parts_of(whole) == (place.cloud, tuple(whole.split("/")[1:]))

    @pytest.mark.parametrize("text", ["", "job-1", "kyuubi/", "dataproc/shop/europe-west1", "emr/a/b/c"])
    def test_of_another_kind_is_none(self, text):
        assert parts_of(text) is None


def conf(**env: object) -> dict[str, object]:
    return {"metaData": {"name": "t.x", "executionInfo": {"env": env}}}


class TestThePlace:
    def place(self, document: dict[str, object], mode: str = "backfill", **environment: str) -> Place:
        return place_of(driver_variables(document, mode=mode, environment=environment), conf="join/t.x")

    def test_is_that_of_the_team_unless_the_environment_says_otherwise(self):
        of_team = conf(common={"CLOUD_PROVIDER": "gcp", "GCP_PROJECT_ID": "shop", "GCP_REGION": "europe-west1"})
        assert self.place(of_team) == Place(Cloud.GCP, project="shop", region="europe-west1")
        assert self.place(of_team, GCP_REGION="us-east1").region == "us-east1"

    def test_of_a_mode_is_its_own(self):
        of_team = conf(
            common={"CLOUD_PROVIDER": "aws", "AWS_REGION": "eu-west-1"},
            modeEnvironments={"upload-to-kv": {"CLOUD_PROVIDER": "AWS", "AWS_REGION": "eu-central-1"}},
        )
        assert self.place(of_team, "upload-to-kv").region == "eu-central-1"
        assert self.place(of_team, "backfill").region == "eu-west-1"

    def test_in_aws_is_where_the_submitter_looks(self):
        assert self.place({}, CLOUD_PROVIDER="aws") == Place(
            Cloud.AWS, region="us-west-2", application="chronon-serverless-app"
        )
        named = self.place({}, CLOUD_PROVIDER="aws", AWS_DEFAULT_REGION="eu-west-1", SPARK_CLUSTER_NAME="mine")
        assert (named.region, named.application) == ("eu-west-1", "mine")

    def test_in_azure_is_what_the_connection_says(self):
        assert self.place({}, CLOUD_PROVIDER="azure") == Place(Cloud.AZURE)

    @pytest.mark.parametrize(
        ("environment", "says"),
        [
            ({}, r"the driver is told of no cloud to submit to \(runner\). Set CLOUD_PROVIDER to aws, gcp or azure"),
            ({"CLOUD_PROVIDER": "oci"}, "CLOUD_PROVIDER is 'oci', which is no cloud of the driver"),
            ({"CLOUD_PROVIDER": "gcp", "GCP_REGION": "x"}, "GCP_PROJECT_ID of the driver is not set"),
            ({"CLOUD_PROVIDER": "gcp"}, "GCP_PROJECT_ID and GCP_REGION of the driver are not set"),
        ],
    )
    def test_that_is_none_is_refused_before_anything_is_submitted(self, environment, says):
        with pytest.raises(JobRefused, match=f"join/t.x: env: {says}"):
            self.place({}, **environment)
