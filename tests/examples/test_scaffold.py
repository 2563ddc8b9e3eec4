"""The tutorial from nothing: its first step makes the compiled tree with which the rest of it is tested."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from tests.support.checkout import ROOT

PAGE = (ROOT / "docs/from-nothing.md").read_text()
KEPT = ROOT / "tests/data/scaffold"


def test_the_sample_repository_compiles_to_what_is_kept(tmp_path: Path, compiler: Path) -> None:
    """Step 1 of the page, by the program that `pip install zipline-ai` brings."""
    program = compiler / "bin/zipline"
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SHELL": "/bin/sh"}
    made = ["admin", "init", "gcp", "--chronon-root", "features"]
    assert f"zipline {' '.join(made)}" in PAGE
    subprocess.run([program, *made], cwd=tmp_path, env=environment, input="n\n", text=True, check=True, timeout=120)
    (compile_it,) = re.findall(r"^```\n(sed .*?)^```$", PAGE, re.S | re.M)
    text = compile_it.replace("../.zipline/bin/zipline", str(program))
    subprocess.run(["sh", "-ec", text], cwd=tmp_path, env=environment, check=True, timeout=120)

    def tree(folder: Path) -> dict[str, bytes]:
        return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}

    assert tree(tmp_path / "features/compiled") == tree(KEPT / "compiled")
