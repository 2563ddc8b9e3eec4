"""``airflow_chronon.land``, as a task of any DAG calls it."""

from __future__ import annotations

import pytest

import airflow_chronon
from airflow_chronon.airflow_api.errors import NotConfigured
from airflow_chronon.airflow_api.fake import FakeAirflow
from airflow_chronon.core.waits.said import SAID_ASSET, Said, words_of


def test_a_task_says_of_partitions_that_they_are_absent_on_purpose(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeAirflow()
    monkeypatch.setattr("airflow_chronon.airflow.land.find_airflow", lambda *ids: fake)
    airflow_chronon.land("vendor.prices", "2026-06-01", "2026-06-02", never=True, by="ada")
    words = words_of(fake.asset_states(SAID_ASSET), "vendor.prices")
    assert {label: (word.said, word.by) for label, word in words.items()} == {
        "2026-06-01": (Said.NEVER, "ada"),
        "2026-06-02": (Said.NEVER, "ada"),
    }


def test_without_a_connection_it_says_how_to_make_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_chronon.airflow.land.find_airflow", lambda *ids: None)
    with pytest.raises(NotConfigured, match="airflow connections add chronon_airflow"):
        airflow_chronon.land("vendor.prices", "2026-06-01")
