"""Tasks whose job runs elsewhere: submitted once, waited for without a worker, cancelled with the task (C28)."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.standard.triggers.temporal import DateTimeTrigger
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException, TaskDeferred

from airflow_chronon.airflow.operators import remote as module
from airflow_chronon.airflow.operators.jobs_left import FollowedJobTrigger, fingerprint
from airflow_chronon.airflow.operators.remote import KEY as RECORD
from airflow_chronon.airflow.operators.remote import JobLeftTrigger
from airflow_chronon.airflow.operators.write_order import WriteOrderTrigger
from airflow_chronon.airflow_api.errors import AirflowUnreachable, NotThere
from airflow_chronon.airflow_api.fake import FakeAirflow
from airflow_chronon.airflow_api.records import DagRecord, RunRecord, TaskRecord
from airflow_chronon.airflow_api.writers import TICKET_KEY
from airflow_chronon.core.calendar.instants import DAY, TimeWindow
from airflow_chronon.core.runs.write_order import Ticket
from tests.support import airflow_jobs
from tests.support.cluster import ScriptCluster
from tests.support.conf_roots import ConfRootOnDisk
from tests.support.remote_tasks import DAG_ID, KEY, ConfRootAt, Task, fire, first_event, until
from tests.support.schedules import at


@pytest.fixture
def cluster(tmp_path: Path) -> ScriptCluster:
    return ScriptCluster.in_folder(tmp_path / "cluster")


@pytest.fixture
def root(tmp_path: Path, cluster: ScriptCluster, clock, quick_waits) -> ConfRootOnDisk:
    clock.instant = at("2026-06-10T00:00:00Z")
    root = ConfRootOnDisk(tmp_path / "chronon")
    runner = json.dumps(cluster.runner())
    root.settings(f"catalog: {{kind: filesystem, root: {tmp_path}/warehouse}}\nrunner: {runner}\n")
    root.staging_query("orders.daily")
    return root


@pytest.fixture
def work(root: ConfRootOnDisk) -> Task:
    return Task(root)


class TestATask:
    def test_submits_waits_without_a_worker_and_ends_well(self, work, cluster):
        trigger = work.defers()
        cluster.becomes("job-1", "SUCCESS")
        work.begins(fire(trigger))
        assert cluster.submissions == ["job-1 2026-06-01"]

    def test_of_a_job_that_failed_fails_and_may_be_tried_again(self, work, cluster):
        trigger = work.defers()
        cluster.becomes("job-1", "FAILED")
        event = fire(trigger)
        with pytest.raises(AirflowException, match="the job job-1 has ended: FAILED") as failed:
            work.begins(event)
        assert not isinstance(failed.value, AirflowFailException)
        work.is_tried_again()
        assert work.defers().job["id"] == "job-2"

    def test_that_is_tried_again_waits_for_the_job_that_is_there(self, work, cluster):
        work.defers()
        work.is_tried_again()
        assert work.defers().job["id"] == "job-1"
        assert len(cluster.submissions) == 1

    def test_that_is_cleared_cancels_its_job_and_submits_when_that_has_ended(self, work, cluster):
        work.defers()
        work.is_cleared()
        trigger = work.defers()
        assert cluster.cancelled == ["job-1"] and len(cluster.submissions) == 1
        assert work.defers(fire(trigger)).job["id"] == "job-2"

    def test_whose_id_nobody_knows_fails_for_good_and_submits_nothing(self, work, cluster):
        work.defers()
        work.state[RECORD]["job_id"] = None  # as if the worker had died in between
        work.is_tried_again()
        says = r"Look for a job of backfill of staging_query\.orders\.daily__1 run-1"
        with pytest.raises(AirflowFailException, match=says):
            work.begins()
        assert len(cluster.submissions) == 1

    def test_that_is_stopped_cancels_its_job(self, work, cluster):
        work.defers()
        work.operator.on_kill()
        assert cluster.cancelled == ["job-1"]

    def test_whose_supervisor_is_gone_leaves_its_job_to_the_next_try(self, work, cluster):
        work.defers()
        work.operator._stop()
        assert cluster.cancelled == []

    def test_that_is_stopped_while_it_submits_cancels_the_job_that_comes_of_it(self, work, cluster):
        # the id is printed on the way out
        cluster.hold("accepted")
        script = cluster.script.read_text()
        cluster.script.write_text(
            script.replace("cd ", "trap 'echo \"submitted with ID: job-1\"; exit 1' TERM\ncd ", 1)
        )

        def stop() -> None:
            until(lambda: cluster.is_held)
            work.operator.on_kill()

        stopper = threading.Thread(target=stop)
        stopper.start()
        with pytest.raises(AirflowException, match="was stopped"):
            work.begins()
        stopper.join()
        assert (cluster.cancelled, work.state[RECORD]["job_id"]) == (["job-1"], "job-1")

    def test_that_was_stopped_before_submits_nothing(self, work, cluster):
        # Airflow lets a stopped task go on for some seconds
        work.operator.on_kill()
        with pytest.raises(AirflowException, match="stopped before it submitted"):
            work.begins()
        assert (cluster.submissions, work.state) == ([], {})

    def test_asks_again_and_spends_no_try_while_it_cannot_be_told_whether_there_is_a_job(self, root, cluster, tmp_path):
        runner = json.dumps(cluster.runner(finds=True))
        root.settings(f"catalog: {{kind: filesystem, root: {tmp_path}/warehouse}}\nrunner: {runner}\n")
        work = Task(root)
        work.defers()
        work.state[RECORD]["job_id"] = None  # as if the worker had died in between
        cluster.is_silent(True)
        work.is_tried_again()
        with pytest.raises(TaskDeferred) as deferred:
            work.begins()
        assert isinstance(deferred.value.trigger, DateTimeTrigger)
        cluster.is_silent(False)
        assert work.defers().job["id"] == "job-1"
        assert len(cluster.submissions) == 1

    def test_whose_record_cannot_be_read_fails_for_good(self, work, cluster):
        work.state[RECORD] = {"job": 7}
        with pytest.raises(AirflowFailException, match=r"cannot be read.*delete the key chronon_job of its state"):
            work.begins()
        assert cluster.submissions == []

    def test_whose_runner_was_changed_does_not_write_beside_the_job_that_it_left(self, root, work, cluster, tmp_path):
        work.defers()
        script = ["sh", "-c", f"touch {tmp_path}/written"]
        runner = json.dumps({"kind": "command", "argv": script})
        root.settings(f"catalog: {{kind: filesystem, root: {tmp_path}/warehouse}}\nrunner: {runner}\n")
        work.operator = Task(root).operator
        work.is_tried_again()
        with pytest.raises(AirflowFailException, match=r"left the job job-1, and the runner that is set now"):
            work.begins()
        assert not (tmp_path / "written").exists()
        work.is_cleared()
        work.begins()
        assert (tmp_path / "written").exists()

    def test_whose_trigger_fails_asks_without_it_and_spends_no_try(self, work, cluster):
        # a triggerer of another release, perhaps
        work.defers()
        assert work.defers(failed="TriggerDagRunNotFound").job["id"] == "job-1"
        cluster.becomes("job-1", "SUCCESS")
        work.begins(failed="TriggerDagRunNotFound")
        assert len(cluster.submissions) == 1

    def test_is_not_cleared_with_another_one_of_its_run(self, work, cluster):
        trigger = work.defers()
        work.run["dag_run"].clear_number += 1
        cluster.becomes("job-1", "SUCCESS")
        work.begins(fire(trigger))
        assert len(cluster.submissions) == 1

    def test_does_not_skip_a_job_that_is_under_way(self, corpus, cluster, root, clock, tmp_path):
        # an upload that a newer partition overtakes while it runs
        shutil.copytree(corpus, tmp_path / "corpus")
        shutil.copy(root.path / "chronon.yaml", tmp_path / "corpus" / "chronon.yaml")
        clock.instant = at("2026-06-10T00:30:00Z")
        task = Task(
            ConfRootAt(tmp_path / "corpus"),
            dag_id="group_by.checkout.purchases.daily__3",
            task_id="upload_to_kv",
            run=airflow_jobs.context("2026-06-09"),
        )
        task.defers()
        clock.instant = at("2026-06-11T00:30:00Z")
        task.is_tried_again()
        assert task.defers().job["id"] == "job-1"
        cluster.becomes("job-1", "FAILED")
        task.is_tried_again()
        with pytest.raises(AirflowSkipException, match="a newer partition has closed"):
            task.begins()


def run_of(run_id: str, state: str, *, key: str = KEY) -> RunRecord:
    """A run of a partition, as Airflow lists it."""
    return RunRecord(DAG_ID, run_id, "manual", state, key, partition_date=at(f"{key}T00:00:00Z"))


class TestAnotherRunOfThePartition:
    @pytest.fixture
    def airflow(self, monkeypatch) -> FakeAirflow:
        """An Airflow where ``run-0`` has failed."""
        fake = FakeAirflow(dag_records={DAG_ID: DagRecord(DAG_ID)})
        for run_id, state, started in (("run-0", "failed", 1.0), ("run-1", "running", 2.0)):
            fake.run_records.append(run_of(run_id, state))
            fake.task_records.append(TaskRecord(DAG_ID, run_id, "backfill", state, 1, started))
        monkeypatch.setattr("airflow_chronon.airflow.operators.modes.find_airflow", lambda: fake)
        return fake

    @pytest.fixture
    def leave(self, work, airflow, cluster) -> Callable[..., None]:
        """Let ``run-0`` have left ``job-0``."""

        def leave(**of: Any) -> None:
            cluster.becomes("job-0", "RUNNING")
            record = {"token": "chronon-0", "number": 0, "clear": 0, "attempt": 1, "job_id": "job-0", **of}
            airflow.task_states[DAG_ID, "run-0", "backfill", RECORD] = record

        return leave

    def test_waits_for_the_job_that_a_failed_one_has_left(self, work, leave, cluster):
        # its worker was killed, and the run has no tries left: nobody follows that job any more
        leave()
        trigger = work.defers()
        assert (type(trigger), trigger.job["id"], cluster.submissions) == (JobLeftTrigger, "job-0", [])
        asyncio.run(trigger.on_kill())
        assert cluster.cancelled == []
        cluster.becomes("job-0", "FAILED")
        assert work.defers(fire(trigger)).job["id"] == "job-1"

    def test_waits_while_that_cannot_be_told(self, work, leave, cluster):
        leave()
        cluster.is_silent(True)
        assert work.defers().job["id"] == "job-0"

    def test_goes_on_when_it_has_ended(self, work, leave):
        leave(ended="failed")
        assert work.defers().job["id"] == "job-1"

    def test_fails_while_nobody_knows_its_id(self, work, leave, cluster):
        leave(job_id=None)
        says = r"run-0 may have submitted .* token chronon-0.* clear run-0 or delete it"
        with pytest.raises(AirflowException, match=says):
            work.begins()
        assert cluster.submissions == []

    def test_looks_for_the_job_where_it_can(self, root, leave, cluster, tmp_path, monkeypatch):
        runner = json.dumps(cluster.runner(finds=True))
        root.settings(f"catalog: {{kind: filesystem, root: {tmp_path}/warehouse}}\nrunner: {runner}\n")
        monkeypatch.setattr(module, "SETTLING_SECONDS", -4)  # without the grace of the command
        leave(job_id=None)
        work = Task(root)
        (cluster.folder / "submissions").write_text("job-0 2026-06-01 chronon-0\n")
        trigger = work.defers()
        assert (type(trigger), trigger.job["id"]) == (JobLeftTrigger, "job-0")
        (cluster.folder / "submissions").write_text("")
        assert work.defers().job["id"] == "job-1"

    def test_of_another_partition_goes_on(self, work, leave, airflow):
        leave()
        airflow.run_records[0] = run_of("run-0", "failed", key="2026-06-02")
        assert work.defers().job["id"] == "job-1"

    def test_waits_for_an_airflow_that_does_not_answer(self, work, leave, airflow, cluster):
        leave()

        def before(name: str) -> None:
            if name == "task_state":
                raise AirflowUnreachable("http://a", "does not answer")

        airflow.before = before
        with pytest.raises(TaskDeferred) as deferred:
            work.begins()
        assert isinstance(deferred.value.trigger, WriteOrderTrigger) and cluster.submissions == []

    def test_follows_its_own_job_whoever_waits(self, work, airflow, cluster):
        # or the two would wait for each other
        work.defers()
        airflow.run_records[0] = run_of("run-0", "running")
        airflow.task_records[0] = TaskRecord(DAG_ID, "run-0", "backfill", "deferred", 1, 1.0)
        work.is_tried_again()
        assert work.defers().job["id"] == "job-1"

    def test_waits_for_one_that_waits_for_its_own_job(self, work, airflow, cluster):
        # it holds no worker, and is the writer all the same
        airflow.run_records[0] = run_of("run-0", "running")
        airflow.task_records[0] = TaskRecord(DAG_ID, "run-0", "backfill", "deferred", 1, 1.0)
        airflow.task_states[DAG_ID, "run-0", "backfill", TICKET_KEY] = ticket_of(work).to_json()
        with pytest.raises(TaskDeferred) as deferred:
            work.begins()
        assert isinstance(deferred.value.trigger, WriteOrderTrigger) and cluster.submissions == []


OTHER_DAG = f"try--{DAG_ID}"


def ticket_of(work: Task, *, key: str = KEY, runner: str | None = None) -> Ticket:
    """The ticket of a task for the same table, by default with the same runner."""
    own = fingerprint(work.operator._runner_settings())
    window = TimeWindow(at(f"{key}T00:00:00Z"), at(f"{key}T00:00:00Z") + DAY)
    return Ticket(work.operator._plan.conf.table, window, 1, 1, True, own if runner is None else runner)


class TestAnotherBranchThatWritesTheTable:  # C24
    @pytest.fixture
    def airflow(self, monkeypatch) -> FakeAirflow:
        """An Airflow where the other branch's ``run-0`` has failed."""
        dags = {DAG_ID: DagRecord(DAG_ID), OTHER_DAG: DagRecord(OTHER_DAG, frozenset({"grid:1d"}))}
        fake = FakeAirflow(dag_records=dags)
        fake.run_records.append(replace(run_of("run-0", "failed"), dag_id=OTHER_DAG))
        fake.task_records.append(TaskRecord(OTHER_DAG, "run-0", "backfill", "failed", 1, 1.0))
        for module_of in ("modes", "jobs_left"):
            monkeypatch.setattr(f"airflow_chronon.airflow.operators.{module_of}.find_airflow", lambda: fake)
        monkeypatch.setattr("airflow_chronon.airflow.operators.jobs_left.LEAVING_SECONDS", 0)
        return fake

    @pytest.fixture
    def leave(self, work, airflow, cluster) -> Callable[..., None]:
        """Let ``run-0`` have left ``job-0``."""

        def leave(*, ticket: Ticket | None = None, state: str = "failed", **of: Any) -> None:
            cluster.becomes("job-0", "RUNNING")
            record = {"token": "chronon-0", "number": 0, "clear": 0, "attempt": 1, "job_id": "job-0", **of}
            airflow.task_states[OTHER_DAG, "run-0", "backfill", RECORD] = record
            kept = (ticket or ticket_of(work)).to_json()
            airflow.task_states[OTHER_DAG, "run-0", "backfill", TICKET_KEY] = kept
            airflow.task_records[0] = replace(airflow.task_records[0], state=state)

        return leave

    def test_waits_for_the_job_that_one_has_left(self, work, leave, cluster):
        leave()
        trigger = work.defers()
        assert (type(trigger), trigger.job["id"], cluster.submissions) == (JobLeftTrigger, "job-0", [])
        cluster.becomes("job-0", "FAILED")
        assert work.defers(fire(trigger)).job["id"] == "job-1"

    @pytest.mark.parametrize("of", [{"ended": "failed"}, {"ticket": "another day"}], ids=["has ended", "another day"])
    def test_goes_on_beside_one_that(self, work, leave, of):
        leave(**(of if "ended" in of else {"ticket": ticket_of(work, key="2026-06-03")}))
        assert work.defers().job["id"] == "job-1"

    def test_of_another_runner_is_waited_for_while_its_own_task_follows_it(self, work, leave, airflow, cluster):
        # as a further try does that has not drawn its number
        leave(ticket=ticket_of(work, runner="another"), state="up_for_retry")
        with pytest.raises(TaskDeferred) as deferred:
            work.begins()
        trigger = deferred.value.trigger
        assert isinstance(trigger, FollowedJobTrigger) and cluster.submissions == []
        assert trigger._goes_on(airflow)
        airflow.task_states[OTHER_DAG, "run-0", "backfill", RECORD]["ended"] = "succeeded"
        assert fire(trigger) == "ended"
        assert work.defers().job["id"] == "job-1"

    def test_of_another_runner_that_nobody_follows_fails_the_try_and_says_what_to_do(self, work, leave, cluster):
        leave(ticket=ticket_of(work, runner="another"))
        says = rf"run-0 of {OTHER_DAG} has left the job job-0, .* cannot ask after it .*clear run-0 of {OTHER_DAG}"
        with pytest.raises(AirflowException, match=says) as failed:
            work.begins()
        assert not isinstance(failed.value, AirflowFailException) and cluster.submissions == []

    def test_is_looked_at_by_work_without_a_job_elsewhere_once_the_table_had_one(
        self, root, work, leave, airflow, tmp_path
    ):
        leave(ended="succeeded")
        work.defers()  # submits job-1, and tells all who write the table
        plain = {"kind": "command", "argv": ["true"]}
        root.settings(f"catalog: {{kind: filesystem, root: {tmp_path}/warehouse}}\nrunner: {json.dumps(plain)}\n")
        other = Task(root, run=airflow_jobs.context(KEY) | {"run_id": "run-2"})
        airflow.calls.clear()
        other.begins()
        assert [name for name, *_ in airflow.calls] == ["tasks", "tasks"]  # no table of its knew of such a job
        other.grids = work.grids
        leave(ticket=ticket_of(work, runner="another"))
        other.state.clear()
        with pytest.raises(AirflowException, match="has left the job job-0"):
            other.begins()


class TestTheTrigger:
    def test_waits_while_the_cluster_is_silent_and_says_so_once(self, work, cluster, caplog):
        caplog.set_level(logging.INFO, logger="operators")
        trigger = work.defers()
        cluster.is_silent(True)

        async def play() -> Any:
            firing = asyncio.create_task(first_event(trigger))
            while caplog.text.count("Connection refused") < 1:
                await asyncio.sleep(0.01)
            cluster.becomes("job-1", "SUCCESS")
            asked_again = [await asyncio.to_thread(trigger._status) for _ in range(3)]
            assert {answer.state.value for answer in asked_again} == {"unknown"}
            assert not firing.done()
            cluster.is_silent(False)
            return (await firing).payload

        assert asyncio.run(asyncio.wait_for(play(), 60)) == "succeeded"
        assert caplog.text.count("Connection refused") == 1

    def test_holds_nothing_of_the_environment_and_fills_it_in_itself(self, root, cluster, tmp_path, monkeypatch):
        # S4, S5
        monkeypatch.setenv("TOKEN_OF_CLUSTER", "hunter-two-three")
        monkeypatch.setenv("AIRFLOW__A", "1")
        script = 'case "$1 $SECRET $AIRFLOW__A" in "hunt"*"-three hunt"*"-three ") echo DONE;; esac'
        runner = {
            **cluster.runner(),
            "status": ["sh", "-c", script, "{job_id}", "${TOKEN_OF_CLUSTER}"],
            "env": {"SECRET": "${TOKEN_OF_CLUSTER}"},
        }
        root.settings(f"catalog: {{kind: filesystem, root: {tmp_path}/warehouse}}\nrunner: {json.dumps(runner)}\n")
        cluster.every_job_begins_as("RUNNING")
        trigger = Task(root).defers()
        assert "hunter" not in str(trigger.serialize())
        assert fire(trigger) == "succeeded"

    def test_cancels_when_somebody_marks_or_clears_the_task(self, work, cluster):
        asyncio.run(work.defers().on_kill())
        assert cluster.cancelled == ["job-1"]

    def test_cancels_nothing_when_another_triggerer_has_taken_over(self, work, cluster, monkeypatch):
        # Airflow ends the trigger of a triggerer that was away for a while in the same way
        fake = FakeAirflow()
        fake.task_records.append(TaskRecord(DAG_ID, "run-1", "backfill", "deferred", 1, 0.0))
        monkeypatch.setattr(module, "find_airflow", lambda: fake)
        asyncio.run(work.defers().on_kill())
        assert cluster.cancelled == []

    def test_cancels_when_the_run_was_deleted(self, work, cluster, monkeypatch):
        # its record went with it: nobody will know of the job
        def gone(name: str) -> None:
            raise NotThere("listing", status=404, detail="there is no such run")

        monkeypatch.setattr(module, "find_airflow", lambda: FakeAirflow(before=gone))
        asyncio.run(work.defers().on_kill())
        assert cluster.cancelled == ["job-1"]

    def test_cancels_nothing_when_that_cannot_be_told(self, work, cluster, monkeypatch):
        def unreachable() -> None:
            raise AirflowUnreachable("http://a", "does not answer")

        monkeypatch.setattr(module, "find_airflow", unreachable)
        asyncio.run(work.defers().on_kill())
        assert cluster.cancelled == []


class TestAJobFile:
    def test_goes_the_same_way(self, root, cluster):
        airflow_jobs.write_job(root.path, runner=cluster.runner(), env={"REGION": "eu"})
        window = {"start_time": "2026-06-01T09:00:00Z", "end_time": "2026-06-01T10:00:00Z"}
        task = Task(root, dag_id="job.etl.hourly", task_id="run", run=airflow_jobs.context(**window))
        trigger = task.defers()
        task.is_tried_again()
        assert task.defers().job["id"] == "job-1"
        cluster.becomes("job-1", "DONE")
        task.begins(fire(trigger))
        assert cluster.submissions == ["job-1 2026-06-01T09:00:00Z"]
        assert [(cluster.folder / f"{each}.env").read_text() for each in ("submit", "status")] == ["eu none\n"] * 2
