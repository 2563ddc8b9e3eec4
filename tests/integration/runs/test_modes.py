"""One DAG, two schedules: modes that skip, modes that wait for their own fire, and waits whose time is up (C10)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from airflow_api import DagRun
from local_airflow import Component

from tests.support.integration.airflow_client import wait_until
from tests.support.integration.compiled_confs import LAND, CompiledConf, group_by, shell, staging_query
from tests.support.integration.deployment import Deployment, day_label, midnight, utc_now

pytestmark = pytest.mark.soak

MIDNIGHT = "0 0 * * *"
TWO_DAYS = {"start_date": day_label(days_ago=4), "end_date": day_label(days_ago=3), "catchup": True}
#: Fires at the end of the second of the two days.
WEEKLY = f"0 0 * * {midnight(days_ago=2).isoweekday() % 7}"
FAILS = 'if [ "$CHRONON_MODE" = backfill ]; then echo "no luck today"; exit 3; fi\n' + LAND

WEEKLY_BACKFILL = group_by(
    "modes.weekly_backfill", offline=WEEKLY, online=MIDNIGHT, reads="modes.raw", airflow=TWO_DAYS
)
WEEKLY_UPLOAD = group_by("modes.weekly_upload", offline=MIDNIGHT, online=WEEKLY, reads="modes.raw", airflow=TWO_DAYS)
FAILING = group_by(
    "modes.failing",
    offline=MIDNIGHT,
    online=WEEKLY,
    reads="modes.raw",
    airflow={**TWO_DAYS, "start_date": day_label(days_ago=3), "runner": shell(FAILS)},
)
ENDLESS = {"timeout": "25s", "poll_seconds": 3600}  #: polled once, so only the deadline can end it
TIMES_OUT = staging_query(
    "modes.times_out",
    schedule=MIDNIGHT,
    reads="modes.never_lands",
    airflow={"sensor": {**ENDLESS, "on_timeout": "fail"}},
)
GIVES_UP = staging_query(
    "modes.gives_up",
    schedule=MIDNIGHT,
    reads="modes.never_lands",
    airflow={"sensor": {**ENDLESS, "on_timeout": "skip"}},
)


@dataclass(frozen=True)
class Held:
    """Two confs of which one mode fires at ``fire``, which lies ahead, and the other one fired at midnight."""

    deployment: Deployment
    fire: datetime
    backfill_later: CompiledConf
    upload_later: CompiledConf


@pytest.fixture(scope="module")
def held(deployment: Deployment) -> Iterator[Held]:
    """Every conf of this file, dropped at once."""
    if (left := midnight(days_ago=-1) - utc_now()) < timedelta(minutes=4):
        tomorrow = midnight(days_ago=-1)
        wait_until(lambda: utc_now() > tomorrow, timeout=left.total_seconds() + 5, why="the day is over")
    fire = (utc_now() + timedelta(seconds=100)).replace(second=0, microsecond=0)
    later = f"{fire.minute} {fire.hour} * * *"
    backfill_later = group_by("modes.backfill_later", offline=later, online=MIDNIGHT, reads="modes.raw")
    upload_later = group_by("modes.upload_later", offline=MIDNIGHT, online=later, reads="modes.raw")
    confs = (backfill_later, upload_later, WEEKLY_BACKFILL, WEEKLY_UPLOAD, FAILING, TIMES_OUT, GIVES_UP)
    deployment.land("modes.raw", *(day_label(days_ago=days) for days in range(1, 10)))
    deployment.deploy(*confs)
    yield Held(deployment, fire, backfill_later, upload_later)
    deployment.withdraw(*confs)


@pytest.fixture(scope="module")
def modes(held: Held) -> Deployment:
    return held.deployment


def _run(deployment: Deployment, conf: CompiledConf, *, days_ago: int) -> tuple[DagRun, dict[str, str | None]]:
    run = deployment.end_of(deployment.run_of(conf, day_label(days_ago=days_ago)))
    return run, deployment.real.api.task_states(run)


def test_gates_and_deadlines_outlive_a_restart_of_the_triggerer(held: Held) -> None:
    modes, api = held.deployment, held.deployment.real.api
    confs = (held.backfill_later, held.upload_later, TIMES_OUT, GIVES_UP)
    backfill, upload, fails, skips = (modes.run_of(conf, day_label(days_ago=1)) for conf in confs)
    for run in (fails, skips):
        wait_until(
            lambda run=run: any("is not there yet" in line for line in modes.log(run, "wait.modes.never_lands")),
            timeout=60,
            why="the wait has looked once",
        )
    began = modes.task(skips, "wait.modes.never_lands").start_date
    assert began is not None
    modes.real.server.stop_component(Component.TRIGGERER)
    wait_until(lambda: utc_now() > began + timedelta(seconds=27), timeout=60, why="their time is up meanwhile")
    back = utc_now()
    modes.real.server.start_component(Component.TRIGGERER)

    ended = modes.ends_of((backfill, upload, fails, skips))
    assert [run.state for run in ended] == ["success", "success", "failed", "success"]
    assert api.task_states(fails)["wait.modes.never_lands"] == "failed"
    assert set(api.task_states(skips).values()) == {"skipped"}
    for run, end in ((fails, "fails"), (skips, "is skipped")):
        (said,) = (line for line in modes.log(run, "wait.modes.never_lands") if "time is up" in line)
        assert f"the run {end}: modes.never_lands is not there yet" in said
        deadline = datetime.fromisoformat(said.split()[4].rstrip(",Z")).replace(tzinfo=UTC)
        assert deadline < back  # a restart begins no new one
    for run, mode in ((backfill, "backfill"), (upload, "upload")):
        assert set(api.task_states(run).values()) == {"success"}
        opened, worked = modes.task(run, f"gate.{mode}").end_date, modes.task(run, mode).start_date
        assert opened is not None and worked is not None and held.fire <= opened <= worked


def test_a_backfill_that_does_not_fire_is_skipped_and_the_upload_goes_on(modes: Deployment) -> None:
    run, states = _run(modes, WEEKLY_BACKFILL, days_ago=4)
    assert run.state == "success"
    assert (states["gate.backfill"], states["backfill"]) == ("skipped", "skipped")
    assert {states[task] for task in ("gate.upload", "upload", "upload_to_kv", "landed")} == {"success"}
    assert day_label(days_ago=4) in modes.landed(WEEKLY_BACKFILL, suffix="__upload")


def test_a_coarse_backfill_that_fires_writes_every_partition_since_its_last_fire(modes: Deployment) -> None:
    run, states = _run(modes, WEEKLY_BACKFILL, days_ago=3)
    assert run.state == "success" and set(states.values()) == {"success"}
    assert modes.landed(WEEKLY_BACKFILL) == {day_label(days_ago=4), day_label(days_ago=3)}  # C9
    by_table = {(event["name"].rpartition("/")[2], event["partition_key"]) for event in modes.events(run)}
    table = WEEKLY_BACKFILL.table.partition(".")[2]
    assert by_table == {
        (table, day_label(days_ago=4)),
        (table, day_label(days_ago=3)),
        (f"{table}__upload", day_label(days_ago=3)),  # C11: an upload writes only the newest
    }


def test_an_upload_that_does_not_fire_is_skipped_and_the_run_is_green(modes: Deployment) -> None:
    run, states = _run(modes, WEEKLY_UPLOAD, days_ago=4)
    assert run.state == "success"
    assert {states[task] for task in ("gate.upload", "upload", "upload_to_kv")} == {"skipped"}
    assert (states["backfill"], states["landed"]) == ("success", "success")
    run, states = _run(modes, WEEKLY_UPLOAD, days_ago=3)
    assert run.state == "success" and set(states.values()) == {"success"}


def test_a_failed_backfill_does_not_let_the_rest_pass(modes: Deployment) -> None:
    run, states = _run(modes, FAILING, days_ago=3)
    assert run.state == "failed"
    assert states["backfill"] == "failed"
    assert {states[task] for task in ("upload", "upload_to_kv", "landed")} == {"upstream_failed"}
    assert not modes.landed(FAILING) and not modes.events(run)


def test_a_replay_runs_every_mode_whatever_the_schedule(modes: Deployment) -> None:
    day = midnight(days_ago=6)
    modes.real.api.backfill(WEEKLY_BACKFILL.dag_id, start=day, end=day)
    (run,) = modes.runs(WEEKLY_BACKFILL, run_type="backfill")
    run = modes.end_of(run)
    states = modes.real.api.task_states(run)
    assert run.state == "success"
    assert (states["backfill"], states["upload"], states["landed"]) == ("success", "success", "success")
    assert states["upload_to_kv"] == "skipped"  # old values must not go in front of users
    assert day_label(days_ago=6) in modes.landed(WEEKLY_BACKFILL)
