"""Records as JSON and back (S9)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_chronon.core.records.manifest import manifest_of, settings_of_manifest
from airflow_chronon.core.records.record import DeploymentRecord, PendingBackfill, Retirement
from airflow_chronon.core.schedules.revision import ScheduleRevision
from airflow_chronon.core.settings.model import Settings
from tests.support.confs import plan_of, staging_query
from tests.support.jobs import schedule

PLAN = plan_of(staging_query("t.s.x__1"))
INSTANTS = st.integers(0, 4_000_000_000)
REVISIONS = st.builds(
    ScheduleRevision,
    INSTANTS,
    st.sampled_from([None, PLAN.schedule, schedule(), schedule("5 * * * *", start="2026-06-01", catchup=True, cap=3)]),
    enabled=st.booleans(),
    is_paused=st.booleans(),
    is_broken=st.booleans(),
)
RECORDS = st.builds(
    DeploymentRecord,
    st.just(PLAN.dag_id),
    st.sampled_from([None, manifest_of(PLAN)]),
    INSTANTS,
    st.lists(REVISIONS, max_size=3).map(tuple),
    st.none() | st.builds(PendingBackfill, INSTANTS, st.none() | INSTANTS),
    active_since=st.none() | INSTANTS,
    begins=st.none() | INSTANTS,
    retirement=st.none() | st.builds(Retirement, INSTANTS, st.text(), st.text(), st.booleans(), st.text()),
)


@given(RECORDS)
def test_a_record_survives_its_json(record: DeploymentRecord) -> None:
    assert DeploymentRecord.from_json(json.loads(json.dumps(record.to_json())), dag_id=record.dag_id) == record


@pytest.mark.parametrize(
    "content",
    [
        {"document": {"metaData": 5}},
        {"document": {"metaData": ["x"]}, "tags": 5},
        {"document": {"metaData": {"customJson": "[" * 100_000}}},
        {"document": {}},
    ],
    ids=["no mapping", "a list", "no JSON", "nothing"],
)
def test_what_a_record_does_not_say_of_its_settings_the_deployments_say(content: dict[str, Any]) -> None:  # S9
    manifest = replace(manifest_of(PLAN), content=content)
    assert settings_of_manifest(manifest, Settings()) == Settings().for_conf(manifest.key, ())
