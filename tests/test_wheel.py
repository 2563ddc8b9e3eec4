"""What is in the package that users install."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from tests.support.checkout import ROOT


def test_the_wheel_has_types_licence_and_entry_points(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (archive.read(name).decode() for name in names if name.endswith(".dist-info/METADATA"))
        (entry_points,) = (archive.read(name).decode() for name in names if name.endswith("entry_points.txt"))
    assert "airflow_chronon/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "License-Expression: Apache-2.0" in metadata
    for group in ("console_scripts", "apache_airflow_provider", "airflow.plugins"):
        assert f"[{group}]" in entry_points
    assert not [name for name in names if name.startswith(("tests/", "examples/"))]
