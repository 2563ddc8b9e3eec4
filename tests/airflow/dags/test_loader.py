"""Loader files: the good confs as DAGs, the bad ones as one visible error, the same DAGs every time (C23)."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_chronon.dags import ImportErrors, build_dags, raise_import_errors
from tests.support.conf_roots import ConfRootOnDisk, staging_query

REPOSITORY = Path(__file__).resolve().parents[3]

PRINT_HASHES = """
import json, sys
from airflow.models.serialized_dag import SerializedDagModel
from airflow.serialization.serialized_objects import DagSerialization
from airflow_chronon.dags import build_dags
dags = build_dags(conf_root=sys.argv[1])
hashes = {name: SerializedDagModel.hash(DagSerialization.to_dict(dag)) for name, dag in dags.items()}
print(json.dumps([list(hashes.items()), {name: dag.doc_md for name, dag in dags.items()}]))
"""


@pytest.fixture
def root(tmp_path: Path) -> ConfRootOnDisk:
    return ConfRootOnDisk(tmp_path / "chronon")


def hashes_in_another_process(root: Path, *, seed: str) -> tuple[list[list[str]], dict[str, str]]:
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", PRINT_HASHES, str(root)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    hashes, pages = json.loads(done.stdout.splitlines()[-1])
    return hashes, pages


def import_errors(root: ConfRootOnDisk) -> str:
    with pytest.raises(ImportErrors) as raised:
        raise_import_errors(conf_root=root.path)
    return str(raised.value)


class TestTheFileOfImportErrors:
    """It produces no DAG by which the reconciler could have it parsed."""

    @pytest.fixture
    def beside(self, root, monkeypatch):
        """Both loader files as a user has them, last changed long ago."""
        monkeypatch.setenv("AIRFLOW__CHRONON__CONF_ROOT", str(root.path))
        root.write("staging_query", "shop.one__1", staging_query("shop.one__1"))
        for name in ("chronon.py", "chronon_import_errors.py", "chronon_reconciler.py"):
            file = Path(shutil.copy(REPOSITORY / "dags" / name, root.path.parent / name))
            os.utime(file, (1_700_000_000, 1_700_000_000))
        return root.path.parent

    def test_is_parsed_after_each_parse_of_the_dags(self, beside):
        build_dags(near=str(beside / "chronon.py"))
        touched = {file.name for file in beside.glob("*.py") if file.stat().st_mtime > 1_700_000_001}
        assert touched == {"chronon_import_errors.py"}

    def test_is_left_alone_when_a_task_starts(self, beside, mocker):
        mocker.patch("airflow_chronon.dags.asked_dag", return_value="staging_query.shop.one__1")
        assert build_dags(near=str(beside / "chronon.py"))
        assert (beside / "chronon_import_errors.py").stat().st_mtime == 1_700_000_000

    def test_that_may_not_be_touched_waits_for_its_interval(self, beside, mocker):
        mocker.patch.object(Path, "touch", side_effect=PermissionError(30, "Read-only file system"))
        assert build_dags(near=str(beside / "chronon.py"))


class TestUnchangedConfs:
    def test_make_the_same_dags_in_every_process_and_from_every_order_of_files(self, corpus, tmp_path):
        # prior art 19: another hash is another DAG version at every parse
        trees = [tmp_path / "one" / "chronon", tmp_path / "two" / "chronon"]
        files = sorted(path for path in corpus.rglob("*") if path.is_file())
        for tree, order in zip(trees, (files, files[::-1]), strict=True):
            for file in order:
                target = tree / "compiled" / file.relative_to(corpus)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)
        # one path for both, since the path of a conf is not a part of it
        here = tmp_path / "chronon"
        results = []
        for tree, seed in zip(trees, ("1", "2"), strict=True):
            tree.rename(here)
            results.append(hashes_in_another_process(here, seed=seed))
            here.rename(tree)
        (first, first_pages), (second, second_pages) = results
        assert first == second
        assert first_pages == second_pages
        assert len(first) == 59

    def test_the_clock_is_in_no_dag(self, corpus, clock):
        clock.instant = 1_700_000_000
        one = {name: dag.doc_md for name, dag in build_dags(conf_root=corpus).items()}
        clock.instant = 1_900_000_000
        assert one == {name: dag.doc_md for name, dag in build_dags(conf_root=corpus).items()}


class TestSplittingADeployment:
    def test_by_team(self, corpus):
        dags = build_dags(conf_root=corpus, team="growth")
        assert dags
        assert all("team:growth" in dag.tags for dag in dags.values())

    def test_by_glob(self, corpus):
        every = build_dags(conf_root=corpus)
        joins = build_dags(conf_root=corpus, match="join/*")
        assert set(joins) == {dag_id for dag_id in every if dag_id.startswith("join.")}

    @pytest.mark.parametrize("selector", [{"match": "staging_query/nope*"}, {"team": "nope"}])
    def test_a_selector_that_fits_nothing_is_an_import_error(self, corpus, selector):
        with pytest.raises(ImportErrors, match=r"nope.*fits no conf and no job"):
            build_dags(conf_root=corpus, **selector)

    def test_one_that_fits_only_a_bad_conf_is_not(self, root):
        root.staging_query("shop.bad", schedule="@hourly")
        root.staging_query("shop.good")
        assert build_dags(conf_root=root.path, match="staging_query/shop.bad*") == {}


def test_python_collects_garbage_again_once_the_dags_are_built(root):
    root.staging_query("orders.a")
    assert gc.isenabled() and build_dags(conf_root=root.path) and gc.isenabled()
    with pytest.raises(ImportErrors):
        build_dags(conf_root=root.path, team="nope")
    assert gc.isenabled()


class TestTaskStart:
    def test_builds_only_the_asked_dag(self, corpus, monkeypatch):
        monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "group_by.checkout.purchases.daily__3")
        monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_TASK_ID", "backfill")
        assert list(build_dags(conf_root=corpus)) == ["group_by.checkout.purchases.daily__3"]

    def test_has_the_same_tasks_as_the_parse(self, corpus, monkeypatch):
        whole = build_dags(conf_root=corpus)
        for dag_id in ("join.checkout.training.online_join__1", "group_by.checkout.purchases.online_other_time__1"):
            monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", dag_id)
            [dag] = build_dags(conf_root=corpus).values()
            assert dag.task_dict.keys() == whole[dag_id].task_dict.keys()
            assert dag.timetable == whole[dag_id].timetable

    def test_asks_nobody_for_import_errors(self, root, monkeypatch):
        root.write("staging_query", "broken", "{")
        monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "some_dag")
        raise_import_errors(conf_root=root.path)


class TestBadConfs:
    def test_are_listed_at_once_and_hide_nothing(self, root):
        # prior art 16
        root.staging_query("orders.good")
        root.staging_query("orders.too_fine", schedule="*/7 * * * *")
        root.write("staging_query", "orders.broken__1", '{"metaData": ')
        assert list(build_dags(conf_root=root.path)) == ["staging_query.orders.good__1"]
        text = import_errors(root)
        assert len(text.splitlines()) == 2
        assert "staging_query/orders.too_fine__1 (compiled/staging_queries/orders/too_fine__1)" in text
        assert "(C2)" in text
        assert "the file is not JSON" in text
        assert "Traceback" not in text

    def test_two_files_of_one_name_are_both_named(self, root):
        # C26, prior art 17
        root.write("staging_query", "orders.a.b__1", staging_query("orders.a.b__1"))
        root.write("staging_query", "orders.a.b__1", staging_query("orders.a.b__1"), file="orders/a/b__1")
        root.staging_query("orders.good")
        assert list(build_dags(conf_root=root.path)) == ["staging_query.orders.good__1"]
        text = import_errors(root)
        assert "staging_queries/orders/a.b__1 and" in text or "and compiled/staging_queries/orders/a.b__1" in text
        assert "staging_queries/orders/a/b__1" in text

    def test_a_conf_under_the_name_of_another_costs_only_itself(self, root):
        # S6
        root.staging_query("orders.a")
        root.write("staging_query", "orders.a__1", staging_query("orders.a__1"), file="growth/stolen__1")
        assert list(build_dags(conf_root=root.path)) == ["staging_query.orders.a__1"]
        name, _team = import_errors(root).splitlines()
        assert name.startswith("staging_query/growth.stolen__1 (compiled/staging_queries/growth/stolen__1): ")
        assert "the name 'orders.a__1' is not that of its file, 'growth.stolen__1'" in name

    def test_a_callback_that_cannot_be_imported_costs_only_its_own_dags(self, root):
        root.staging_query("orders.good")
        root.staging_query("orders.bad")
        root.settings(
            "overrides:\n  - match: staging_query/orders.bad*\n"
            "    task_defaults: {on_failure_callback: no.such.function}\n"
        )
        assert list(build_dags(conf_root=root.path)) == ["staging_query.orders.good__1"]
        assert import_errors(root).startswith("staging_query/orders.bad__1 (compiled/staging_queries/orders/")

    @pytest.mark.parametrize(
        ("setting", "says"),
        [
            pytest.param("catalog: {kind: hve, root: /w}", "'hve'", id="catalog kind"),
            pytest.param("catalog: {kind: filesystem, rot: /w}", "'rot'", id="catalog key"),
            pytest.param("runner: {kind: lokal}", "'lokal'", id="runner kind"),
            pytest.param("runner: {kind: local, memory: 2GB}", "'memory'", id="runner key"),
        ],
    )
    def test_a_catalog_or_runner_that_cannot_be_built_is_an_import_error(self, root, setting, says):
        # else every wait and every job would fail one by one
        root.staging_query("orders.bad")
        root.settings(f"{setting}\n")
        assert build_dags(conf_root=root.path) == {}
        text = import_errors(root)
        assert says in text
        assert len(text.splitlines()) == 1

    def test_settings_that_cannot_be_read_are_one_message(self, root):
        root.staging_query("orders.good")
        root.settings("retires: 3\n")
        assert build_dags(conf_root=root.path) == {}
        text = import_errors(root)
        assert "retires" in text
        assert len(text.splitlines()) == 1

    def test_nothing_bad_raises_nothing(self, root):
        root.staging_query("orders.good")
        raise_import_errors(conf_root=root.path)

    def test_a_surprise_of_airflow_costs_only_one_dag(self, root, mocker):
        for name in ("a", "b"):
            root.staging_query(f"orders.{name}")
        import airflow_chronon.airflow.dags.conf as module

        real = module.build_conf_dag

        def surprised(plan, **more):
            if plan.dag_id.endswith("a__1"):
                raise RuntimeError("boom")
            return real(plan, **more)

        mocker.patch.object(module, "build_conf_dag", surprised)
        assert list(build_dags(conf_root=root.path)) == ["staging_query.orders.b__1"]
        assert "its DAG cannot be built: RuntimeError: boom" in import_errors(root)


class TestNoConfRoot:
    def test_a_missing_one_is_no_dag_and_one_clear_message(self, tmp_path):
        assert build_dags(conf_root=tmp_path / "nowhere") == {}
        with pytest.raises(ImportErrors, match=r"there is no conf root .*nowhere.*Create it, or name another"):
            raise_import_errors(conf_root=tmp_path / "nowhere")

    def test_an_empty_one_too(self, root):
        assert build_dags(conf_root=root.path) == {}
        assert "holds no compiled confs" in import_errors(root)

    def test_the_default_is_beside_the_loader_file(self, root):
        root.staging_query("orders.good")
        assert list(build_dags(near=str(root.path.parent / "chronon.py"))) == ["staging_query.orders.good__1"]

    def test_the_setting_names_another(self, root, monkeypatch):
        root.staging_query("orders.good")
        monkeypatch.setenv("AIRFLOW__CHRONON__CONF_ROOT", str(root.path))
        monkeypatch.setenv("AIRFLOW__CHRONON__BRANCH", "try")
        assert list(build_dags(near="/nowhere/loader.py")) == ["try--staging_query.orders.good__1"]


def test_the_loader_files_do_what_they_say(root, tmp_path):
    # the two files that users copy, read by Airflow's own reader
    from airflow.dag_processing.dagbag import DagBag

    root.staging_query("orders.good")
    root.staging_query("orders.bad", schedule="@hourlyish")
    for name in ("chronon.py", "chronon_import_errors.py"):
        shutil.copyfile(REPOSITORY / "dags" / name, tmp_path / name)
    good = DagBag(dag_folder=tmp_path / "chronon.py")
    assert list(good.dags) == ["staging_query.orders.good__1"]
    assert good.import_errors == {}
    bad = DagBag(dag_folder=tmp_path / "chronon_import_errors.py")
    assert dict(bad.dags) == {}
    [text] = bad.import_errors.values()
    assert "staging_query/orders.bad__1" in text
