"""The list of the page is worked out once in a while for everybody, whatever spans of days they look at."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_chronon.web import routes


@pytest.fixture
def worked_out(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The spans of days that were worked out, in order."""
    found: list[int] = []

    def overview(confs: Any, live: Any, *, days: int, now: int) -> list[dict[str, Any]]:
        found.append(days)
        return [{"dag_id": "a", "days": days, "now": now}]

    monkeypatch.setattr(routes, "read_snapshots", lambda session, allowed: [])
    monkeypatch.setattr(routes, "live_dags", lambda *args, **more: {})
    monkeypatch.setattr(routes, "overview", overview)
    return found


def test_people_who_look_at_different_spans_cost_each_other_nothing(worked_out: list[int]) -> None:
    rows: Any = routes._Rows()
    for _ in range(5):
        for days in (7, 35):
            assert rows.read(None, days=days, now=1_000)[1][0]["days"] == days
    assert worked_out == [7, 35]
    assert rows.read(None, days=7, now=1_014)[0] == 1_000 and rows.read(None, days=7, now=1_015)[0] == 1_015
    assert worked_out == [7, 35, 7]


def test_it_is_kept_for_a_few_spans_only(worked_out: list[int]) -> None:
    rows: Any = routes._Rows()
    for days in range(1, 50):
        rows.read(None, days=days, now=1_000)
    assert len(rows._kept) == 4
    rows.read(None, days=49, now=1_001)
    assert len(worked_out) == 49
