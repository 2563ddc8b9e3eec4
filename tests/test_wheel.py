"""What is in the package that users install."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from email import message_from_string
from xml.etree import ElementTree

import pytest

from airflow_chronon.provider import get_provider_info
from tests.support.checkout import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The files of the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def _of(wheel: Mapping[str, str], end: str) -> str:
    (found,) = (text for name, text in wheel.items() if name.endswith(end))
    return found


def test_the_wheel_has_types_licence_and_entry_points(wheel: Mapping[str, str]) -> None:
    assert "airflow_chronon/py.typed" in wheel
    assert any(name.endswith("licenses/LICENSE") for name in wheel)
    assert "License-Expression: Apache-2.0" in _of(wheel, ".dist-info/METADATA")
    for group in ("console_scripts", "apache_airflow_provider", "airflow.plugins"):
        assert f"[{group}]" in _of(wheel, "entry_points.txt")
    assert not [name for name in wheel if name.startswith(("tests/", "examples/", "hatch_build"))]


def test_a_package_index_has_something_to_show(wheel: Mapping[str, str]) -> None:
    metadata = message_from_string(_of(wheel, ".dist-info/METADATA"))
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert any(url.startswith("Documentation, https://") for url in metadata.get_all("Project-URL", []))
    assert {"Framework :: Apache Airflow :: Provider", "Typing :: Typed"} <= {*metadata.get_all("Classifier", [])}
    page = str(metadata.get_payload())
    assert page.startswith("# airflow_chronon")
    targets = re.findall(r"\]\(([^)]+)\)", page)
    assert targets and [each for each in targets if not each.startswith(("https://", "#"))] == []
    assert "`docs/README.md`" in page  # what a link led to is still named


def test_the_logo_that_airflow_is_told_of_is_in_the_wheel(wheel: Mapping[str, str]) -> None:
    (integration,) = get_provider_info()["integrations"]
    assert ElementTree.fromstring(wheel[integration["logo"]]).tag.endswith("svg")
