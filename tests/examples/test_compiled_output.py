"""The committed confs are what the real Chronon compiler makes of the sample repo."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.support.checkout import ROOT
from tests.support.shop_runs import COMPILED, staging_queries


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def compile_into(output: Path, *, venv: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "examples/compile.py", "--venv", str(venv), "--output", str(output)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_compiling_again_changes_nothing(tmp_path: Path, compiler: Path) -> None:
    stale = tmp_path / "compiled" / "joins" / "commerce" / "gone__1"
    stale.parent.mkdir(parents=True)
    stale.write_text("{}")
    done = compile_into(tmp_path / "compiled", venv=compiler)
    assert done.returncode == 0, done.stderr
    assert tree(tmp_path / "compiled") == tree(COMPILED), "run `make compile` and commit what it changes"


def test_nothing_of_a_machine_is_in_the_compiled_confs() -> None:
    machine = re.compile(
        r"://|(?<![\w.])/(?:home|root|tmp|usr|var|opt|Users|private)\b|localhost|\b\d+\.\d+\.\d+\.\d+\b"
    )
    texts = {name: data.decode() for name, data in tree(COMPILED).items()}
    assert {name: found[0] for name, text in texts.items() if (found := machine.search(text))} == {}


def test_no_table_reference_took_a_name_that_nobody_writes() -> None:  # C15
    written = {query.table for query in staging_queries()}
    used = set(
        re.findall(
            r"\b(?:commerce|growth)\.(?:commerce|growth)_\w+", "".join(d.decode() for d in tree(COMPILED).values())
        )
    )
    assert used == written - {
        "commerce.commerce_payments_quarter_hourly__1",
        "growth.growth_customers_spend__1",
        "growth.growth_visits_trailing_week__1",
        "growth.growth_visits_weekly__1",
    }


def test_a_repo_that_does_not_compile_leaves_the_old_confs_alone(tmp_path: Path, compiler: Path) -> None:
    for name in ("examples/compile.py", "requirements-compile.lock"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    broken = tmp_path / "examples" / "feature_repo" / "staging_queries" / "commerce" / "orders.py"
    broken.parent.mkdir(parents=True)
    broken.write_text(
        "from ai.chronon.types import StagingQuery as S\nx = S(query='SELECT 1', offline_schedule='0 */5 * * *')\n"
    )
    teams = (ROOT / "examples" / "feature_repo" / "teams.py").read_text()
    (tmp_path / "examples" / "feature_repo" / "teams.py").write_text(teams)
    old = tmp_path / "dags" / "chronon" / "compiled" / "old"
    old.parent.mkdir(parents=True)
    old.write_text("{}")
    command = [sys.executable, str(tmp_path / "examples" / "compile.py"), "--venv", str(compiler)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "nothing was replaced" in done.stderr and "Traceback" not in done.stderr.splitlines()[-1]
    assert tree(old.parent) == {"old": b"{}"}
