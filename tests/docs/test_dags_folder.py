"""The dags folder as it is shipped: loader files are run by Airflow, nothing in the conf root is (S2)."""

from __future__ import annotations

from pathlib import Path

import pytest
from airflow.utils.file import list_py_file_paths

from tests.support.checkout import ROOT

SHIPPED = ROOT / "dags"
PROGRAM = "from airflow.sdk import DAG\nDAG('dag')\n"


@pytest.mark.parametrize("syntax", ["glob", "regexp"])
def test_a_python_file_in_the_conf_root_is_not_run(
    tmp_path: Path, syntax: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # S2
    monkeypatch.setenv("AIRFLOW__CORE__DAG_IGNORE_FILE_SYNTAX", syntax)
    (tmp_path / ".airflowignore").write_text((SHIPPED / ".airflowignore").read_text())
    for name in ("chronon.py", "chronon_reconciler.py", "chronon/jobs/x/y.py", "chronon/compiled/z.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(PROGRAM)
    found = {str(Path(each).relative_to(tmp_path)) for each in list_py_file_paths(tmp_path, safe_mode=True)}
    assert found == {"chronon.py", "chronon_reconciler.py"}
