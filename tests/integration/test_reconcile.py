"""Reconciles of a real Airflow: drained, archived, deleted; branches side by side; the reconciler DAG itself."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from airflow_api import wait_until

from tests.integration.real_airflow import ROOT, RealAirflow
from tests.integration.reconcile_lab import Deployment, run_reconcile_airflow

DATA = ROOT / "tests" / "data"


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAirflow]:
    with run_reconcile_airflow(tmp_path_factory.mktemp("reconcile")) as running:
        yield running


@pytest.fixture
def deploy(airflow: RealAirflow) -> Iterator[Callable[[str], Deployment]]:
    """Makes deployments; a branch of its own per test keeps tests apart."""
    made: list[Deployment] = []

    def make(branch: str) -> Deployment:
        made.append(Deployment.beside(airflow, branch=branch))
        return made[-1]

    yield make
    for each in made:
        each.loader.unlink(missing_ok=True)


def test_a_run_in_progress_ends_well_after_its_conf_is_gone_and_then_the_dag_goes(
    deploy: Callable[[str], Deployment],
) -> None:  # C23, cases 30 and 31
    here = deploy("drain")
    old, new = "drain--staging_query.t.drained__1", "drain--staging_query.t.drained__2"
    here.write("t.drained__1", "t.stays__1")
    here.wait_for(old)
    assert here.reconcile().returncode == 0
    run = here.trigger_and_wait_until_it_works(old)
    here.write("t.drained__2", "t.stays__1")
    done = here.reconcile()
    assert done.returncode == 0 and f"superseded by {new}" in done.stdout
    here.reconciled_until(lambda: here.is_gone(old), why="the old DAG is gone")
    lines = here.archived(old)
    (archived,) = [line for line in lines if line["kind"] == "run"]
    assert (archived["dag_run_id"], archived["state"]) == (run.run_id, "success")
    tasks = {line["task_id"]: line["state"] for line in lines if line["kind"] == "task_instance"}
    assert tasks["backfill"] == "success"
    assert here.airflow.api.dag(new) is not None
    wait_until(lambda: "nothing to do" in here.reconcile().stdout, timeout=60, why="there is nothing left to do")


def test_previous_then_main_with_a_feature_branch_beside_it_that_is_dropped_again(
    deploy: Callable[[str], Deployment],
) -> None:  # C22 to C24
    main, feature = deploy("story"), deploy("try-v4")
    main.copy(DATA / "previous")
    old, new = (f"story--group_by.checkout.purchases.daily__{version}" for version in (2, 3))
    main.wait_for(old)
    assert main.reconcile().returncode == 0
    run = main.trigger_and_wait_until_it_works(old)
    main.copy(DATA / "main")
    main.reconciled_until(lambda: main.is_gone(old), why="the superseded DAG is gone")
    assert {line["dag_run_id"] for line in main.archived(old) if line["kind"] == "run"} == {run.run_id}
    main.wait_for(new)
    main.trigger_and_wait_until_it_works(new)

    feature.copy(DATA / "main")
    bump_version(feature.root / "compiled" / "group_bys" / "checkout" / "purchases.daily__3", "4")
    tried = "try-v4--group_by.checkout.purchases.daily__4"
    feature.wait_for(tried)
    done = feature.reconcile()
    assert done.returncode == 0 and "which the branch story writes too" in done.stdout
    before = dags_of(main, "story")
    assert len(before) > 15 and new in before
    feature.loader.unlink()
    shutil.rmtree(feature.root)

    def dropped() -> bool:
        done = main.reconcile("--branch", "try-v4", "--retire-branch")
        return "knows a branch" in done.stderr or not dags_of(main, "try-v4")

    wait_until(dropped, timeout=300, why="the branch is gone", every=3)
    assert dags_of(main, "story") == before


def bump_version(file: Path, version: str) -> None:
    """What the compiler does when the author raises a conf's version."""
    document = json.loads(file.read_text())
    stem = document["metaData"]["name"].rpartition("__")[0]
    document["metaData"] |= {"name": f"{stem}__{version}", "version": version}
    file.with_name(f"{file.name.rpartition('__')[0]}__{version}").write_text(json.dumps(document))
    file.unlink()


def dags_of(deployment: Deployment, branch: str) -> set[str]:
    """The DAGs of a branch, stale ones too."""
    found = deployment.airflow.api._pages("/dags", "dags", query={"tags": f"branch:{branch}", "exclude_stale": False})
    return {dag["dag_id"] for dag in found}


def test_empty_half_and_broken_checkouts_retire_nothing(deploy: Callable[[str], Deployment]) -> None:  # C23, case 29
    here = deploy("damaged")
    names = [f"t.kept{number}__1" for number in range(9)]
    here.write(*names)
    first = f"damaged--staging_query.{names[0]}"
    here.wait_for(first)
    assert here.reconcile().returncode == 0
    run = here.trigger_and_wait_until_it_works(first)
    here.write()  # an empty checkout
    empty = here.reconcile()
    assert empty.returncode == 1 and "HOLD" in empty.stdout and f"would retire {first}" in empty.stdout
    here.write(*names[5:])  # half of one
    half = here.reconcile()
    assert half.returncode == 1 and "5 of 9 confs have gone at once" in half.stdout
    # the loader went on producing all of them, so that the run could end
    wait_until(lambda: here.airflow.api.run(first, run.run_id).state == "success", timeout=240, why="its run ends")
    here.write(*names)
    (here.root / "compiled" / "staging_queries" / "t" / "kept0__1").write_text("{")
    broken = here.reconcile()
    assert broken.returncode == 0 and "retire" not in broken.stdout
    assert here.state().tombstones() == {}
    assert len(dags_of(here, "damaged")) == 9


def test_the_reconciler_dag_does_the_same_and_takes_a_confirmation(deploy: Callable[[str], Deployment]) -> None:
    here = deploy("auto")
    here.write("t.one__1", "t.two__1")
    reconciler = here.airflow.dags / "auto_reconciler.py"
    reconciler.write_text(
        "from airflow_chronon.airflow.reconciler import build_reconciler\n"
        f"dag = build_reconciler(near=__file__, conf_root={str(here.root)!r})\n"
    )
    api, dag_id = here.airflow.api, "auto--chronon_reconciler"
    try:
        here.wait_for("auto--staging_query.t.one__1")
        here.wait_for(dag_id)

        def ends(**params: object) -> str:
            run = api.trigger(dag_id, params=params)
            return wait_until(
                lambda: (state := api.run(dag_id, run.run_id).state) in ("success", "failed") and state,
                timeout=240,
                why="the reconciler's run ends",
            )

        assert ends() == "success"
        assert here.state().copies() == {"auto--staging_query.t.one__1", "auto--staging_query.t.two__1"}
        here.write()
        assert ends() == "failed"
        assert here.state().tombstones() == {}
        assert ends(confirm_mass_retire=True) == "success"
        assert len(here.state().tombstones()) == 2
    finally:
        reconciler.unlink()
