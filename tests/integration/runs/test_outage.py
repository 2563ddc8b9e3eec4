"""An outage: Airflow's commands still answer, and afterwards every partition that is due comes, and only that, whatever
was run by hand meanwhile (H8 to H11, C28)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from local_airflow import Component

from tests.support.integration.airflow_client import wait_until
from tests.support.integration.compiled_confs import CompiledConf, staging_query
from tests.support.integration.deployment import Deployment, day_label, midnight, utc_now

pytestmark = pytest.mark.soak

MINUTE = timedelta(minutes=1)
LABEL = "%Y-%m-%d-%H-%M"


def _minutely(name: str, **airflow: Any) -> CompiledConf:
    """Fires every minute; its runs wait for ever, so that they cost no worker."""
    return staging_query(f"outage.{name}", every=1, schedule="* * * * *", reads="outage.never_lands", airflow=airflow)


def _daily(name: str, *, reads: str | None = None, **airflow: Any) -> CompiledConf:
    settings = {"catchup": True, "start_date": day_label(days_ago=5), **airflow}
    return staging_query(f"outage.{name}", schedule="0 0 * * *", reads=reads, airflow=settings)


def _minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


START = f"{_minute(utc_now()) - MINUTE:{LABEL}}"
WITHOUT = _minutely("without_catchup")
HELD = _minutely("newest_held_by_hand")
CAPPED = _minutely("capped", catchup=True, start_date=START, max_catchup_runs=1)
WITH = _minutely("with_catchup", catchup=True, start_date=START)
NEW_CAPPED = _daily("new_and_capped", reads="outage.never_lands", max_catchup_runs=2)
NEW_SKIPPING = _daily("new_and_skipping", reads="outage.never_lands", skip_to_date=day_label(days_ago=3))
REPLAYED_AHEAD = _daily("replayed_ahead")
NEXT_HELD = _daily("next_held_by_hand")
BAD = staging_query("outage.bad", schedule="@weekly")
JSON = re.compile(r"^[\[{]", re.M)
WAITING = (WITHOUT, HELD, CAPPED, WITH, NEW_CAPPED, NEW_SKIPPING)
WHOLE_GRID = [day_label(days_ago=days) for days in (5, 4, 3, 2, 1)]


@dataclass(frozen=True)
class Outage:
    """What happened: the newest label of each DAG before it, and the newest one that is due when it ends."""

    last: dict[str, str]
    end: datetime

    @property
    def newest(self) -> str:
        return f"{self.end - MINUTE:{LABEL}}"


@pytest.fixture(scope="module")
def down(deployment: Deployment) -> Iterator[Outage]:
    """Scheduler and dag-processor are gone, for two fires and more; a person goes on working."""
    server, api = deployment.real.server, deployment.real.api
    deployment.drop(BAD)
    deployment.deploy(*WAITING)
    for conf in WAITING:
        wait_until(lambda conf=conf: deployment.runs(conf), timeout=60, why=f"{conf.dag_id} runs before the outage")
    server.stop_component(Component.SCHEDULER)
    try:
        deployment.deploy(REPLAYED_AHEAD, NEXT_HELD)
        api.backfill(REPLAYED_AHEAD.dag_id, start=midnight(days_ago=2), end=midnight(days_ago=1))
        held = api.trigger(NEXT_HELD.dag_id, logical_date=midnight(days_ago=5))
        _wait_for_a_parse(deployment, REPLAYED_AHEAD)  # with a replay ahead of the first scheduled run
        wait_until(lambda: BAD.name in "".join(deployment.import_errors()), timeout=60, why="the bad conf shows")
        server.stop_component(Component.DAG_PROCESSOR)

        last = {conf.dag_id: _labels(deployment, conf)[-1] for conf in WAITING}
        yield Outage(last, _minute(utc_now()) + 2 * MINUTE)
    finally:
        for component in (Component.SCHEDULER, Component.DAG_PROCESSOR):
            server.ensure_component(component)
        server.wait_until_healthy(timeout=120)
    assert held.logical_date == midnight(days_ago=5)
    deployment.withdraw(BAD, REPLAYED_AHEAD, NEXT_HELD)
    deployment.abandon(*WAITING)


@pytest.fixture(scope="module")
def outage(deployment: Deployment, down: Outage) -> Outage:
    """All is up again; the scheduler came first, so that it knows only what was planned before."""
    server = deployment.real.server
    wait_until(lambda: utc_now() > down.end, timeout=130, why="two fires pass")
    back = Outage(down.last, _minute(utc_now()))
    deployment.real.api.trigger(HELD.dag_id, logical_date=back.end - MINUTE)
    server.start_component(Component.SCHEDULER)
    for conf in (WITHOUT, HELD, CAPPED, WITH):
        wait_until(
            lambda conf=conf: _labels(deployment, conf)[-1] > down.last[conf.dag_id],
            timeout=90,
            why=f"{conf.dag_id} runs again",
        )
    server.start_component(Component.DAG_PROCESSOR)
    server.wait_until_healthy(timeout=120)
    return back


def _wait_for_a_parse(deployment: Deployment, conf: CompiledConf) -> None:
    now = utc_now().isoformat()
    deployment.real.parse_soon()
    wait_until(
        lambda: ((deployment.real.api.dag(conf.dag_id) or {}).get("last_parsed_time") or "") > now,
        timeout=60,
        why="the loader file is parsed again",
    )


def _labels(deployment: Deployment, conf: CompiledConf) -> list[str]:
    return sorted(run.partition_key or "" for run in deployment.runs(conf, run_type="scheduled"))


def _since(outage: Outage, deployment: Deployment, conf: CompiledConf) -> list[str]:
    return [label for label in _labels(deployment, conf) if label > outage.last[conf.dag_id]]


def _next(label: str) -> str:
    return f"{datetime.strptime(label, LABEL).replace(tzinfo=UTC) + MINUTE:{LABEL}}"


def _answer(deployment: Deployment, *arguments: str, code: int = 0) -> Any:
    """The JSON that a command prints, without what Airflow says of itself before it."""
    done = deployment.real.server.run(*arguments)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout[JSON.search(done.stdout).start() :])


def test_airflow_lists_the_provider_and_its_plugin(deployment: Deployment, down: Outage) -> None:
    (provider,) = (
        each
        for each in _answer(deployment, "providers", "list", "-o", "json")
        if each["package_name"] == "airflow-chronon"
    )
    assert "one DAG per conf version" in provider["description"]
    (plugin,) = (each for each in _answer(deployment, "plugins", "-o", "json") if each["name"] == "chronon")
    assert "PartitionTimetable" in str(plugin)


def test_airflow_lists_the_bad_conf_and_nothing_good(deployment: Deployment, down: Outage) -> None:
    (error,) = _answer(deployment, "dags", "list-import-errors", "-o", "json", code=1)
    assert error["filepath"].endswith("chronon_import_errors.py")
    assert f"staging_query/{BAD.name}" in error["error"] and "@weekly" in error["error"]
    assert WITHOUT.name not in error["error"]


def test_airflow_chronon_check_tells_good_from_bad(deployment: Deployment, down: Outage) -> None:
    root = str(deployment.real.conf_root)
    verdicts = _answer(deployment, "chronon", "check", "--root", root, "--format", "json", code=1)
    assert verdicts[f"staging_query/{WITHOUT.name}"]["status"] == "ok"
    assert verdicts[f"staging_query/{BAD.name}"]["status"] == "rejected"


@pytest.mark.parametrize("conf", [WITHOUT, CAPPED, HELD], ids=lambda conf: conf.name)
def test_of_what_was_missed_only_the_newest_run_comes(
    deployment: Deployment, outage: Outage, conf: CompiledConf
) -> None:
    first, *rest = _since(outage, deployment, conf)
    assert first >= outage.newest
    assert rest == sorted(set(rest))


def test_with_catch_up_every_missed_run_comes(deployment: Deployment, outage: Outage) -> None:
    wait_until(
        lambda: _since(outage, deployment, WITH)[-1] >= outage.newest, timeout=60, why="the outage has been caught up"
    )
    label = outage.last[WITH.dag_id]
    for found in _since(outage, deployment, WITH):
        label = _next(label)
        assert found == label


@pytest.mark.parametrize(("conf", "days"), [(NEW_CAPPED, (2, 1)), (NEW_SKIPPING, (3, 2, 1))], ids=["cap", "skip date"])
def test_a_new_conf_catches_up_within_its_cap_and_its_skip_date(
    deployment: Deployment, outage: Outage, conf: CompiledConf, days: tuple[int, ...]
) -> None:
    expected = [day_label(days_ago=each) for each in days]
    wait_until(lambda: len(_labels(deployment, conf)) >= len(expected), timeout=60, why=f"{conf.dag_id} catches up")
    assert _labels(deployment, conf) == expected


@pytest.mark.parametrize(
    "conf", [REPLAYED_AHEAD, NEXT_HELD], ids=["a replay far ahead", "the next logical date is taken"]
)
def test_runs_made_by_hand_leave_no_hole(deployment: Deployment, outage: Outage, conf: CompiledConf) -> None:
    wait_until(
        lambda: _labels(deployment, conf) == WHOLE_GRID, timeout=90, why=f"{conf.dag_id} is scheduled for every day"
    )
    runs = deployment.ends_of(deployment.runs(conf))
    assert {run.state for run in runs} == {"success"}
    assert deployment.landed(conf) == set(WHOLE_GRID)
