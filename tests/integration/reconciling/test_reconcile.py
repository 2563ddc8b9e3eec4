"""Reconciles of a real Airflow: drained, archived, deleted; branches side by side; the reconciler DAG itself."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator

import pytest

from airflow_chronon.airflow_api.client import AirflowRest
from airflow_chronon.airflow_api.errors import Conflict
from airflow_chronon.airflow_api.login import find_login
from airflow_chronon.core.plan import facts
from airflow_chronon.core.plan.actions import Delete, Plan
from airflow_chronon.reconcile.apply import apply_plan
from tests.support.checkout import ROOT
from tests.support.confs import dependency
from tests.support.integration.airflow_client import wait_until
from tests.support.integration.deployment import day_label
from tests.support.integration.real_airflow import RealAirflow
from tests.support.integration.reconcile_lab import Deployment

pytestmark = pytest.mark.soak

DATA = ROOT / "tests" / "data"
GOOD_CONFS = 59  #: of the tree ``main``


@pytest.fixture
def deploy(reconciled_airflow: RealAirflow) -> Iterator[Callable[[str], Deployment]]:
    """Makes deployments; a branch of its own per test keeps tests apart."""
    made: list[Deployment] = []

    def make(branch: str) -> Deployment:
        made.append(Deployment.beside(reconciled_airflow, branch=branch))
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
    here.reconciled_until(here.is_settled, why="there is nothing left to do")


def test_a_run_that_only_waits_for_data_is_ended_when_its_conf_goes(deploy: Callable[[str], Deployment]) -> None:  # C23
    here = deploy("waits")
    old = "waits--staging_query.t.waits__1"
    here.write("t.waits__1", dependencies=[dependency("nobody.writes_this")])
    here.wait_for(old)
    assert here.reconcile().returncode == 0
    run = here.airflow.api.trigger(old, partition_key=day_label(days_ago=2))
    wait_until(
        lambda: here.airflow.api.task_states(run).get("wait.nobody.writes_this") == "deferred",
        timeout=120,
        why="it waits",
    )
    here.write("t.waits__2", dependencies=[dependency("nobody.writes_this")])
    here.reconciled_until(lambda: here.is_gone(old), why="the old DAG is gone, days before its wait would have ended")
    (archived,) = [line for line in here.archived(old) if line["kind"] == "run"]
    assert archived["state"] == "failed" and "this run had begun no work" in str(archived["note"])


def test_a_mistake_in_the_settings_stops_nothing_and_every_page_says_so(
    deploy: Callable[[str], Deployment],
) -> None:  # C23
    here = deploy("typo")
    dag_id = "typo--staging_query.t.typed__1"

    def page() -> str:
        return str(here.airflow.api.request("GET", f"/dags/{dag_id}/details")["doc_md"])

    def is_off() -> bool:
        dag = here.airflow.api.dag(dag_id)
        return dag is None or dag["is_stale"] or "off" in [tag["name"] for tag in dag["tags"]]

    here.write("t.typed__1")
    here.wait_for(dag_id)
    assert here.reconcile().returncode == 0
    here.write("t.typed__1", settings={"cachup": True})
    wait_until(lambda: "the last good settings hold on" in page(), timeout=120, why="its page tells of the mistake")
    assert "cachup" in page() and not is_off()
    done = here.reconcile()
    assert done.returncode == 1 and "the last good settings hold on" in done.stdout and not here.retiring()
    run = here.trigger_and_wait_until_it_works(dag_id)
    wait_until(lambda: here.airflow.api.run(dag_id, run.run_id).state == "success", timeout=240, why="its run ends")
    here.write("t.typed__1", schedule="0 0 31 2 *")
    wait_until(lambda: "is rejected" in page(), timeout=120, why="its page tells that the conf is rejected")
    assert "0 0 31 2 *" in page() and is_off()


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

    feature.copy(DATA / "feature-try-v4")
    tried = "try-v4--group_by.checkout.purchases.daily__4"
    feature.wait_for(tried)
    done = feature.reconcile()
    assert done.returncode == 0 and "branch story: it writes 56 of the tables of this branch too" in done.stdout
    feature.trigger_and_wait_until_it_works(tried)
    assert main.is_settled()  # the branch is none of main's business
    before = dags_of(main, "story")
    assert len(before) == GOOD_CONFS and new in before
    feature.loader.unlink()
    shutil.rmtree(feature.root)

    def dropped() -> bool:
        done = main.reconcile("--branch", "try-v4", "--retire-branch")
        return "knows a branch" in done.stderr or not dags_of(main, "try-v4")

    wait_until(dropped, timeout=300, why="the branch is gone", every=3)
    assert dags_of(main, "story") == before


def dags_of(deployment: Deployment, branch: str) -> set[str]:
    """The DAGs of a branch, stale ones too."""
    found = deployment.airflow.api.pages("/dags", "dags", query={"tags": f"branch:{branch}", "exclude_stale": False})
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
    assert broken.returncode == 0 and "would retire" not in broken.stdout
    assert not here.retiring()
    assert len(dags_of(here, "damaged")) == 9


def test_a_rename_one_of_two_types_and_a_conf_that_comes_back(deploy: Callable[[str], Deployment]) -> None:
    here = deploy("names")
    kept, going = "names--staging_query.t.both__1", "names--group_by.t.both__1"
    old, new = "names--staging_query.t.old__1", "names--staging_query.t.new__1"
    here.write("t.both__1", "t.old__1", group_bys=["t.both__1"])
    for dag_id in (kept, going, old):
        here.wait_for(dag_id)
    assert here.reconcile().returncode == 0
    runs = {dag_id: here.trigger_and_wait_until_it_works(dag_id) for dag_id in (kept, old)}
    here.write("t.both__1", "t.new__1")
    here.reconciled_until(lambda: here.is_gone(old) and here.is_gone(going), why="what left the tree is gone")
    here.wait_for(new)
    assert [run.run_id for run in here.airflow.api.runs(kept)] == [runs[kept].run_id]  # C26: only the GroupBy went

    here.write("t.both__1", "t.new__1", "t.old__1")
    here.wait_for(old)
    here.reconciled_until(here.is_settled, why="it is deployed again")
    assert here.airflow.api.runs(old) == []  # H16: its history is forgotten there
    assert [line["dag_run_id"] for line in here.archived(old) if line["kind"] == "run"] == [runs[old].run_id]
    here.trigger_and_wait_until_it_works(old)


def test_airflow_refuses_to_delete_while_a_task_runs_and_the_reconciler_leaves_it(
    deploy: Callable[[str], Deployment],
) -> None:  # case 31
    here = deploy("busy")
    busy = "busy--staging_query.t.busy__1"
    here.write("t.busy__1")
    here.wait_for(busy)
    assert here.reconcile().returncode == 0
    run = here.trigger_and_wait_until_it_works(busy)
    login = find_login(here.airflow.server.environment)
    assert login is not None
    server = AirflowRest(login)
    with pytest.raises(Conflict):
        server.delete_dag(busy)
    owner = facts.Deployment("busy", "dags-folder")
    tried = apply_plan(
        Plan((Delete(busy),)), server=server, state=here.state(), deployment=owner, by="a test", now=int(time.time())
    )
    assert [type(action) for action, _ in tried.left] == [Delete] and not tried.failed
    wait_until(lambda: here.airflow.api.run(busy, run.run_id).state == "success", timeout=120, why="its run ends well")


def test_the_reconciler_dag_does_the_same_and_takes_a_confirmation(deploy: Callable[[str], Deployment]) -> None:
    here = deploy("auto")
    here.write("t.one__1", "t.two__1")
    reconciler = here.airflow.dags / "auto_reconciler.py"
    reconciler.write_text(
        "from airflow_chronon.airflow.dags.reconciler import build_reconciler\n"
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
        assert set(here.records()) == {"auto--staging_query.t.one__1", "auto--staging_query.t.two__1"}
        here.write()
        assert ends() == "failed"
        assert not here.retiring()
        assert ends(confirm_mass_retire=True) == "success"
        assert len(here.retiring()) == 2
    finally:
        reconciler.unlink()
