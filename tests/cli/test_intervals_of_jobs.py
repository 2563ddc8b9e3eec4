"""``partitions`` and ``backfill`` of jobs: labels are logical dates, and done is what a run ended well for (H18, H20)."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_chronon.airflow_api.fake import FakeAirflow
from airflow_chronon.airflow_api.login import ENVIRONMENT_VARIABLE
from airflow_chronon.airflow_api.records import DagRecord, RunRecord
from airflow_chronon.conf_root.root import read_conf_root
from airflow_chronon.core.calendar.instants import HOUR, Instant, TimeWindow, iso
from airflow_chronon.core.schedules.intervals import IntervalSchedule
from tests.support.airflow_jobs import see, state_of, write_job
from tests.support.command_line import Answer, Command
from tests.support.confs import at

ID = "job.etl.hourly"
FIRST = at("2026-06-01 00:00")


def newest_interval() -> str:
    """The start of the newest hour that has closed; asked when it is needed, since collecting and running may lie an hour apart."""
    now = time.time()
    if now % HOUR > HOUR - 20:  # the hour would change under the test
        time.sleep(HOUR - now % HOUR)
    return iso(int(time.time()) // HOUR * HOUR - HOUR)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A conf root with one hourly job, first seen at 02:30 on June 1st."""
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "home"))
    deploy(tmp_path / "root", at("2026-06-01 02:30"))
    return tmp_path / "root"


def deploy(root: Path, now: Instant, *, is_paused: bool = False, **schedule: object) -> IntervalSchedule:
    write_job(root, schedule={"cron_expression": "0 * * * *", **schedule})
    plan = read_conf_root(root, environ={}).judge()["job/etl.hourly"]
    see(state_of(root.parent / "home"), plan, now=now, is_paused=is_paused)
    found: IntervalSchedule = plan.schedule  # type: ignore[union-attr,assignment]
    return found


@pytest.fixture
def airflow(root: Path, monkeypatch: pytest.MonkeyPatch) -> FakeAirflow:
    """An Airflow that the commands find, with runs that fired at 03:00, 04:00 (failed) and 07:00."""
    schedule = deploy(root, at("2026-06-01 02:30"))
    fake = FakeAirflow(dag_records={ID: DagRecord(ID)}, jobs={ID: schedule})
    fake.run_records = [ran(2, "success"), ran(3, "failed"), ran(6, "success")]
    for module in ("partitions", "backfill"):
        monkeypatch.setattr(f"airflow_chronon.cli.commands.{module}.find_server", lambda address: fake)
    monkeypatch.setattr("airflow_chronon.cli.commands.backfill.need_server", lambda address: fake)
    return fake


def key(hour: int) -> str:
    return iso(FIRST + hour * HOUR)


def ran(hour: int, state: str, kind: str = "scheduled", *, order: int = 0) -> RunRecord:
    start = FIRST + hour * HOUR
    name = f"{kind}__{key(hour)}__{order}"
    return RunRecord(ID, name, kind, state, key(hour), start, run_after=start + HOUR, start=start + HOUR + order)


@pytest.fixture
def states(command: Command, root: Path) -> Callable[..., list[str]]:
    """The state of each interval and its reason, by the hour at which it begins."""

    def of(first: str, last: str) -> list[str]:
        answer = command("partitions", ID, "--root", root, "--start-ds", first, "--end-ds", last, "--format", "json")
        assert answer.code == 0, answer.err
        rows = answer.json["partitions"]
        return [f"{row['label'][11:16]} {row['state']}" + f" {row.get('reason', '')}".rstrip() for row in rows]

    return of


class TestPartitions:
    def test_a_job_that_no_reconcile_has_seen_is_not_off_but_not_active(self, command, root, states, airflow) -> None:
        # H14, H20
        shutil.rmtree(root.parent / "home" / "chronon_state")
        assert states(key(4), key(4)) == ["04:00 skipped not active: no reconcile has seen it, so it does not fire yet"]

    def test_a_changed_cron_changes_no_past_interval(self, root, states, airflow) -> None:
        # H20: hourly until nine, every other hour since
        deploy(root, at("2026-06-01 09:00"), cron_expression="0 */2 * * *", start_time="2026-06-01T00:00:00Z")
        airflow.run_records = [
            ran(2, "success"),
            ran(3, "failed"),
            replace(
                ran(8, "success"), run_after=FIRST + 10 * HOUR, window=TimeWindow(FIRST + 8 * HOUR, FIRST + 10 * HOUR)
            ),
        ]
        assert states(key(2), key(8)) == [
            "02:00 done",
            "03:00 failed",
            *(f"0{hour}:00 skipped catch-up off" for hour in (4, 5, 6, 7)),
            "08:00 done",
        ]

    def test_tells_done_failed_and_skipped_with_the_reason(self, states, airflow) -> None:
        # H20
        assert states(key(1), key(7)) == [
            "01:00 skipped before the start: its first interval begins at 2026-06-01T02:30:00Z",
            "02:30 done",
            "03:00 failed",
            "04:00 skipped catch-up off",
            "05:00 skipped catch-up off",
            "06:00 done",
            "07:00 skipped catch-up off",
        ]

    def test_one_that_failed_and_then_ended_well_is_done(self, states, airflow) -> None:
        # H18
        airflow.run_records.append(ran(3, "success", "manual", order=1))
        assert states(key(3), key(3)) == ["03:00 done"]

    def test_a_pause_is_a_reason(self, states, root, airflow) -> None:
        # H14, H20
        deploy(root, at("2026-06-01 04:30"), is_paused=True)
        deploy(root, at("2026-06-01 06:30"))
        assert states(key(4), key(5)) == [
            "04:00 skipped paused: since 2026-06-01T04:30:00Z",
            "05:00 skipped paused: since 2026-06-01T04:30:00Z",
        ]

    def test_so_is_a_pause_of_right_now_and_nothing_is_due(self, states, root, airflow) -> None:
        # H20: the reconciler has not seen it yet
        newest = newest_interval()
        airflow.dag_records[ID] = DagRecord(ID, is_paused=True)
        assert set(states(newest, newest)) == {f"{newest[11:16]} skipped paused: in Airflow, now"}
        airflow.dag_records[ID] = DagRecord(ID, is_stale=True)
        assert set(states(newest, newest)) == {f"{newest[11:16]} skipped no DAG: no loader file produces it now"}
        airflow.dag_records[ID] = DagRecord(ID)
        assert states(newest, newest)[0].startswith(f"{newest[11:16]} due")

    def test_what_lies_before_the_first_sight_of_a_job_says_so(self, states, root, airflow) -> None:
        # H20: its start is older
        shutil.rmtree(root.parent / "home" / "chronon_state")
        deploy(root, at("2026-06-01 04:30"), start_time="2026-06-01T00:00:00Z")
        airflow.run_records = [ran(6, "success")]
        assert states(key(3), key(5)) == [
            "03:00 skipped before it was first seen: a reconcile first saw it at 2026-06-01T04:30:00Z",
            "04:00 skipped catch-up off",
            "05:00 skipped catch-up off",
        ]

    def test_so_is_a_schedule_that_was_off(self, states, root, airflow) -> None:
        deploy(root, at("2026-06-01 04:30"), enabled=False)
        deploy(root, at("2026-06-01 06:30"))
        assert states(key(4), key(4)) == ["04:00 skipped schedule off: since 2026-06-01T04:30:00Z"]

    def test_a_cap_and_a_skip_date_are_reasons(self, states, root, airflow) -> None:
        # H10, H11
        start = {"catchup": True, "start_time": "2026-06-01T02:00:00Z"}
        airflow.run_records = [ran(6, "success")]
        deploy(root, at("2026-06-01 02:30"), **start, max_catchup_runs=1, skip_to_date="2026-06-01T04:00:00Z")
        assert states(key(3), key(4)) == [
            "03:00 skipped skipped to a date: skip_to_date is 2026-06-01T04:00:00Z",
            "04:00 skipped capped: max_catchup_runs is 1",
        ]

    def test_without_airflow_nobody_knows_what_ran(self, command, root) -> None:
        answer = command("partitions", ID, "--root", root, "--start-ds", key(3))
        assert answer.code == 0
        assert "what ran is not known" in answer.err

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (("--start-ds", "2026-06-01T03:15Z"), "Use 2026-06-01T03:00:00Z or 2026-06-01T04:00:00Z"),
            (("--start-ds", "soon"), "is not a logical date"),
            (("--start-ds", key(4), "--end-ds", key(3)), "is before start_ds"),
        ],
    )
    def test_what_is_no_logical_date_is_refused(self, command, root, arguments, says) -> None:
        # C27
        answer = command("partitions", ID, "--root", root, *arguments)
        assert answer.code == 2 and says in answer.err

    @pytest.mark.parametrize("name", ["partitions", "backfill"])
    def test_a_range_of_too_many_is_refused(self, command, root, airflow, name) -> None:
        # C27
        shutil.rmtree(root.parent / "home" / "chronon_state")  # it never had another cron
        deploy(root, at("2026-06-01 02:30"), cron_expression="* * * * *")
        answer = command(name, ID, "--root", root, "--start-ds", "2016-01-01", "--end-ds", "2025-12-31")
        assert answer.code == 2 and not answer.out
        assert "more than 500000 intervals (S7). Give a shorter range." in answer.err

    def test_a_day_without_a_fire_says_when_the_next_interval_begins(self, command, root) -> None:
        deploy(root, at("2026-06-01 02:30"), cron_expression="0 9 * * 1-5")
        answer = command("partitions", ID, "--root", root, "--start-ds", "2026-06-06", "--end-ds", "2026-06-07")
        assert answer.code == 2 and "The next one begins at 2026-06-08T09:00:00Z" in answer.err

    def test_a_job_without_a_schedule_has_none(self, command, root) -> None:
        write_job(root, "by_hand")
        answer = command("partitions", "job/etl.by_hand", "--root", root, "--start-ds", "2026-06-01")
        assert answer.code == 2 and "without a schedule" in answer.err


class TestBackfill:
    def backfill(self, command: Command, root: Path, *arguments: str) -> Answer:
        return command("backfill", ID, "--root", root, "--start-ds", key(3), "--end-ds", key(7), *arguments)

    def printed(self, answer: Answer) -> list[str]:
        return [line.strip()[11:16] for line in answer.out.splitlines() if line.startswith("  ")]

    def test_missing_means_without_a_good_run(self, command, root, airflow) -> None:
        answer = self.backfill(command, root)
        assert answer.code == 0, answer.err
        assert self.printed(answer) == ["03:00", "04:00", "05:00", "07:00"]
        created = [run.partition_key for run in airflow.run_records if run.state == "queued"]
        assert created == [key(3), key(4), key(5), key(7)]
        assert "4 partitions, 3 as one range and 1 by key" in answer.out

    def test_after_a_change_of_the_cron_nothing_is_missing_that_was_done(self, command, root, airflow) -> None:
        # H20: hourly until nine, every ten minutes since
        deploy(root, at("2026-06-01 09:00"), cron_expression="*/10 * * * *", start_time="2026-06-01T00:00:00Z")
        assert self.printed(self.backfill(command, root, "--dry-run")) == ["03:00", "04:00", "05:00", "07:00"]

    def test_failed_and_all(self, command, root, airflow) -> None:
        assert self.printed(self.backfill(command, root, "--failed", "--dry-run")) == ["03:00"]
        assert len(self.printed(self.backfill(command, root, "--all", "--dry-run"))) == 5

    def test_is_refused_for_what_is_stale_since_a_job_has_no_table(
        self, root: Path, command: Command, airflow: FakeAirflow
    ) -> None:
        answer = self.backfill(command, root, "--stale")
        assert answer.code == 2 and "intervals of a job are never stale" in answer.err

    def test_one_whose_run_is_under_way_is_left_to_it(self, command, root, airflow) -> None:
        airflow.run_records.append(replace(ran(4, "running"), run_id="now"))
        assert "04:00" not in self.printed(self.backfill(command, root, "--dry-run"))

    def test_a_paused_job_is_refused(self, command, root, airflow) -> None:
        airflow.dag_records[ID] = replace(airflow.dag_records[ID], is_paused=True)
        assert "is paused" in self.backfill(command, root).err

    def test_needs_airflow_to_know_what_is_missing(self, command, root) -> None:
        answer = self.backfill(command, root, "--dry-run")
        assert answer.code == 2 and "AIRFLOW_CONN_CHRONON_AIRFLOW" in answer.err

    def test_what_has_not_ended_is_refused(self, command, root, airflow) -> None:
        answer = command("backfill", ID, "--root", root, "--start-ds", "2199-06-01T00:00Z")
        assert answer.code == 2 and "has not come" in answer.err
