"""Modules that settings name are imported under a guard that outlives whatever they do on import (S1)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowTaskTimeout

from airflow_chronon.airflow.operators.work import task_arguments
from airflow_chronon.core.settings.model import TaskDefaults
from airflow_chronon.dags import ImportErrors, build_dags, raise_import_errors
from tests.support.conf_roots import ConfRootOnDisk
from tests.support.confs import staging_query

ENDS = {
    "exits": "import sys\nsys.exit(3)\n",
    "interrupts": "raise KeyboardInterrupt\n",
    "of_its_own": "class Odd(BaseException): ...\nraise Odd\n",
    "mute": "class Mute(Exception):\n    def __str__(self): raise ValueError\nraise Mute\n",
    "no_function": "function = 3\n",
    "deep": "def f(): f()\nf()\n",
    "bad_syntax": "def (\n",
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ConfRootOnDisk:
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "home"))
    (tmp_path / "modules").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    return ConfRootOnDisk(tmp_path / "root")


@pytest.mark.parametrize("name", ENDS)
def test_a_module_that_ends_the_process_costs_its_own_conf_only(root: ConfRootOnDisk, name: str) -> None:  # S1
    (root.path.parent / "modules" / f"hostile_{name}.py").write_text(ENDS[name])
    root.settings("confs_may_set: [callbacks]\n")
    own = {"task_defaults": {"on_failure_callback": f"hostile_{name}.function"}}
    root.write("staging_query", "shop.bad__1", staging_query("shop.bad__1", customJson=json.dumps({"airflow": own})))
    root.write("staging_query", "shop.good__1", staging_query("shop.good__1"))
    assert set(build_dags(conf_root=root.path)) == {"staging_query.shop.good__1"}
    with pytest.raises(ImportErrors) as raised:
        raise_import_errors(conf_root=root.path)
    (line,) = str(raised.value).splitlines()
    assert line.startswith("staging_query/shop.bad__1") and f"hostile_{name}.function" in line


def test_airflows_own_time_limit_of_a_parse_is_not_held_up(root: ConfRootOnDisk) -> None:  # S1
    text = "from airflow.sdk.exceptions import AirflowTaskTimeout\nraise AirflowTaskTimeout\n"
    (root.path.parent / "modules" / "hostile_slow.py").write_text(text)
    with pytest.raises(AirflowTaskTimeout):
        task_arguments(TaskDefaults(on_failure_callback="hostile_slow.function"))
