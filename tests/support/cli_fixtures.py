"""Conf roots on disk, and the command line in this process."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from airflow_chronon.cli.main import main
from tests.support.command_line import DATA, GOOD, Answer, Command


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run ``airflow-chronon`` in this process."""

    def call(*arguments: object) -> Answer:
        capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as error:  # argparse
            code = error.code if isinstance(error.code, int) else 1
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A conf root with a few good confs."""
    for name in GOOD:
        target = tmp_path / "compiled" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(DATA / "main" / name, target)
    return tmp_path
