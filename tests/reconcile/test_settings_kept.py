"""The last good settings are kept by the reconciler (C23)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_chronon.core.plan.actions import Hold
from airflow_chronon.deployment import find_deployment
from airflow_chronon.state.folder import open_state
from tests.support.conf_roots import ConfRootOnDisk
from tests.support.confs import staging_query
from tests.support.world import ONE, TWO, World, deployed


def test_a_reconcile_keeps_the_text_of_good_settings_and_no_other() -> None:
    world = deployed(ONE)
    assert world.state().read_settings() is None  # this tree tells of none
    for text in ("retries: 3\n", ""):
        world.trees["main"] = replace(world.trees["main"], settings_text=text)
        world.reconcile()
        assert world.state().read_settings() == text
    world.trees["main"] = replace(world.trees["main"], settings_text=None)
    world.reconcile()
    assert world.state().read_settings() == ""


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two confs that are deployed from a root on disk."""
    root = ConfRootOnDisk(tmp_path / "root")
    for conf in (ONE, TWO):
        root.write("staging_query", conf.key.name, staging_query(conf.key.name))
    root.settings("retries: 3\n")
    world = World()
    found = find_deployment(environ={}, conf_root=root.path, state_root=str(tmp_path / "state"))
    world.trees["main"] = found.need_branch(found.read_root())
    world.converge()
    return world


def test_with_a_mistake_in_the_file_it_goes_on_says_so_and_retires_nothing(world: World, tmp_path: Path) -> None:
    root = tmp_path / "root"
    found = find_deployment(environ={}, conf_root=root, state_root=str(tmp_path / "state"))
    kept = world.state().read_settings()
    assert kept == "retries: 3\n"
    open_state(found.state_root, deployment=world.deployment()).keep_settings(kept)
    (root / "chronon.yaml").write_text("cachup: true\n")
    next((root / "compiled").rglob("s.two__1")).unlink()
    world.trees["main"] = found.need_branch(found.read_root())
    world.parse()
    done = world.reconcile()
    assert not done.is_good
    assert [type(each) for each in done.plan.findings].count(Hold) == 1
    told = " ".join(str(each.fault) for each in done.plan.findings)
    assert "chronon.yaml line 1, cachup" in told and "the last good settings hold on" in told
    assert told.count("line 1, cachup") == 1
    assert len(world.live()) == 2 and len(world.firing) == 1
    assert world.state().read_settings() == kept
