"""Reading the facts: what other branches' state folders tell, and an Airflow that refuses (C24)."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_chronon.airflow_api.errors import LoginFailed
from airflow_chronon.airflow_api.fake import FakeAirflow
from airflow_chronon.core.plan.facts import Deployment
from airflow_chronon.core.records.history import record_after
from airflow_chronon.core.records.manifest import manifest_of
from airflow_chronon.reconcile import gather
from airflow_chronon.reconcile.gather import Place
from airflow_chronon.reconcile.run import plan_now, reconcile
from airflow_chronon.state.folder import open_branches, open_state
from tests.support.confs import plan_of, staging_query
from tests.support.world import NOW, World, conf, tree


def test_two_branches_that_write_one_table_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # C24
    monkeypatch.setattr(gather, "open_branches", open_branches)
    other = plan_of(staging_query("t.s.one__1"))
    there = open_state(str(tmp_path), deployment=Deployment("try", "dags-folder"))
    there.write_record(record_after(other, manifest_of(other), None, now=NOW))
    here = Deployment("main", "dags-folder")
    place = Place(
        tree(conf("t.s.one__1"), conf("t.s.two__1")),
        here,
        open_state(str(tmp_path), deployment=here),
        str(tmp_path),
        FakeAirflow(),
    )
    (report,) = (action for action in plan_now(place, now=NOW).actions if "too:" in str(action))
    assert getattr(report, "conf", "") == "branch try"
    assert "ns.t_s_one__1" in str(report) and "ns.t_s_two__1" not in str(report)


def test_an_airflow_that_lets_nobody_in_leaves_everything_as_it_was() -> None:
    world = World()
    world.deploy(conf("t.s.one__1"))

    def refuse(name: str) -> None:
        raise LoginFailed("logging in", status=401, detail="Invalid credentials")

    world.airflow.before = refuse
    with pytest.raises(LoginFailed, match="Invalid credentials"):
        reconcile(world.place(), by="a test", now=NOW)
    assert world.files.contents == {}
