"""What strands quietly, or goes wrong in silence, with confs: each is named, and ends (C22, C23, C30)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow_api import DagRun

from tests.support.confs import dependency
from tests.support.integration.airflow_client import wait_until
from tests.support.integration.compiled_confs import LAND, shell
from tests.support.integration.mail_sink import MailSink
from tests.support.integration.reconcile_lab import LOADER, Deployment
from tests.support.integration.witness import CALLBACK, told

pytestmark = pytest.mark.soak

Deploy = Callable[[str], Deployment]
NEVER_LANDS = "vendor.never_lands"
LANDS = {
    "runner": shell(LAND),
    "catalog": {"kind": "filesystem", "root": "${CHRONON_WAREHOUSE}"},
    "retries": 0,
}


def ended(here: Deployment, run: DagRun, *, timeout: float = 300) -> DagRun:
    def end() -> DagRun | None:
        found = here.airflow.api.run(run.dag_id, run.run_id)
        return found if found.state in ("success", "failed") else None

    return wait_until(end, timeout=timeout, why=f"{run.run_id} ends")


def unfinished(here: Deployment, dag_id: str) -> list[DagRun]:
    return [run for run in here.airflow.api.runs(dag_id) if run.state in ("queued", "running")]


def log_of(here: Deployment, run: DagRun, task_id: str) -> str:
    (task,) = (each for each in here.airflow.api.tasks(run.dag_id, run.run_id) if each.task_id == task_id)
    return here.airflow.api.log_text(task)


def test_a_conf_retires_past_a_cleared_run_of_a_cancelled_backfill(deploy: Deploy) -> None:  # C23
    here = deploy("stranded")
    api, dag_id = here.airflow.api, "stranded--staging_query.t.goes__1"
    here.write("t.goes__1", "t.stays__1")
    here.wait_for(dag_id)
    assert here.reconcile().returncode == 0
    made = api.backfill(
        dag_id, start=datetime(2026, 6, 1, tzinfo=UTC), end=datetime(2026, 6, 2, tzinfo=UTC), max_active_runs=1
    )
    wait_until(lambda: api.runs(dag_id, state="running"), timeout=240, why="the first of its runs has begun")
    api.request("PUT", f"/backfills/{made['id']}/cancel")
    wait_until(lambda: not unfinished(here, dag_id), timeout=240, why="no run of the backfill is left")
    (never_ran,) = (run for run in api.runs(dag_id, state="failed") if run.partition_key == "2026-06-02")
    api.request("POST", f"/dags/{dag_id}/dagRuns/{never_ran.run_id}/clear", json={"dry_run": False})
    assert api.run(dag_id, never_ran.run_id).state == "queued"

    named = here.command("plan", "--root", str(here.root))
    assert f"end       {dag_id}: 1 run queued for ever" in named.stdout, named.stdout + named.stderr
    here.write("t.stays__1")
    here.reconciled_until(lambda: here.is_gone(dag_id), why="the DAG of the conf that is gone goes too")
    notes = {
        line["dag_run_id"]: (line["state"], line["note"]) for line in here.archived(dag_id) if line["kind"] == "run"
    }
    state, note = notes[never_ran.run_id]
    assert state == "failed" and "its backfill was cancelled" in str(note)


class TestSelectors:
    """A selector in a loader file (C23)."""

    SEEN, LEFT_OUT = "selectors--staging_query.t.seen__1", "selectors--staging_query.t.left_out__1"

    def test_one_that_fits_nothing_is_an_import_error_and_confs_without_a_dag_are_named(self, deploy: Deploy) -> None:
        here = deploy("selectors")
        here.write("t.seen__1", "t.left_out__1")
        for dag_id in (self.SEEN, self.LEFT_OUT):
            here.wait_for(dag_id)
        assert here.reconcile().returncode == 0
        assert "C23" not in self.plan(here)

        self.select(here, "staging_query/t.seen*")
        self.wait_until_stale(here, self.LEFT_OUT)
        (line,) = [line for line in self.plan(here).splitlines() if "C23" in line]
        assert self.LEFT_OUT in line and "no loader file produces its DAG any more" in line

        self.select(here, "staging_query/nope*")
        error = wait_until(lambda: self.import_error(here), timeout=240, why="the selector is an import error")
        assert "build_dags(match='staging_query/nope*') fits no conf and no job" in error
        self.wait_until_stale(here, self.SEEN)
        text = self.plan(here)
        assert self.SEEN in text and self.LEFT_OUT in text
        assert not here.retiring()

        here.loader.write_text(LOADER.format(root=str(here.root)))
        here.airflow.parse_soon()
        for dag_id in (self.SEEN, self.LEFT_OUT):
            wait_until(lambda dag_id=dag_id: not self.is_stale(here, dag_id), timeout=240, why=f"{dag_id} is back")
        wait_until(lambda: not self.import_error(here), timeout=240, why="the import error is gone")

    def select(self, here: Deployment, match: str) -> None:
        text = LOADER.format(root=str(here.root))
        here.loader.write_text(text.replace("near=__file__", f"near=__file__, match={match!r}"))
        here.airflow.parse_soon()

    def plan(self, here: Deployment) -> str:
        done = here.command("plan", "--root", str(here.root))
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def is_stale(self, here: Deployment, dag_id: str) -> bool:
        return bool((here.airflow.api.dag(dag_id) or {"is_stale": True})["is_stale"])

    def wait_until_stale(self, here: Deployment, dag_id: str) -> None:
        def look() -> bool:
            here.airflow.parse_soon()
            return self.is_stale(here, dag_id)

        wait_until(look, timeout=240, every=3, why=f"Airflow sees that no file produces {dag_id}")

    def import_error(self, here: Deployment) -> str:
        found = here.airflow.api.import_errors()
        return "".join(each["stack_trace"] for each in found if each["filename"].endswith(here.loader.name))


def test_a_backfill_makes_each_day_of_its_range_where_airflow_is_in_another_zone(deploy: Deploy) -> None:
    here = deploy("zone")
    api, dag_id = here.airflow.api, "zone--staging_query.t.days__1"
    here.write("t.days__1", settings=LANDS)
    here.wait_for(dag_id)

    def made() -> list[str]:
        wait_until(lambda: all(each["completed_at"] for each in api.backfills(dag_id)), timeout=300, why="it ends")
        assert {run.state for run in api.runs(dag_id)} == {"success"}
        return sorted(str(run.partition_key) for run in api.runs(dag_id))

    def create(first: str, last: str) -> None:
        done = here.airflow.server.run(
            "backfill", "create", "--dag-id", dag_id, "--from-date", first, "--to-date", last, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr

    create("2026-06-26", "2026-06-28")
    days = ["2026-06-26", "2026-06-27", "2026-06-28"]
    assert made() == days
    create("2026-06-30", "2026-06-30")
    assert made() == [*days, "2026-06-30"]
    # what is given in UTC stays, as what the API is given does
    api.backfill(dag_id, start=datetime(2026, 7, 2, tzinfo=UTC), end=datetime(2026, 7, 3, tzinfo=UTC))
    assert made() == [*days, "2026-06-30", "2026-07-02", "2026-07-03"]


def test_callback_and_mail_tell_of_a_wait_that_fails(deploy: Deploy, mails: MailSink) -> None:
    here = deploy("mail")
    dag_id, task_id = "mail--staging_query.t.waits__1", f"wait.{NEVER_LANDS}"
    defaults = {"on_failure_callback": CALLBACK, "email": "someone@example.com"}
    settings = {"sensor": {"poll_seconds": 1, "timeout": "1s"}, "retries": 0, "task_defaults": defaults}
    here.write("t.waits__1", dependencies=[dependency(NEVER_LANDS)], settings=settings)
    here.wait_for(dag_id)
    run = ended(here, here.airflow.api.trigger(dag_id, partition_key="2026-06-01"))
    assert run.state == "failed"
    assert here.airflow.api.task_states(run)[task_id] == "failed"
    assert told(here.airflow.warehouse, "callback", dag_id) == [f"callback {dag_id} {task_id}"]
    (mail,) = wait_until(lambda: mails.about(dag_id), timeout=60, why="the mail is there")
    assert mail["To"] == "someone@example.com"
    assert task_id in str(mail["Subject"])
    assert NEVER_LANDS in mail.as_string()


def test_another_format_or_column_under_one_version_fails_before_any_wait(deploy: Deploy) -> None:  # C22
    here = deploy("shape")
    api, dag_id = here.airflow.api, "shape--staging_query.t.shaped__1"
    reads: dict[str, Any] = {"dependencies": [dependency(NEVER_LANDS, "1h")]}
    label = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=5)

    def write(**of: Any) -> None:
        here.write("t.shaped__1", "t.stays__1", settings=LANDS, interval="1h", schedule="@never", **of)

    def waits() -> bool:
        tasks = api.request("GET", f"/dags/{dag_id}/tasks")["tasks"]
        return f"wait.{NEVER_LANDS}" in [task["task_id"] for task in tasks]

    write()
    here.wait_for(dag_id)
    here.wait_for("shape--staging_query.t.stays__1")
    assert here.reconcile().returncode == 0
    assert ended(here, api.trigger(dag_id, partition_key=f"{label:%Y-%m-%d-%H-%M}")).state == "success"

    def page() -> str:
        return str(api.request("GET", f"/dags/{dag_id}/details")["doc_md"])

    for info, shape, shown, key in (
        (
            {"partitionFormat": "yyyyMMddHHmm"},
            "1h, format yyyyMMddHHmm",
            "`ds` as `yyyyMMddHHmm`",
            f"{label:%Y%m%d%H%M}",
        ),
        ({"partitionColumn": "dt"}, "1h, column dt", "`dt` as", f"{label:%Y-%m-%d-%H-%M}"),
    ):
        write(info=info, **reads)
        wait_until(waits, timeout=240, why="the other shape is deployed, and reads a table that is not there")
        wait_until(lambda shown=shown: shown in page(), timeout=240, why=f"its page shows {shown}")
        run = ended(here, api.trigger(dag_id, partition_key=key))
        assert run.state == "failed"  # at once, and not after two days
        said = log_of(here, run, f"wait.{NEVER_LANDS}")
        assert f"was begun on the grid 1h, and the conf is now on {shape}: nothing is written" in said
        assert api.task_states(run)["backfill"] == "upstream_failed"
        done = here.reconcile()
        assert done.returncode == 1 and f"was begun on the grid 1h, and the conf is now on {shape}" in done.stdout
