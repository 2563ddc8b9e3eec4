"""The examples of the documentation, run: what a page shows is what the commands print."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from airflow_chronon.cli.main import main
from airflow_chronon.core.settings.yaml import read_settings
from tests.support.checkout import ROOT
from tests.support.jobs import plan_of

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
_BLOCK = re.compile(r"^```(?P<language>console|yaml|python)\n(?P<text>.*?)^```$", re.S | re.M)
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
    exec(compile(text, "the page", "exec"), {})


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    for match in _LINK.finditer(page.read_text()):
        assert (page.parent / match["target"]).exists(), match["target"]
