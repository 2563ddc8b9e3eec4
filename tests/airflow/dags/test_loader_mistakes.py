"""What a mistake costs: one in the settings file nothing while good settings are kept, one in a conf only that conf (C23)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_mock import MockerFixture

from airflow_chronon.core.plan.facts import Deployment
from airflow_chronon.core.records.history import record_after
from airflow_chronon.core.records.manifest import OFF_TAG, manifest_of
from airflow_chronon.core.settings.model import Environment
from airflow_chronon.dags import ImportErrors, build_dags, raise_import_errors
from airflow_chronon.deployment import DEFAULT_BUNDLE, find_deployment
from airflow_chronon.state.folder import StateFolder, open_state
from tests.support.conf_roots import ConfRootOnDisk
from tests.support.confs import at, plan_of, staging_query

ONE = "staging_query.shop.one__1"
TYPO = "retries: 7\ncachup: true\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ConfRootOnDisk:
    """A conf root with one conf, which has been deployed."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "home"))
    found = ConfRootOnDisk(tmp_path / "root")
    found.write("staging_query", "shop.one__1", staging_query("shop.one__1"))
    plan = plan_of(staging_query("shop.one__1"))
    record = record_after(plan, manifest_of(plan), None, now=at("2026-06-01"))
    state(found).write_record(record)
    return found


def state(root: ConfRootOnDisk) -> StateFolder:
    folder = root.path.parent / "home" / "chronon_state"
    return open_state(str(folder), deployment=Deployment("main", DEFAULT_BUNDLE))


def import_errors(root: ConfRootOnDisk) -> str:
    with pytest.raises(ImportErrors) as raised:
        raise_import_errors(conf_root=root.path)
    return str(raised.value)


class TestAMistakeInTheSettings:
    def test_leaves_every_dag_as_it_was_with_the_last_good_settings(self, root: ConfRootOnDisk) -> None:
        state(root).keep_settings("retries: 5\n")
        root.settings(TYPO)
        dags = build_dags(conf_root=root.path)
        assert set(dags) == {ONE} and OFF_TAG not in dags[ONE].tags
        assert dags[ONE].get_task("backfill").retries == 5

    def test_is_told_by_the_import_error_and_by_every_page(self, root: ConfRootOnDisk) -> None:
        state(root).keep_settings("")
        root.settings(TYPO)
        error, page = import_errors(root), str(build_dags(conf_root=root.path)[ONE].doc_md)
        for text in (error, page):
            assert "chronon.yaml line 2, cachup" in text
            assert "the last good settings hold on" in text
        assert "no longer deployed" not in page

    def test_finds_the_settings_of_a_first_deployment_kept_before_any_reconcile(self, root: ConfRootOnDisk) -> None:
        root.settings("retries: 5\n")
        build_dags(conf_root=root.path)
        root.settings(TYPO)
        dag = build_dags(conf_root=root.path)[ONE]
        assert OFF_TAG not in dag.tags and dag.get_task("backfill").retries == 5

    def test_finds_the_defaults_kept_where_there_was_no_file(self, root: ConfRootOnDisk) -> None:
        build_dags(conf_root=root.path)
        root.settings(TYPO)
        assert OFF_TAG not in build_dags(conf_root=root.path)[ONE].tags

    def test_leaves_the_page_of_a_conf_that_is_gone_true(self, root: ConfRootOnDisk) -> None:
        root.write("staging_query", "shop.two__1", staging_query("shop.two__1"))
        build_dags(conf_root=root.path)
        (root.path / "compiled" / "staging_queries" / "shop" / "one__1").unlink()
        root.settings(TYPO)
        page = str(build_dags(conf_root=root.path)[ONE].doc_md)
        assert "no longer deployed" in page and "cannot be read" not in page
        assert "chronon.yaml line 2, cachup" in page and "the last good settings hold on" in page

    def test_goes_with_the_mistake(self, root: ConfRootOnDisk) -> None:
        state(root).keep_settings("retries: 5\n")
        root.settings("retries: 7\n")
        dag = build_dags(conf_root=root.path)[ONE]
        assert dag.get_task("backfill").retries == 7 and "good settings" not in str(dag.doc_md)
        raise_import_errors(conf_root=root.path)

    def test_holds_on_for_a_branch_by_its_own_settings(self, root: ConfRootOnDisk) -> None:  # C24
        folder = root.path.parent / "home" / "chronon_state"
        trial = open_state(str(folder), deployment=Deployment("trial", DEFAULT_BUNDLE))
        trial.keep_settings("branch: trial\nretries: 3\n")
        state(root).keep_settings("retries: 5\n")
        root.settings(f"branch: trial\n{TYPO}")
        (dag,) = build_dags(conf_root=root.path).values()
        assert dag.dag_id == f"trial--{ONE}" and dag.get_task("backfill").retries == 3

    @pytest.mark.parametrize("kept", [None, "neither: good\n", "a: [\n"])
    def test_deploys_nothing_where_none_were_ever_good_and_says_why(
        self, root: ConfRootOnDisk, kept: str | None
    ) -> None:
        if kept is not None:
            state(root).keep_settings(kept)
        root.settings(TYPO)
        dags = build_dags(conf_root=root.path)
        assert set(dags) == {ONE} and OFF_TAG in dags[ONE].tags  # kept for its last runs
        page = str(dags[ONE].doc_md)
        assert "chronon.yaml line 2, cachup" in page and "no longer deployed" not in page
        assert "chronon.yaml line 2, cachup" in import_errors(root)


class TestGoodSettings:
    def test_are_kept_by_the_dag_processor_and_not_by_a_task(self, root: ConfRootOnDisk, mocker: MockerFixture) -> None:
        root.settings("retries: 5\n")
        context = mocker.patch("airflow.sdk.get_parsing_context")
        context.return_value.dag_id = ONE
        build_dags(conf_root=root.path)
        assert state(root).read_settings() is None
        context.return_value.dag_id = None
        build_dags(conf_root=root.path)
        assert state(root).read_settings() == "retries: 5\n"

    def test_that_are_kept_are_written_only_when_they_change(self, root: ConfRootOnDisk) -> None:
        root.settings("retries: 5\n")
        raise_import_errors(conf_root=root.path)
        (kept,) = (root.path.parent / "home" / "chronon_state").rglob("settings.yaml")
        kept.chmod(0o400)
        written = kept.stat()
        raise_import_errors(conf_root=root.path)
        again = kept.stat()  # a reading may change when it was last read
        assert (again.st_ino, again.st_mtime_ns, again.st_mode) == (
            written.st_ino,
            written.st_mtime_ns,
            written.st_mode,
        )

    def test_of_a_tree_that_cannot_be_read_as_a_whole_are_not_kept(self, root: ConfRootOnDisk) -> None:
        root.settings("branch: trial\nbase_root: ../nowhere\n")
        build_dags(conf_root=root.path)
        assert not list((root.path.parent / "home" / "chronon_state").rglob("settings.yaml"))

    def test_are_kept_whatever_else_of_the_tree_cannot_be_read(self, root: ConfRootOnDisk) -> None:
        (root.path / "compiled" / "joins").symlink_to(root.path / "nowhere")
        root.settings("retries: 5\n")
        build_dags(conf_root=root.path)
        root.settings(TYPO)
        assert build_dags(conf_root=root.path)[ONE].get_task("backfill").retries == 5

    def test_are_not_lost_with_a_checkout_that_is_gone_for_a_moment(self, root: ConfRootOnDisk) -> None:
        root.settings("retries: 5\n")
        build_dags(conf_root=root.path)
        (root.path / "chronon.yaml").unlink()
        (root.path / "compiled").rename(root.path.parent / "elsewhere")
        place = find_deployment(environ=os.environ, conf_root=root.path)
        found = place.need_branch(place.read_root())
        place.keep_settings(found)
        assert found.settings_to_keep is None and state(root).read_settings() == "retries: 5\n"

    @pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
    def test_are_kept_anew_where_what_was_kept_is_no_file(
        self, root: ConfRootOnDisk, make: Callable[[Path], None]
    ) -> None:
        root.settings("retries: 5\n")
        build_dags(conf_root=root.path)
        (kept,) = (root.path.parent / "home" / "chronon_state").rglob("settings.yaml")
        kept.unlink()
        make(kept)
        build_dags(conf_root=root.path)
        assert state(root).read_settings() == "retries: 5\n"
        assert (kept.parent / "damaged" / "settings.yaml").exists()

    def test_cost_no_dag_where_the_state_folder_cannot_be_written(
        self, root: ConfRootOnDisk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        home = root.path.parent / "full"
        home.mkdir()
        (home / "chronon_state").write_text("a file where the folder would be")
        monkeypatch.setenv("AIRFLOW_HOME", str(home))
        assert ONE in build_dags(conf_root=root.path)
        raise_import_errors(conf_root=root.path)


class TestTheDagOfAConf:
    def test_that_is_rejected_says_so_and_why(self, root: ConfRootOnDisk) -> None:
        root.write("staging_query", "shop.one__1", staging_query("shop.one__1", schedule="0 0 31 2 *"))
        dag = build_dags(conf_root=root.path)[ONE]
        assert OFF_TAG in dag.tags
        page = str(dag.doc_md)
        assert "is rejected" in page and "'0 0 31 2 *'" in page and "(C1)" in page
        assert "no longer deployed" not in page

    def test_whose_file_cannot_be_read_says_so(self, root: ConfRootOnDisk) -> None:
        root.write("staging_query", "shop.one__1", "{")
        page = str(build_dags(conf_root=root.path)[ONE].doc_md)
        assert "is rejected" in page and "the file is not JSON" in page

    def test_of_another_environment_says_so(self, root: ConfRootOnDisk) -> None:
        document = staging_query("shop.one__1", environments=[int(Environment.CANARY)])
        root.write("staging_query", "shop.one__1", json.dumps(document))
        assert "of another environment" in str(build_dags(conf_root=root.path)[ONE].doc_md)

    def test_that_is_gone_says_so(self, root: ConfRootOnDisk) -> None:
        (root.path / "compiled" / "staging_queries" / "shop" / "one__1").unlink()
        root.write("staging_query", "shop.two__1", staging_query("shop.two__1"))
        assert "no longer deployed" in str(build_dags(conf_root=root.path)[ONE].doc_md)
