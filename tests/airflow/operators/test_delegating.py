"""The runner ``operator``: an operator of somebody else's does the work of a mode (C22, C28, H5, H7, S1, S4, S5, S6)."""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException, TaskDeferred
from airflow.serialization.serialized_objects import DagSerialization

from airflow_chronon.airflow.operators import delegating, modes
from airflow_chronon.airflow.operators.delegating import JobLink
from airflow_chronon.airflow.operators.delegating_modes import DelegatingOperator
from airflow_chronon.airflow_api.fake import FakeAirflow
from airflow_chronon.airflow_api.records import DagRecord, RunRecord, TaskRecord
from airflow_chronon.airflow_api.writers import TICKET_KEY
from airflow_chronon.core.runs.write_order import Ticket
from airflow_chronon.dags import ImportErrors, build_dags, raise_import_errors
from tests.support import airflow_jobs
from tests.support.conf_roots import ConfRootOnDisk
from tests.support.schedules import at

KEY, DAG_ID = "2026-06-01", "staging_query.orders.daily__1"
HERE = "tests.support.work_operators"
EXECUTION = {
    "env": {
        "common": {"REGION": "eu", "TIER": "low", "PYTHONPATH": "/x"},
        "modeEnvironments": {"backfill": {"TIER": "high"}},
    },
    "conf": {
        "common": {"spark.a": "1", "spark.b": "1"},
        "modeConfigs": {"backfill": {"spark.b": "2"}, "upload": {"spark.c": "3"}},
    },
}


class State(dict[str, Any]):
    """Stands for what Airflow keeps of an asset or a task."""

    def set(self, key: str, value: Any, *, retention: Any = None) -> None:
        self[key] = value


class Lab:
    """A conf root with one conf whose work an operator does, and its task as a worker has it."""

    def __init__(self, folder: Path) -> None:
        self.root, self.folder, self.seen = ConfRootOnDisk(folder / "chronon"), folder, folder / "seen"
        self.ti = SimpleNamespace(
            dag_id=DAG_ID,
            task_id="backfill",
            try_number=1,
            start_date=datetime(2026, 6, 9, tzinfo=UTC),
            max_tries=2,
            stats_tags={},
        )
        self.state, self.grids = State(), defaultdict[Any, State](State)
        self.run = airflow_jobs.context(KEY)
        self.run["dag_run"].clear_number = 0
        self.run["params"] |= {"start_ds": None, "end_ds": None}

    def settings(self, operator: str = "WritingOperator", more: str = "", **arguments: Any) -> None:
        runner = {"kind": "operator", "class": f"{HERE}.{operator}", "arguments": {"seen": str(self.seen), **arguments}}
        self.root.settings(f"catalog: {{root: {self.folder}/w}}\nrunner: {json.dumps(runner)}\n{more}")
        self.root.staging_query("orders.daily", execution=EXECUTION)

    @property
    def task(self) -> Any:
        return build_dags(conf_root=self.root.path)[DAG_ID].get_task("backfill").prepare_for_execution()

    @property
    def context(self) -> dict[str, Any]:
        return {**self.run, "ti": self.ti, "task_state_store": self.state, "asset_state_store": self.grids}

    def is_cleared(self) -> None:
        self.run["dag_run"].clear_number += 1
        self.ti.try_number += 1
        self.ti.max_tries += self.ti.try_number

    def note(self) -> Any:
        """What the operator was given as its note, once it has begun."""
        self.task.execute(self.context)
        return self.lines()[-1]["note"]

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.seen.read_text().splitlines()] if self.seen.exists() else []


@pytest.fixture
def lab(tmp_path: Path, clock, monkeypatch) -> Lab:
    clock.instant = at("2026-06-10T00:00:00Z")
    monkeypatch.setattr(
        "airflow_chronon.airflow.operators.modes._PlanOperator.log", logging.getLogger("operators"), raising=False
    )
    monkeypatch.setattr(modes, "find_airflow", lambda: None)
    return Lab(tmp_path)


class TestItsArguments:
    def test_hold_what_the_run_stands_for(self, lab):
        names = (
            "partition_key",
            "partitions",
            "start",
            "end",
            "mode",
            "table",
            "name",
            "conf_type",
            "conf_file_name",
            "conf_file",
        )
        lab.settings(note={name: f"{{{name}}}" for name in names} | {"path": "{conf_path}"})
        note = lab.note()
        assert note.pop("path") == str(lab.root.path / "compiled/staging_queries/orders/daily__1")
        assert note == {
            "partition_key": KEY,
            "partitions": KEY,
            "start": "2026-06-01T00:00:00Z",
            "end": "2026-06-02T00:00:00Z",
            "mode": "backfill",
            "table": "shop.orders_daily__1",
            "name": "orders.daily__1",
            "conf_type": "staging_query",
            "conf_file_name": "daily__1",
            "conf_file": "compiled/staging_queries/orders/daily__1",
        }

    def test_hold_every_label_of_a_range(self, lab):
        lab.settings(note=["{partitions}", "{partition_key}", "{start_ds}"])
        lab.run["dag_run"].partition_key = None
        lab.run["params"] |= {"start_ds": "2026-06-01", "end_ds": "2026-06-03"}
        assert lab.note() == ["2026-06-01,2026-06-02,2026-06-03", "2026-06-03", "2026-06-01"]

    def test_hold_the_confs_own_settings_and_variables_those_of_its_mode_over_the_common_ones(self, lab, caplog):
        lab.settings(note={"conf": "{spark_conf}", "env": {"spark.executorEnv.{env}": "{env}"}})
        note = lab.note()
        assert note["conf"] == {"spark.a": "1", "spark.b": "2"}
        env = {name.removeprefix("spark.executorEnv."): value for name, value in note["env"].items()}
        assert (env["REGION"], env["TIER"]) == ("eu", "high")
        assert (env["CHRONON_PARTITION"], env["HOPS_START_TIME"]) == (KEY, "2026-06-01T00:00:00Z")  # H5

    def test_a_variable_of_the_conf_that_decides_what_is_loaded_is_left_out_and_said(self, lab, caplog):  # S5, S6
        lab.settings(note="{env}")
        assert "PYTHONPATH" not in lab.note()
        assert "PYTHONPATH of the conf is left out: it decides how programs are found or loaded (S5)" in caplog.text

    def test_the_settings_variables_win_over_the_confs_and_those_of_the_run_over_all(self, lab, monkeypatch):  # H5
        monkeypatch.setenv("OPERATOR_REGION", "us-{x}")
        lab.settings(
            more="overrides: [{match: '*', runner: {env: {REGION: '${OPERATOR_REGION}', TIER: mid}}}]", note="{env}"
        )
        lab.run["dag_run"].conf = {"env": {"TIER": "top"}}
        note = lab.note()
        assert (note["REGION"], note["TIER"]) == ("us-{x}", "top")

    def test_the_token_is_the_same_for_every_try_and_new_after_a_clear(self, lab):
        lab.settings(note="{job_token}")
        first = lab.note()
        lab.ti.try_number = 2
        lab.run["dag_run"].clear_number = 1  # of another task of the run
        assert lab.note() == first
        lab.is_cleared()
        assert lab.note() != first
        assert len(first) <= 40  # a request_id of Dataproc has no more

    def test_without_a_window_what_needs_none_runs_and_the_rest_is_skipped(self, lab):  # H7
        lab.run["dag_run"].partition_key = None
        lab.settings(note="{table}")
        assert lab.note() == "shop.orders_daily__1"
        lab.settings(note="{partition_key}")
        with pytest.raises(AirflowSkipException, match=r"no partition was asked for"):
            lab.task.execute(lab.context)

    def test_what_airflow_shows_of_them_has_no_secret(self, lab, monkeypatch):  # S4
        monkeypatch.setenv("OPERATOR_TOKEN", "very-secret-token")
        lab.settings(
            more="overrides: [{match: '*', runner: {env: {SECRET: '${OPERATOR_TOKEN}'}}}]",
            note={"token": "${OPERATOR_TOKEN} of {table}", "env": "{env}"},
        )
        task = lab.task
        task.render_template_fields(lab.context)
        assert task.template_fields == ("query", "arguments")
        assert task.arguments["note"]["token"] == "${OPERATOR_TOKEN} of shop.orders_daily__1"
        assert task.arguments["note"]["env"]["SECRET"] == "${OPERATOR_TOKEN}"
        note = lab.note()
        assert (note["token"], note["env"]["SECRET"]) == (
            "very-secret-token of shop.orders_daily__1",
            "very-secret-token",
        )


class TestTheWork:
    def test_is_the_operators_own_with_the_tasks_name_and_result(self, lab):
        lab.settings()
        assert lab.task.execute(lab.context) == "written"
        assert [(line["what"], line["task_id"], line["dag_id"]) for line in lab.lines()] == [
            ("execute", "backfill", DAG_ID)
        ]

    def test_fails_as_the_operator_does(self, lab):
        lab.settings(fails=True)
        with pytest.raises(ValueError, match="the cluster says no"):
            lab.task.execute(lab.context)

    def test_a_stop_of_the_task_reaches_the_operator(self, lab):
        lab.settings(fails=True)
        task = lab.task
        task.on_kill()  # nothing is at work yet
        with pytest.raises(ValueError, match="says no"):
            task.execute(lab.context)
        task.on_kill()
        assert [line["what"] for line in lab.lines()] == ["execute", "killed"]

    def test_leads_to_the_operators_own_page(self, lab):
        lab.settings()
        task = lab.task
        link = JobLink()
        assert link.get_link(task, ti_key=None) == ""
        task.execute(lab.context)
        assert link.get_link(task, ti_key=None) == "https://jobs.example/job-1"

    def test_does_not_begin_on_another_grid(self, lab):  # C22
        lab.settings()
        task = lab.task
        key = modes.contract_key(DAG_ID)
        lab.grids[task.inlets[0]][key] = "1h@0 yyyy-MM-dd-HH ds"
        with pytest.raises(AirflowFailException, match="C22"):
            task.execute(lab.context)
        assert lab.lines() == []

    def test_keeps_the_grid_of_the_first_write(self, lab):  # C22
        lab.settings()
        lab.task.execute(lab.context)
        assert [list(kept) for kept in lab.grids.values()] == [[modes.contract_key(DAG_ID)]]


def test_an_operator_that_finds_its_job_again_does_so_in_a_retry_and_not_after_a_clear(lab):  # C28
    lab.settings("ResumableOperator")
    for _ in range(2):  # a retry takes the result of the job that ended well
        lab.task.execute(lab.context)
    assert [line["what"] for line in lab.lines()] == ["submitted", "result", "result"]
    lab.is_cleared()
    lab.task.execute(lab.context)
    assert [line["what"] for line in lab.lines()][3:] == ["submitted", "result"]


class TestTheWriteOrder:
    def test_the_operator_begins_when_no_earlier_writer_is_at_work(self, lab, monkeypatch):  # C28
        lab.settings()
        plan = lab.task._plan
        fake = FakeAirflow(dag_records={DAG_ID: DagRecord(DAG_ID)}, specs={DAG_ID: plan.spec})
        started = lab.ti.start_date.timestamp()
        for run_id, state, start in (("run-1", "running", started), ("other", "running", started - 1)):
            fake.run_records.append(RunRecord(DAG_ID, run_id, "manual", "running", KEY))
            fake.task_records.append(TaskRecord(DAG_ID, run_id, "backfill", state, 1, start))
        window = plan.schedule.partition(plan.spec.start_of(KEY))
        ticket = Ticket(plan.conf.table, window, 1, 1, is_first=True)
        fake.task_states[DAG_ID, "other", "backfill", TICKET_KEY] = ticket.to_json()
        monkeypatch.setattr(modes, "find_airflow", lambda: fake)
        with pytest.raises(TaskDeferred) as deferred:
            lab.task.execute(lab.context)
        assert (deferred.value.method_name, lab.lines()) == ("execute", [])
        fake.task_records.pop()
        lab.task.resume_execution("execute", {"event": "first"}, lab.context)
        assert [line["what"] for line in lab.lines()] == ["execute"]


class TestADeferrableOperator:
    def test_defers_on_its_own_trigger_and_goes_on_in_its_own_method(self, lab):
        lab.settings("DeferringOperator", awaits=str(lab.folder / "done"), note="{partition_key}")
        with pytest.raises(TaskDeferred) as deferred:
            lab.task.execute(lab.context)
        found = deferred.value
        assert found.trigger.serialize() == (f"{HERE}.FileTrigger", {"path": str(lab.folder / "done")})
        assert (found.method_name, found.kwargs, found.timeout) == (
            "operator.goes_on",
            {"job": "job-1"},
            timedelta(hours=1),
        )
        # another process goes on, with what Airflow kept
        result = lab.task.resume_execution("operator.goes_on", {"job": "job-1", "event": "there"}, lab.context)
        assert result == "written"
        assert [(line["what"], line.get("event")) for line in lab.lines()] == [
            ("submitted", None),
            ("went on", "there"),
            ("execute", None),
        ]
        assert {line["note"] for line in lab.lines()} == {KEY}

    def test_a_wait_of_the_task_itself_goes_on_in_the_task(self, lab):  # C28
        lab.settings("DeferringOperator", awaits=str(lab.folder / "done"))
        with pytest.raises(TaskDeferred) as deferred:
            lab.task.resume_execution("execute", {"event": "first"}, lab.context)
        assert deferred.value.method_name == "operator.goes_on"

    def test_a_trigger_that_failed_fails_the_try(self, lab):
        lab.settings("DeferringOperator", awaits="x")
        with pytest.raises(AirflowException, match="gone wrong"):
            lab.task.resume_execution("__fail__", {"error": "gone wrong"}, lab.context)


class TestAClass:
    @pytest.fixture
    def bad(self, lab):
        def told(path: str, **arguments: Any) -> str:
            lab.settings()
            lab.root.staging_query("orders.good")
            runner = json.dumps({"kind": "operator", "class": path, "arguments": arguments})
            lab.root.settings(f"overrides: [{{match: '*/orders.daily*', runner: {runner}}}]\n")
            found = build_dags(conf_root=lab.root.path)
            assert "staging_query.orders.good__1" in found  # S1
            if DAG_ID in found:
                return ""
            with pytest.raises(ImportErrors) as errors:
                raise_import_errors(conf_root=lab.root.path)
            return str(errors.value)

        return told

    @pytest.mark.parametrize(
        ("path", "why"),
        [
            ("airflow.providers.nobody.operators.spark.SparkOperator", "No module named 'airflow.providers.nobody'"),
            ("tests.support.work_operators.Nobody", "tests.support.work_operators has no Nobody"),
            ("tests.support.nobody.Operator", "there is no module tests.support.nobody"),
        ],
    )
    def test_that_is_missing_ends_the_dag_of_its_conf_alone_in_one_sentence(self, bad, path, why):  # S1
        said = bad(path)
        assert f"runner.class: {path!r} cannot be imported" in said
        assert why in said
        assert "Install the package that has it where DAGs are parsed and where tasks run" in said

    def test_whose_package_ends_the_process_on_import_ends_one_dag(self, bad, tmp_path, monkeypatch):  # S1
        package = tmp_path / "leaving"
        package.mkdir()
        (package / "__init__.py").write_text("raise SystemExit(3)\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        assert "runner.class: 'leaving.operators.Operator' cannot be imported: SystemExit 3" in bad(
            "leaving.operators.Operator"
        )

    def test_is_not_imported_where_dags_are_parsed(self, bad, tmp_path, monkeypatch):
        (tmp_path / "heavy.py").write_text("class Operator: ...\nraise SystemExit(3)\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        assert bad("heavy.Operator") == ""

    def test_is_given_no_argument_of_the_task(self, bad):
        said = bad(f"{HERE}.WritingOperator", retries=3)
        assert "runner.arguments.retries: retries is an argument of the task itself" in said
        assert "Set it in chronon.yaml, or under task_defaults" in said

    def test_that_ends_its_process_on_import_fails_the_task_for_good(self, lab, tmp_path, monkeypatch):  # S1
        (tmp_path / "leaves.py").write_text("class Operator: ...\nraise SystemExit(3)\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        lab.settings()
        lab.root.settings("runner: {kind: operator, class: leaves.Operator}\n")
        with pytest.raises(AirflowFailException, match=r"'leaves.Operator' cannot be imported: SystemExit 3"):
            lab.task.execute(lab.context)

    @pytest.mark.parametrize(
        ("operator", "arguments", "said"),
        [
            ("not_an_operator", {}, "is not the class of an operator"),
            ("WritingOperator", {"nottes": 1}, r"does not take these arguments: .*nottes"),
            ("DeferringOperator", {}, r"does not take these arguments: .*awaits"),
        ],
    )
    def test_that_cannot_be_made_fails_the_task_for_good_in_one_sentence(self, lab, operator, arguments, said):
        lab.settings(operator, **arguments)
        with pytest.raises(AirflowFailException, match=said):
            lab.task.execute(lab.context)

    def test_stands_in_no_serialised_dag(self, lab):
        lab.settings(note="{env}")
        dag = build_dags(conf_root=lab.root.path)[DAG_ID]
        text = json.dumps(DagSerialization.to_dict(dag))
        assert "WritingOperator" not in text
        assert str(lab.seen) not in text
        task = dag.get_task("backfill")
        assert isinstance(task, DelegatingOperator)
        assert dag.get_task("landed").task_type == "LandedOperator"

    def test_a_conf_may_name_one_only_where_the_settings_say_so(self, lab):  # S6
        own = json.dumps(
            {
                "airflow": {
                    "runner": {"kind": "operator", "class": f"{HERE}.WritingOperator", "arguments": {"seen": "x"}}
                }
            }
        )
        lab.root.settings("")
        lab.root.staging_query("orders.daily", customJson=own)
        assert DAG_ID not in build_dags(conf_root=lab.root.path)
        lab.root.settings("confs_may_set: [runner]\n")
        assert isinstance(build_dags(conf_root=lab.root.path)[DAG_ID].get_task("backfill"), DelegatingOperator)


def test_processes_of_an_operator_get_no_secrets_of_airflow_but_those_that_are_named(lab, monkeypatch):  # S5
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", "s3cret")
    monkeypatch.setenv("AIRFLOW_CONN_SPARK", "spark://host")
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", "http://other")
    lab.settings("StartingOperator", more="overrides: [{match: '*', runner: {pass_env: ['AIRFLOW_CONN_S*']}}]")
    lab.task.execute(lab.context)
    (line,) = lab.lines()
    for environment in (line["inherited"], line["more"]):
        assert environment["AIRFLOW_CONN_SPARK"] == "spark://host"
        assert not {"AIRFLOW__CORE__FERNET_KEY", "AIRFLOW_CONN_OTHER"} & environment.keys()
    assert line["more"]["MORE"] == "1"
    shell = Path(f"{lab.seen}.shell").read_text()
    assert "AIRFLOW_CONN_SPARK=spark://host" in shell
    assert "s3cret" not in shell
    assert line["own"]["AIRFLOW_CONN_OTHER"] == "http://other"  # the code itself may need a connection
    assert delegating.passed_on({"AIRFLOW_CONN_OTHER": "x"}) == {}


class TestAJob:
    DAG_ID = "job.etl.ingest"

    @pytest.fixture
    def task(self, lab, monkeypatch):
        def made(settings: str = "", job: str = "", **arguments: Any) -> Any:
            runner = {"kind": "operator", "class": f"{HERE}.WritingOperator"}
            lab.root.settings(
                f"overrides: [{{match: 'job/*', runner: {json.dumps({**runner, 'arguments': arguments})}}}]\n{settings}"
            )
            file = lab.root.path / "jobs" / "etl" / "ingest.yaml"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"version: 1\nenv: {{REGION: '${{JOB_REGION:-eu}}'}}\n{job}")
            return build_dags(conf_root=lab.root.path)[self.DAG_ID].get_task("run").prepare_for_execution()

        return made

    @pytest.fixture
    def context(self, lab):
        lab.ti.dag_id, lab.ti.task_id = self.DAG_ID, "run"
        lab.run["dag_run"].partition_key = None
        lab.run["params"] |= {"start_time": "2026-06-01T03:00:00Z", "end_time": "2026-06-01T04:00:00Z"}
        return lab.context

    def test_is_done_by_an_operator_with_its_window_and_its_variables(self, lab, task, context, monkeypatch):  # H5
        monkeypatch.setenv("JOB_REGION", "secret-region")
        note = {"from": "{start}", "to": "{end}", "is": "{partition_key}", "env": "{env}", "file": "{conf_file}"}
        made = task(seen=str(lab.seen), note=note)
        made.render_template_fields(context)
        assert made.execute(context) == "written"
        (line,) = lab.lines()
        given = line["note"]
        assert (given["from"], given["to"], given["is"]) == (
            "2026-06-01T03:00:00Z",
            "2026-06-01T04:00:00Z",
            "2026-06-01T03:00:00Z",
        )
        assert given["file"] == "jobs/etl/ingest.yaml"
        assert (given["env"]["REGION"], given["env"]["HOPS_END_TIME"]) == ("secret-region", "2026-06-01T04:00:00Z")
        assert made.arguments["note"]["env"]["REGION"] == "${JOB_REGION:-eu}"  # S4
        assert (line["task_id"], line["dag_id"]) == ("run", self.DAG_ID)

    def test_without_a_window_is_skipped_where_it_needs_one(self, lab, task, context):  # H7
        lab.run["params"] |= {"start_time": None, "end_time": None}
        with pytest.raises(AirflowSkipException, match="no partition was asked for"):
            task(seen=str(lab.seen), note="{start}").execute(context)

    def test_goes_on_in_the_operator(self, lab, task, context):
        assert task(seen=str(lab.seen)).resume_execution("operator.execute", None, context) == "written"

    @pytest.mark.parametrize(
        "job",
        [
            "runner: {kind: operator, class: a.b.C}",
            "runner: {arguments: {seen: elsewhere}}",
        ],
    )
    def test_sets_no_operator_of_its_own_unless_the_settings_say_so(self, lab, task, job):  # S6
        settings = f"runner: {{kind: operator, class: {HERE}.WritingOperator, arguments: {{seen: x}}}}\n"
        lab.root.settings(settings)
        file = lab.root.path / "jobs" / "etl" / "own.yaml"
        file.parent.mkdir(parents=True)
        file.write_text(f"version: 1\n{job}\n")
        with pytest.raises(ImportErrors, match="a job may not set an operator of its own, which works inside Airflow"):
            raise_import_errors(conf_root=lab.root.path)
        lab.root.settings(f"{settings}confs_may_set: [runner]\n")
        if "arguments" in job:
            assert "job.etl.own" in build_dags(conf_root=lab.root.path)

    def test_has_no_conf_for_chronons_driver(self, lab, task):
        with pytest.raises(KeyError):
            task(seen="x", note=["{driver_args}"])
        with pytest.raises(
            ImportErrors, match=r"\{driver_args\} is about the conf of Chronon's driver, and a job has none"
        ):
            raise_import_errors(conf_root=lab.root.path)
