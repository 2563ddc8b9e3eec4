"""The examples of the documentation, run: what a page shows is what the commands print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from airflow_chronon.cli.main import main
from airflow_chronon.core.settings_text import read_settings

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
_BLOCK = re.compile(r"^```(?P<language>console|yaml)\n(?P<text>.*?)^```$", re.S | re.M)
_LINK = re.compile(r"\]\((?!https?:|#)(?P<target>[^)#]+)\)")


def _blocks(language: str) -> list[object]:
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    for match in _LINK.finditer(page.read_text()):
        assert (page.parent / match["target"]).exists(), match["target"]
