"""What the demo expects to land, and how it tells what became of it."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from demo_progress import _sentence, expected_partitions

from tests.support.checkout import ROOT
from tests.support.shop_runs import DEMO_CONFS


def test_what_is_expected_is_what_explain_says() -> None:
    now = datetime(2026, 6, 3, 12, 30, tzinfo=UTC)
    environment = {**os.environ, "CHRONON_WAREHOUSE": "unused"}
    expected = {
        item.name: item
        for item in expected_partitions(root=ROOT / "dags/chronon", now=now, environment=environment).partitions
    }
    assert sorted(expected) == DEMO_CONFS
    assert all(item.labels for item in expected.values())
    assert expected["commerce.orders.three_hourly__1"].grid == "3h@1h"


def test_rejected_confs_and_jobs_are_no_partitions_to_wait_for(tmp_path: Path) -> None:
    folder = tmp_path / "compiled" / "staging_queries" / "team"
    folder.mkdir(parents=True)
    (folder / "bad__1").write_text('{"metaData": {"name": "team.bad__1"}}')
    shutil.copytree(ROOT / "examples/hopsworks/jobs", tmp_path / "jobs")
    now = datetime(2026, 6, 3, 12, 30, tzinfo=UTC)
    expected = expected_partitions(root=tmp_path, now=now, environment=os.environ)
    assert (expected.partitions, expected.rejected) == ((), ("staging_query/team.bad__1",))


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        pytest.param([{"event": "fine", "level": "info"}], "its log does not name an error", id="no error"),
        pytest.param(
            [
                {"event": "Task failed", "level": "error", "error_detail": [{"exc_type": "E", "exc_value": "why"}]},
                {"event": "after", "level": "info"},
            ],
            "why",
            id="an exception",
        ),
        pytest.param([{"event": "first", "level": "error"}, {"event": "last", "level": "error"}], "last", id="plain"),
    ],
)
def test_a_failure_is_named_by_the_last_error_of_the_log(log: list[dict[str, Any]], sentence: str) -> None:
    assert _sentence(log) == sentence
