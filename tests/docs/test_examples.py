"""The examples of the documentation, run: what a page shows is what the commands print."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization

from airflow_chronon.cli.main import main, parser
from airflow_chronon.core.calendar.instants import TimeWindow, parse_instant
from airflow_chronon.core.settings.environment import job_environment
from airflow_chronon.core.settings.yaml import read_settings
from airflow_chronon.engine.argv import JobStart, job_argv
from tests.support.checkout import ROOT
from tests.support.jobs import plan_of

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
_BLOCK = re.compile(r"^```(?P<language>console|yaml|python|sh)\n(?P<text>.*?)^```$", re.S | re.M)
_LINK = re.compile(r"\]\((?!https?:|#)(?P<target>[^)#]+)\)")


def _blocks(language: str) -> list[Any]:
    found = []
    for page in PAGES:
        for number, match in enumerate(_BLOCK.finditer(page.read_text())):
            if match["language"] == language:
                found.append(pytest.param(match["text"], id=f"{page.name}-{number}"))
    return found


@pytest.mark.parametrize("text", _blocks("console"))
def test_a_command_prints_what_its_page_shows(
    text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    command, _, shown = text.partition("\n")
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "airflow-chronon"
    assert main(arguments) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        line.split() for line in shown.splitlines()
    ]


@pytest.mark.parametrize("text", [block for block in _blocks("yaml") if "default_branch:" in block.values[0]])
def test_a_page_s_settings_are_good_settings(text: str) -> None:
    assert read_settings(text).overrides


@pytest.mark.parametrize("text", [block for block in _blocks("yaml") if "cron_expression:" in block.values[0]])
def test_a_page_s_job_file_is_a_good_job(text: str) -> None:
    assert plan_of(text).warnings == ()


@pytest.mark.parametrize("text", [block for block in _blocks("python") if "airflow_chronon." in block.values[0]])
def test_a_page_s_python_runs(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples" / "hopsworks", tmp_path / "root")
    monkeypatch.setenv("AIRFLOW__CHRONON__CONF_ROOT", str(tmp_path / "root"))
    exec(compile(text, "the page", "exec"), {"__file__": str(tmp_path / "loader.py")})


def _lines(language: str, page: str = "") -> list[Any]:
    """Every command of this package in the blocks of a language, in those of one page perhaps."""
    return [
        pytest.param(line, id=f"{block.id}-{line[16:60]}")
        for block in _blocks(language)
        if block.id.startswith(page)
        for line in block.values[0].splitlines()
        if line.startswith("airflow-chronon ")
    ]


@pytest.mark.parametrize("line", _lines("sh"))
def test_a_command_of_a_page_is_one(line: str) -> None:
    assert parser().parse_args(shlex.split(line.partition(" > ")[0], comments=True)[1:])


def test_what_replaces_airflow_dags_backfill_is_one_table_of_commands_that_are_there() -> None:
    text = (ROOT / "docs" / "replays.md").read_text().partition("### In the words of `airflow dags backfill`")[2]
    rows = [line.split("|")[1:3] for line in text.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    assert len(rows) == 7
    for old, today in rows:
        if "airflow tasks clear" in today or "nothing" in today:
            continue
        said = today.partition("`")[2].partition("`")[0]
        command = said if said.startswith("airflow-chronon") else f"airflow-chronon backfill CONF --start-ds A {said}"
        assert parser().parse_args(shlex.split(command)[1:]), old
    others = "\n".join(page.read_text() for page in PAGES if page.name != "replays.md")
    assert "--reset-dagruns" not in others  # it stands in one place


@pytest.fixture(scope="module")
def feature_repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repo as the tutorial lays it out, cloned from where it is shared."""
    folder = tmp_path_factory.mktemp("tutorial")
    origin, clone = folder / "origin", folder / "features"
    shutil.copytree(ROOT / "dags", origin / "dags", ignore=shutil.ignore_patterns("__pycache__"))
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], [*identity, "commit", "-qm", "confs"]):
        subprocess.run(["git", *command], cwd=origin, check=True)
    subprocess.run(["git", "clone", "-q", str(origin), str(clone)], check=True)
    return clone


@pytest.mark.parametrize(
    "line",
    [each for each in _lines("sh", "tutorial.md") if each.values[0].split()[1] in ("check", "explain")],
)
def test_the_tutorial_s_commands_that_need_no_airflow_work(
    line: str, feature_repo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(feature_repo)
    assert main(shlex.split(line)[1:]) == 0
    assert capsys.readouterr().out


def test_what_reviewers_ask_in_the_tutorial_names_what_differs(
    feature_repo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(feature_repo)
    command = "airflow-chronon plan --root dags/chronon --base origin/main"
    assert command in (ROOT / "docs" / "tutorial.md").read_text()
    gone = feature_repo / "dags/chronon/compiled/staging_queries/growth/visits.weekly__1"
    text = gone.read_text()
    gone.unlink()
    try:
        assert main(command.split()[1:]) == 0
    finally:
        gone.write_text(text)
    assert "staging_query.growth.visits.weekly__1" in capsys.readouterr().out


def test_the_first_job_of_the_page_prints_what_the_page_says() -> None:
    page = (ROOT / "docs" / "jobs.md").read_text()
    text = next(block.values[0] for block in _blocks("yaml") if "cron_expression:" in block.values[0])
    assert text in page
    runner = plan_of(text).settings.runner.model_dump()
    window = TimeWindow(parse_instant("2026-06-01T09:00:00Z"), parse_instant("2026-06-01T10:00:00Z"))
    environ = job_environment(conf="a", mode="run", run_id="r", window=window, own={"REGION": "eu"})
    command = job_argv(runner["argv"], JobStart("etl.a", "a.yaml", "run", None), legacy_start_time=False)
    done = subprocess.run(
        command, env={"PATH": os.environ["PATH"], **environ}, capture_output=True, text=True, check=True
    )
    assert f"`{done.stdout.strip()}`" in page


def _loaded(holding: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """What a loader file of the page on alerting leaves in its globals, beside the sample shop."""
    (text,) = (block.values[0] for block in _blocks("python") if holding in block.values[0])
    monkeypatch.setenv("AIRFLOW__CHRONON__CONF_ROOT", str(ROOT / "dags" / "chronon"))
    monkeypatch.setenv("AIRFLOW__CHRONON__STATE_ROOT", str(tmp_path / "state"))
    found: dict[str, Any] = {"__file__": str(tmp_path / "loader.py"), "__name__": "loader"}
    exec(compile(text, "loader.py", "exec"), found)
    return {name: DagSerialization.to_dict(each)["dag"] for name, each in found.items() if isinstance(each, DAG)}


def test_the_deadline_of_the_page_reaches_airflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dags = _loaded("DeadlineAlert(", monkeypatch, tmp_path)
    assert {name for name, dag in dags.items() if dag["deadline"] and name != "dag"} == {
        name for name in dags if ".growth." in name
    }


def test_the_callback_of_the_reconciler_reaches_airflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = _loaded("build_reconciler(", monkeypatch, tmp_path)["chronon_reconciler"]["tasks"]
    told = {task["__var"]["task_id"] for task in tasks if task["__var"].get("has_on_failure_callback")}
    assert told == {"reconcile"}


@pytest.mark.parametrize(
    ("window", "shown"),
    [
        ({}, "no window: everything of eu"),
        (
            {"HOPS_START_TIME": "2026-06-01T09:05:00Z", "HOPS_END_TIME": "2026-06-01T10:00:00Z"},
            "rows of eu in [2026-06-01T09:05:00+00:00, 2026-06-01T10:00:00+00:00)",
        ),
    ],
)
def test_the_sample_job_reads_its_window(window: dict[str, str], shown: str) -> None:
    text = (ROOT / "examples/hopsworks/jobs/etl/ingest.yaml").read_text()
    argv = yaml.safe_load(text)["runner"]["argv"]
    environ = {"PYTHONPATH": str(ROOT), "REGION": "eu", **window}
    done = subprocess.run(
        [sys.executable, *argv[1:]], cwd=ROOT, env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == shown


def test_that_online_without_a_schedule_is_off_is_said() -> None:  # C10
    said = "`online: 1` without `onlineSchedule`"
    assert all(f"{said} is off" in (ROOT / "docs" / name).read_text() for name in ("rules.md", "dags.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    for match in _LINK.finditer(page.read_text()):
        assert (page.parent / match["target"]).exists(), match["target"]
