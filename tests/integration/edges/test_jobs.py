"""Jobs whose schedules are held, taken away, given back and changed (H14 to H16, H20)."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from airflow_api import ApiError

from airflow_chronon.jobs import get_job
from tests.support.integration.airflow_client import wait_until
from tests.support.integration.deployment import utc_now
from tests.support.integration.job_lab import JobLab
from tests.support.integration.real_airflow import RealAirflow

pytestmark = pytest.mark.soak

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
EVERY_MINUTE = {"cron_expression": "* * * * *"}
QUICK, REPLAYED = "paused_at_once", "paused_at_once_with_catch_up"
FROM_PYTHON = "from_python"
CHANGED = "changed"


def iso(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


def pass_fires(since: datetime, *, fires: int) -> None:
    """Return once so many minutes have begun after an instant."""
    end = minute(since) + fires * MINUTE + 3 * SECOND
    wait_until(lambda: utc_now() > end, timeout=60 * fires + 30, why=f"{fires} fires pass")


@pytest.fixture(scope="module")
def jobs(airflow: RealAirflow) -> JobLab:
    return JobLab.set_up(airflow, branch="edges")


def test_a_pause_before_the_first_run_is_made_up_only_with_catch_up(jobs: JobLab) -> None:  # H14
    api = jobs.airflow.api
    jobs.write(QUICK, schedule=EVERY_MINUTE)
    jobs.write(REPLAYED, schedule={**EVERY_MINUTE, "catchup": True})
    for name in (QUICK, REPLAYED):
        jobs.here.wait_for(jobs.dag_id(name))
        api.pause(jobs.dag_id(name))
    jobs.reconcile()
    since = utc_now()
    pass_fires(since, fires=3)
    missed = [iso(minute(since) + number * MINUTE) for number in (1, 2)]
    assert jobs.scheduled(QUICK) == jobs.scheduled(REPLAYED) == []
    for name in (QUICK, REPLAYED):
        api.unpause(jobs.dag_id(name))
    again = utc_now()
    jobs.reconcile()
    first = jobs.wait_for_runs(QUICK, timeout=300)[0]
    assert first > iso(minute(again) - MINUTE)  # what fires first is what fires after the pause
    assert not set(jobs.scheduled(QUICK)) & set(missed)
    wait_until(lambda: set(missed) <= set(jobs.scheduled(REPLAYED)), timeout=300, why="the pause is replayed")

    arguments = ("--root", str(jobs.here.root), "--start-ds", missed[0], "--end-ds", missed[-1])
    done = jobs.here.command("partitions", jobs.dag_id(QUICK), *arguments)
    assert done.stdout.count("paused: since") == 2, done.stdout + done.stderr  # H20
    for name in (QUICK, REPLAYED):
        jobs.remove(name)


def test_a_schedule_without_a_start_begins_when_it_is_seen_and_anew_when_it_is_put_back(jobs: JobLab) -> None:
    # H15, H16
    def schedule() -> None:
        job = get_job(f"etl.{FROM_PYTHON}", root=Path(jobs.here.root), environ=jobs.airflow.server.environment)
        job.schedule(
            cron_expression="0 * * ? * *",
            start_time_offset_seconds=3600,
            catchup=True,
            max_active_runs=2,
            max_catchup_runs=24,
        )
        jobs.airflow.parse_soon()

    def seen() -> tuple[str, str]:
        before = utc_now()
        jobs.reconcile()
        return iso(before), iso(utc_now() + SECOND)

    jobs.write(FROM_PYTHON)
    schedule()
    jobs.here.wait_for(jobs.dag_id(FROM_PYTHON))
    earliest, latest = seen()
    first = jobs.wait_for_runs(FROM_PYTHON, timeout=300)[0]
    assert earliest <= first <= latest  # the short first interval of a start that is no fire (H4)
    line = jobs.wait_for_told(FROM_PYTHON, 1)[0]
    assert line["HOPS_LOGICAL_DATE"] == first
    begins = datetime.fromisoformat(line["HOPS_START_TIME"])
    assert begins == datetime.fromisoformat(first) - HOUR  # moved, as asked (H2)

    get_job(f"etl.{FROM_PYTHON}", root=jobs.here.root, environ=jobs.airflow.server.environment).unschedule()
    jobs.airflow.parse_soon()
    jobs.reconcile()
    taken = utc_now()
    pass_fires(taken, fires=3)
    before = jobs.scheduled(FROM_PYTHON)
    schedule()
    earliest, latest = seen()
    fresh = wait_until(
        lambda: [key for key in jobs.scheduled(FROM_PYTHON) if key not in before], timeout=300, why="it runs again"
    )
    assert earliest <= fresh[0] <= latest  # and not after its last run, though it catches up
    replayed = [run for run in jobs.airflow.api.runs(jobs.dag_id(FROM_PYTHON)) if run.run_type == "backfill"]
    assert replayed == []
    jobs.remove(FROM_PYTHON)


def test_a_changed_cron_changes_no_past_interval(jobs: JobLab) -> None:  # H20
    jobs.write(CHANGED, schedule={"cron_expression": "0 * * * *"})
    jobs.here.wait_for(jobs.dag_id(CHANGED))
    jobs.seen_since(int((utc_now() - 6 * HOUR).timestamp()))
    jobs.reconcile()
    ran = jobs.wait_for_runs(CHANGED, timeout=300)[0]
    jobs.wait_for_told(CHANGED, 1)
    newest = datetime.fromisoformat(ran)
    hours = [iso(newest - ago * HOUR) for ago in (3, 2, 1)]
    jobs.write(CHANGED, schedule={"cron_expression": "*/20 * * * *"})
    jobs.reconcile()

    span = (jobs.dag_id(CHANGED), "--root", str(jobs.here.root), "--start-ds", hours[0], "--end-ds", ran)

    def states() -> dict[str, str]:
        done = jobs.here.command("partitions", *span, "--format", "json")
        assert done.returncode == 0, done.stdout + done.stderr
        rows = json.loads(done.stdout)["partitions"]
        return {row["label"]: f"{row['state']} {row.get('reason', '')}".strip() for row in rows}

    assert states() == {**dict.fromkeys(hours, "skipped catch-up off"), ran: "done"}

    def is_known() -> bool:
        return "*/20" in str(jobs.airflow.api.request("GET", f"/dags/{jobs.dag_id(CHANGED)}/details")["doc_md"])

    wait_until(is_known, timeout=240, why="the changed cron is deployed")
    with pytest.raises(ApiError, match=f"Use {hours[0]} or {hours[1]}"):  # C27
        jobs.airflow.api.trigger(jobs.dag_id(CHANGED), partition_key=iso(newest - 3 * HOUR + 20 * MINUTE))
    by_hand = jobs.ended(jobs.airflow.api.trigger(jobs.dag_id(CHANGED), partition_key=hours[0]))
    assert by_hand.state == "success"

    done = jobs.here.command("backfill", *span, "--wait")
    assert done.returncode == 0, done.stdout + done.stderr
    assert states() == dict.fromkeys([*hours, ran], "done")
    windows = {line["HOPS_START_TIME"]: line["HOPS_END_TIME"] for line in jobs.told(CHANGED)}
    assert {key: windows[key] for key in hours} == dict(zip(hours, [*hours[1:], ran], strict=True))
    told = [line["HOPS_LOGICAL_DATE"] for line in jobs.told(CHANGED)]
    assert all(told.count(key) == 1 for key in hours)  # nothing is done twice
    again = jobs.here.command("backfill", *span)
    assert "nothing to replay" in again.stdout, again.stdout + again.stderr
    jobs.remove(CHANGED)
