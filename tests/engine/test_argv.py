"""The argument list of a command; the real driver of zipline-ai parses what is built for it."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from airflow_chronon.core.confs.documents import Dialect
from airflow_chronon.engine.argv import JobStart, build_argv, check_template, job_argv
from airflow_chronon.errors import JobRefused, Rejected
from tests.support.zipline_driver import parsed_by_driver

#: Every mode that a kind of conf has (C11), and the window options that its driver takes.
MODES = [
    ("staging_query", "backfill", ["start_ds", "end_ds"]),
    ("group_by", "backfill", ["start_ds", "end_ds"]),
    ("group_by", "upload", ["ds"]),
    ("group_by", "upload_to_kv", ["ds"]),
    ("join", "backfill", ["start_ds", "end_ds"]),
    ("join", "metadata_upload", []),
]


@pytest.mark.parametrize("window", ["2026-06-01", None], ids=["window", "no window"])
def test_the_real_driver_parses_what_is_built_for_every_conf_type_and_mode(make_job, compiler, window):
    folders = {"staging_query": "staging_queries", "group_by": "group_bys", "join": "joins"}
    jobs = [
        make_job(
            conf_type=kind, mode=mode, start=window, end="2026-06-04", path=f"compiled/{folders[kind]}/team/{mode}.x__1"
        )
        for kind, mode, _ in MODES
    ]
    parsed = parsed_by_driver([build_argv(job, template=None) for job in jobs], compiler=compiler)
    values = {"start_ds": "2026-06-01", "end_ds": "2026-06-03", "ds": "2026-06-03"}
    for job, answer, (_, mode, options) in zip(jobs, parsed, MODES, strict=True):
        assert answer["conf"] == os.path.abspath(job.path)
        assert answer["mode"] == mode.replace("_", "-")
        assert answer["route"], f"the driver has no {mode} for {job.conf_type}"
        assert answer["extra"] == []
        expected = {key: values[key] if window and key in options else None for key in values}
        assert {key: answer[key] for key in values} == expected


class TestTheOlderDialect:
    """Its driver's options, as ``run.py`` of chronon-ai 0.0.115 reads them (D6)."""

    @pytest.mark.parametrize(
        ("kind", "mode", "window"),
        [
            ("group_by", "backfill", ["--start-ds", "2026-06-01", "--end-ds", "2026-06-03"]),
            ("group_by", "upload", ["--ds", "2026-06-03"]),
            ("join", "metadata_upload", []),
        ],
    )
    def test_run_py_gets_the_conf_its_repository_and_the_days(self, make_job, kind, mode, window):
        path = f"/repo/production/{kind}s/team/x.v1"
        job = make_job(conf_type=kind, mode=mode, start="2026-06-01", end="2026-06-04", path=path)
        argv = build_argv(replace(job, dialect=Dialect.OLDER), template=None)
        own = ["--mode", mode.replace("_", "-"), "--conf", path, "--repo", "/repo", "--env", "production"]
        assert argv == ["run.py", *own, *window]

    def test_a_template_of_the_settings_goes_before_it(self, make_job):
        job = replace(make_job(), dialect=Dialect.OLDER)
        assert build_argv(job, template=["zipline", "run", "{mode}"]) == ["zipline", "run", "backfill"]

    def test_what_it_cannot_do_is_refused(self, make_job):
        job = replace(make_job(conf_type="group_by", mode="upload_to_kv"), dialect=Dialect.OLDER)
        with pytest.raises(JobRefused, match=r"loads no key-value store .* Name the command that does it"):
            build_argv(job, template=None)


class TestTemplates:
    def test_placeholders_are_filled_inside_single_arguments(self, make_job):
        template = [
            "run.py",
            "--conf={conf_path}",
            "{mode}",
            "{start_ds}..{end_ds}",
            "{partition}",
            "{table} {name} {conf_type}",
        ]
        job = make_job(end="2026-06-03", mode="upload_to_kv", path="/c/p")
        assert build_argv(job, template=template) == [
            "run.py",
            "--conf=/c/p",
            "upload-to-kv",
            "2026-06-01..2026-06-02",
            "2026-06-02",
            "out.orders team.orders.daily__1 staging_query",
        ]

    def test_doubled_braces_are_braces(self, make_job):
        assert build_argv(make_job(), template=["{{}}", "{{mode}}"]) == ["{}", "{mode}"]

    def test_without_a_window_its_options_are_left_out(self, make_job):  # H7
        template = ["x", "--start", "{start_ds}", "--end={end_ds}", "--verbose", "day-{partition}", "-m", "{mode}"]
        assert build_argv(make_job(start=None), template=template) == ["x", "--verbose", "-m", "backfill"]

    @pytest.mark.parametrize(
        "argument", ["{ds}", "{}", "{0}", "{name.__class__}", "{name!r}", "{name:>9}", "{mode", "}"]
    )
    def test_any_other_placeholder_is_refused(self, argument):
        with pytest.raises(Rejected, match=r"runner.argv\[1\]: "):
            check_template(["x", argument], field="runner.argv")

    def test_a_mode_that_the_driver_does_not_know_is_refused(self, make_job):
        with pytest.raises(
            JobRefused, match=r"has no mode 'streaming' .*backfill, upload, upload_to_kv, metadata_upload|no mode"
        ):
            build_argv(make_job(mode="streaming"), template=None)


DATE = "2026-06-01T09:00:00Z"


def started(*template: str) -> list[str]:
    """What is appended to a command that wants the legacy argument."""
    start = JobStart("etl.hourly__1", "jobs/etl/hourly.yaml", "run", DATE)
    return job_argv(template, start, legacy_start_time=True)[len(template) :]


@pytest.mark.parametrize(
    "command",
    [
        "papermill in.ipynb out.ipynb",
        "/opt/venv/bin/papermill in.ipynb",
        "python3 -m papermill in.ipynb",
        "python3 -mpapermill in.ipynb",
        "uv run papermill in.ipynb",
        "conda run -n reports papermill in.ipynb",
        "/usr/bin/env papermill in.ipynb",
    ],
)
def test_papermill_gets_a_parameter_however_it_is_started(command: str) -> None:  # H6
    assert started(*command.split()) == ["-p", "start_time", DATE]


@pytest.mark.parametrize("command", ["python3 job.py", "python3 -m reports papermill.ipynb", "uv run papermills"])
def test_any_other_program_gets_the_option(command: str) -> None:  # H6
    assert started(*command.split()) == ["-start_time", DATE]
