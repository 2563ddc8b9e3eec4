"""Bad confs in the real folder: one message each among Airflow's import errors, and everything good runs on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.integration.airflow_client import wait_until
from tests.support.integration.compiled_confs import CompiledConf, staging_query
from tests.support.integration.deployment import Deployment, day_label

pytestmark = pytest.mark.soak

GOOD = staging_query("errors.good", schedule="0 0 * * *")
MENDED = staging_query("errors.mended")
TOO_LARGE = 50 * 1024 * 1024


def _changed(conf: CompiledConf, **meta: Any) -> str:
    document = json.loads(json.dumps(conf.document))
    document["metaData"] |= meta
    return json.dumps(document)


def _with_table(name: str, **changes: Any) -> str:
    conf = staging_query(f"errors.{name}", reads="errors.raw")
    document = json.loads(json.dumps(conf.document))
    (dependency,) = document["tableDependencies"]
    dependency["tableInfo"] |= changes.pop("info", {})
    dependency |= changes
    return json.dumps(document)


#: What stands in each bad file, by its name, and the words by which its one message is known.
BAD: dict[str, tuple[str | bytes | None, str]] = {
    "errors.not_json__1": ("{'single': 'quotes'}", "the file is not JSON"),
    "errors.other_shape__1": ("[1, 2, 3]", "a JSON object belongs here"),
    "errors.missing_field__1": (json.dumps({"query": "SELECT 1"}), "metaData: the staging query lacks this field"),
    "errors.no_text__1": (b'{"query": "\xff"}', "the file is not UTF-8 text"),
    "errors.large__1": (b"", "the file has 50 MB, and no conf is larger than 16 MB"),
    "errors.dangling__1": (None, "the file cannot be read: No such file or directory"),
    "errors.climbing__1": (
        _changed(staging_query("errors.climbing"), name="it.../../etc/errors"),
        "cannot be a conf's name",
    ),
    "errors.alias__1": (_changed(staging_query("errors.named")), "'it.errors.named__1' is not that of its file"),
    "errors.twin__1": (_changed(staging_query("errors.twin")), "it/errors/twin__1"),
    "errors/twin__1": (_changed(staging_query("errors.twin")), "it/errors.twin__1"),
    "errors.letter__1": (_with_table("letter", info={"partitionFormat": "yyyy-MM-dd-Q"}), "Q"),
    "errors.cut_off__1": (_with_table("cut_off", startCutOff="June 1st"), "June 1st"),
    "errors.schedule__1": (
        _changed(staging_query("errors.schedule"), executionInfo={"offlineSchedule": "@weekly"}),
        "@weekly",
    ),
    "errors.runner__1": (
        _changed(staging_query("errors.runner"), customJson=json.dumps({"airflow": {"runner": {"kind": "spork"}}})),
        "the runner kind 'spork' is not known",
    ),
}
#: Two files, one conf: one message names both.
MESSAGES = len(BAD) - 1


def _write(folder: Path, name: str, contents: str | bytes | None) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if contents is None:
        path.symlink_to(folder / "nowhere")
    elif name.startswith("errors.large"):
        path.touch()
        os.truncate(path, TOO_LARGE)
    else:
        path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
    return path


@pytest.fixture(scope="module")
def bad_files(deployment: Deployment) -> Iterator[list[Path]]:
    folder = deployment.real.conf_root / "compiled" / "staging_queries" / "it"
    folder.mkdir(parents=True, exist_ok=True)
    files = [_write(folder, name, contents) for name, (contents, _) in BAD.items()]
    deployment.drop(GOOD)
    yield files
    for path in files:
        path.unlink(missing_ok=True)
    deployment.withdraw(GOOD, MENDED)


def _of(lines: list[str], name: str) -> list[str]:
    return [line for line in lines if name in line]


def test_every_bad_file_has_one_message_and_the_good_conf_runs(deployment: Deployment, bad_files: list[Path]) -> None:
    lines = wait_until(
        lambda: said if len(said := _of(deployment.import_errors(), "errors.")) >= MESSAGES else [],
        timeout=60,
        why="the bad files show as import errors",
    )
    for name, (_, words) in BAD.items():
        said = _of(lines, name)
        assert len(said) == 1, (name, lines)
        assert words in said[0], said
    assert len(lines) == MESSAGES
    run = deployment.run_of(GOOD, day_label(days_ago=1))
    assert deployment.end_of(run).state == "success"


def test_only_the_file_that_lists_errors_has_one(deployment: Deployment, bad_files: list[Path]) -> None:
    deployment.wait_for_dags(GOOD)
    files = {Path(error["filename"]).name for error in deployment.real.api.import_errors()}
    assert "chronon_import_errors.py" in files
    assert "chronon.py" not in files


def test_a_mended_conf_becomes_a_dag_and_its_error_goes(deployment: Deployment) -> None:
    deployment.drop_text(MENDED.file, _changed(MENDED, executionInfo={"offlineSchedule": "0 0 31 2 *"}))
    said = wait_until(
        lambda: _of(deployment.import_errors(), MENDED.name), timeout=60, why="the bad conf shows as an import error"
    )
    assert len(said) == 1 and "(C1)" in said[0]
    deployment.deploy(MENDED)
    wait_until(
        lambda: not _of(deployment.import_errors(), MENDED.name), timeout=60, why="the error of the mended conf goes"
    )
