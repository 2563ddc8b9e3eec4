"""Jobs from Python (H19)."""

from __future__ import annotations

import errno
import os
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pytest_mock import MockerFixture

from airflow_chronon.airflow_api.fake import FakeAirflow
from airflow_chronon.airflow_api.records import DagRecord
from airflow_chronon.errors import ChrononError, Rejected
from airflow_chronon.jobs import Job, get_job
from tests.support.confs import at

UTC = UTC
TEXT = """\
# keep me
version: 2
runner: {kind: command, argv: ["python", "ingest.py"]}
schedule:
  cron_expression: "0 0 * ? * *" # hourly
  start_time: 2026-01-01T00:00:00Z
  catchup: true
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, "etl", "ingest", TEXT)
    return tmp_path


def write(root: Path, team: str, name: str, text: str) -> Path:
    path = root / "jobs" / team / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def job_of(root: Path, name: str = "ingest", *, now: str = "2026-06-03T10:20", **environ: str) -> Job:
    return get_job(name, root=root, environ=environ, clock=lambda: float(at(now)))


def text_of(job: Job) -> str:
    return job.path.read_text()


class TestWrongTypes:
    @pytest.mark.parametrize("name", [None, 5, b"x", [], "etl.j\0", "etl.\ud800"])
    def test_a_name_that_is_none(self, root: Path, name: Any) -> None:
        with pytest.raises(ChrononError, match="does not name a job"):
            get_job(name, root=root)

    @pytest.mark.parametrize("name", ["", "A=B"])
    def test_variables_that_nobody_can_name(self, root: Path, name: str) -> None:  # H5
        airflow = FakeAirflow(dag_records={"job.etl.ingest": DagRecord("job.etl.ingest")})
        with pytest.raises(ChrononError, match="cannot be the name of a variable"):
            job_of(root).run(env={name: "x"}, airflow=airflow)
        assert airflow.run_records == []

    @pytest.mark.parametrize("airflow", [5, object(), b"http://host"])
    def test_an_airflow_that_is_none(self, root: Path, airflow: Any) -> None:
        with pytest.raises(ChrononError, match="names no Airflow"):
            job_of(root).run(airflow=airflow)

    @pytest.mark.parametrize("env", [{"A": 5}, {5: "x"}, {"A": "\0"}])
    def test_variables_that_are_no_text(self, root: Path, env: Any) -> None:
        with pytest.raises(ChrononError, match="env holds something else than text"):
            job_of(root).run(env=env, airflow=FakeAirflow())


class TestFinding:
    @pytest.mark.parametrize(
        "name",
        [
            "ingest",
            "etl.ingest",
            "job/etl.ingest",
            "job.etl.ingest",
            "jobs/etl/ingest.yaml",
        ],
    )
    def test_by_whatever_people_type(self, root: Path, name: str) -> None:
        job = job_of(root, name)
        assert (job.name, job.key, job.dag_id) == ("etl.ingest", "job/etl.ingest", "job.etl.ingest")

    def test_the_environment_names_the_root(self, root: Path) -> None:
        assert (
            get_job("ingest", environ={"AIRFLOW__CHRONON__CONF_ROOT": str(root)}).path == root / "jobs/etl/ingest.yaml"
        )

    def test_an_unknown_job_is_one_sentence_with_the_nearest(self, root: Path) -> None:
        with pytest.raises(ChrononError, match=r"no job is called 'ingests'.*[Dd]id you mean"):
            job_of(root, "ingests")

    def test_a_name_of_two_teams_must_be_distinguished(self, root: Path) -> None:
        write(root, "web", "ingest", TEXT)
        with pytest.raises(ChrononError, match=r"job/etl\.ingest and of job/web\.ingest"):
            job_of(root)
        assert job_of(root, "web.ingest").key == "job/web.ingest"

    def test_a_bad_job_says_what_is_wrong_with_it(self, root: Path) -> None:
        write(root, "etl", "bad", "version: 1\nschedul: {}\n")
        with pytest.raises(Rejected, match=r"[Dd]id you mean"):
            job_of(root, "bad")
        assert job_of(root).key == "job/etl.ingest"  # one bad file never touches another

    def test_a_missing_root_is_reported(self, tmp_path: Path) -> None:
        with pytest.raises(ChrononError, match="there is no conf root") as refused:
            job_of(tmp_path / "nowhere")
        assert "root= or AIRFLOW__CHRONON__CONF_ROOT" in str(refused.value) and "--root" not in str(refused.value)


class TestLooking:
    def test_the_schedule_has_the_documents_names(self, root: Path) -> None:
        schedule = job_of(root).job_schedule
        assert schedule is not None
        assert (schedule.cron_expression, schedule.catchup, schedule.max_active_runs) == ("0 0 * ? * *", True, 1)
        assert schedule.start_time == datetime(2026, 1, 1, tzinfo=UTC) and schedule.end_time is None
        assert schedule.next_execution_date_time == datetime(2026, 6, 3, 11, tzinfo=UTC)

    @pytest.mark.parametrize("line", ["enabled: false", "end_time: 2026-06-03T10:30:00Z"])
    def test_nothing_to_come_is_none(self, root: Path, line: str) -> None:
        write(root, "etl", "ingest", f"{TEXT}  {line}\n")
        schedule = job_of(root).job_schedule
        assert schedule is not None and schedule.next_execution_date_time is None

    def test_a_skip_date_puts_the_next_one_off(self, root: Path) -> None:  # H11
        write(root, "etl", "ingest", f"{TEXT}  skip_to_date: 2026-07-01\n")
        schedule = job_of(root).job_schedule
        assert schedule is not None and schedule.next_execution_date_time == datetime(2026, 7, 1, 1, tzinfo=UTC)

    def test_a_job_by_hand_has_no_schedule(self, root: Path) -> None:
        write(root, "etl", "ingest", TEXT[: TEXT.index("schedule:")])
        assert job_of(root).job_schedule is None


class TestScheduling:
    def test_as_the_document_shows_it(self, root: Path) -> None:
        job = job_of(root)
        schedule = job.schedule(
            cron_expression="0 0 * ? * * *",
            start_time=datetime(2026, 1, 1),  # noqa: DTZ001 (naive is UTC)
            start_time_offset_seconds=3600,
            catchup=True,
            max_active_runs=2,
            max_catchup_runs=24,
        )
        assert schedule == job.job_schedule
        assert schedule.start_time == datetime(2026, 1, 1, tzinfo=UTC)
        assert (schedule.start_time_offset_seconds, schedule.catchup) == (3600, True)
        assert (schedule.max_active_runs, schedule.max_catchup_runs) == (2, 24)
        assert text_of(job).startswith("# keep me\n") and "# hourly" in text_of(job)

    def test_another_time_zone_is_converted(self, root: Path) -> None:
        schedule = job_of(root).schedule("@daily", datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=2))))
        assert schedule.start_time == datetime(2025, 12, 31, 22, tzinfo=UTC)

    def test_a_second_one_replaces_the_first(self, root: Path) -> None:
        job = job_of(root)
        job.schedule("@daily", start_time="2026-02-01", lookback_seconds=90_000, max_catchup_runs=5, catchup=True)
        schedule = job.schedule("@hourly")
        assert (schedule.cron_expression, schedule.start_time, schedule.lookback_seconds) == ("@hourly", None, None)
        assert (schedule.catchup, schedule.max_catchup_runs) == (False, None)

    def test_taken_out_and_put_in_again(self, root: Path) -> None:
        job = job_of(root)
        job.unschedule()
        assert job.job_schedule is None and text_of(job) == TEXT[: TEXT.index("schedule:")]
        job.unschedule()
        assert job.schedule("@daily").cron_expression == "@daily"

    def test_an_end_offset_warns_and_is_not_written(self, root: Path) -> None:  # H2
        job = job_of(root)
        with pytest.warns(UserWarning, match="ignored"):
            job.schedule("@daily", end_time_offset_seconds=0)
        assert "end_time_offset" not in text_of(job)

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ({"start_time_offset_seconds": -3600}, "H2"),
            ({"lookback_seconds": 60, "start_time_offset_seconds": 60}, "H3"),
            ({"cron_expression": "0 0 0 1,L * ?"}, "L in the day-of-month"),
            ({"cron_expression": "𐀀"}, "H1"),
            ({"max_active_runs": 0}, "1 or more"),
            ({"end_time_offset_seconds": "1h"}, "whole number"),
            ({"enabled": "yes"}, "true or false"),
            ({"start_time": "soon"}, "not an instant"),
            ({"start_time": datetime(1960, 1, 1, tzinfo=UTC)}, "1970 to 2199"),
        ],
    )
    def test_a_bad_schedule_is_refused_and_nothing_written(
        self, root: Path, arguments: dict[str, Any], said: str
    ) -> None:
        job = job_of(root)
        with pytest.raises(ChrononError, match=said):
            job.schedule(**{"cron_expression": "@daily", **arguments})
        assert text_of(job) == TEXT

    def test_catch_up_needs_no_start(self, root: Path) -> None:  # H15
        job, more = job_of(root), {"max_active_runs": 2, "max_catchup_runs": 24}
        found = job.schedule(
            cron_expression="0 0 * ? * * *",
            start_time_offset_seconds=3600,
            catchup=True,
            max_active_runs=2,
            max_catchup_runs=24,
        )
        assert found.catchup and found.start_time is None and more.items() <= vars(found).items()

    def test_permissions_and_links_stay(self, root: Path) -> None:
        path = root / "jobs" / "etl" / "ingest.yaml"
        path.rename(root / "kept.yaml")
        path.symlink_to(root / "kept.yaml")
        path.chmod(0o640)
        job_of(root).schedule("@daily")
        assert path.is_symlink() and "@daily" in (root / "kept.yaml").read_text()
        assert (root / "kept.yaml").stat().st_mode & 0o777 == 0o640

    @pytest.mark.parametrize("call", ["replace", "fsync"])
    def test_a_failed_write_leaves_the_old_file_and_no_litter(
        self, root: Path, mocker: MockerFixture, call: str
    ) -> None:
        job = job_of(root)
        mocker.patch(f"airflow_chronon.jobs.os.{call}", side_effect=OSError(errno.EROFS, os.strerror(errno.EROFS)))
        with pytest.raises(ChrononError, match="cannot be written: Read-only file system") as refused:
            job.schedule("@daily")
        assert str(job.path) in str(refused.value) and refused.value.fault.remedy
        assert text_of(job) == TEXT and os.listdir(job.path.parent) == ["ingest.yaml"]

    @pytest.mark.parametrize(
        "moment", [date(2026, 1, 1), 5, datetime(1960, 1, 1, tzinfo=UTC), datetime(2500, 1, 1, tzinfo=UTC)]
    )
    def test_what_is_no_instant_is_refused_in_one_sentence(self, root: Path, moment: Any) -> None:
        job = job_of(root)
        with pytest.raises(ChrononError, match="is not an instant of the years 1970 to 2199"):
            job.schedule("@daily", start_time=moment)
        assert text_of(job) == TEXT

    def test_a_read_only_tree_is_one_clear_error(self, root: Path) -> None:
        job, was = job_of(root), os.geteuid()
        if was == 0:  # root may write everywhere, so somebody else tries
            for folder in (*root.parents, *job.path.parents):
                folder.chmod(folder.stat().st_mode | 0o055)
            job.path.chmod(0o644)
        job.path.parent.chmod(0o555)
        try:
            os.seteuid(was or 65534)
            with pytest.raises(ChrononError, match="cannot be written: Permission denied"):
                job.schedule("@daily")
        finally:
            os.seteuid(was)
            job.path.parent.chmod(0o755)

    def test_a_file_that_cannot_be_edited_is_left_alone(self, root: Path) -> None:
        shared = "version: 1\nrunner: {argv: [&cron '@hourly']}\nschedule: {cron_expression: *cron }\n"
        write(root, "etl", "ingest", shared)
        job = job_of(root)
        with pytest.raises(ChrononError, match="by hand"):
            job.schedule("@daily")
        assert text_of(job) == shared

    def test_what_a_merge_key_brings_is_laid_over_or_left_alone(self, root: Path) -> None:
        merging = "version: 1\nrunner: {argv: [x]}\nschedule:\n  <<: {cron_expression: '@daily', max_active_runs: 2}\n"
        write(root, "etl", "ingest", merging)
        job = job_of(root)
        assert job.schedule("@hourly", max_active_runs=3).cron_expression == "@hourly"
        assert text_of(job) == merging + '  cron_expression: "@hourly"\n  max_active_runs: 3\n'
        write(root, "etl", "ingest", merging)
        with pytest.raises(ChrononError, match="by hand"):  # the default would have to be taken out of the merged keys
            job.schedule("@hourly")
        assert text_of(job) == merging

    def test_a_file_that_is_gone_is_reported(self, root: Path) -> None:
        job = job_of(root)
        job.path.unlink()
        with pytest.raises(ChrononError, match="cannot be read"):
            job.unschedule()


class TestRunning:
    @pytest.fixture
    def airflow(self) -> FakeAirflow:
        return FakeAirflow(dag_records={"job.etl.ingest": DagRecord("job.etl.ingest")})

    def test_over_a_window(self, root: Path, airflow: FakeAirflow) -> None:  # H7
        start = datetime(2026, 6, 1)  # noqa: DTZ001 (naive is UTC)
        run = job_of(root).run(start_time=start, end_time="2026-06-02T00:00:00Z", airflow=airflow)
        assert run.dag_id == "job.etl.ingest"
        assert run.conf == {"start_time": "2026-06-01T00:00:00Z", "end_time": "2026-06-02T00:00:00Z"}

    def test_without_a_window(self, root: Path, airflow: FakeAirflow) -> None:  # H7
        assert job_of(root).run(airflow=airflow).conf == {}

    def test_variables_of_the_run_go_along(self, root: Path, airflow: FakeAirflow) -> None:  # H5
        assert job_of(root).run(env={"REGION": "eu"}, airflow=airflow).conf == {"env": {"REGION": "eu"}}

    @pytest.mark.parametrize("given", [{"end_time": "2026-06-02"}, {"start_time": "2026-06-02"}])
    def test_half_a_window_is_refused(self, root: Path, airflow: FakeAirflow, given: dict[str, str]) -> None:  # H7
        with pytest.raises(ChrononError, match=r"[Gg]ive both ends"):
            job_of(root).run(**given, airflow=airflow)  # type: ignore[arg-type]
        assert airflow.run_records == []

    def test_half_a_window_is_refused_before_a_connection_is_asked_for(self, root: Path) -> None:  # H7
        with pytest.raises(ChrononError, match=r"[Gg]ive both ends"):
            job_of(root).run(start_time="2026-06-02")

    def test_without_an_airflow_it_says_how_to_name_one(self, root: Path) -> None:
        with pytest.raises(ChrononError, match=r"nobody said where Airflow is.*give airflow=") as refused:
            job_of(root).run()
        assert "--airflow" not in str(refused.value)

    def test_with_a_logical_date_of_its_own(self, root: Path, airflow: FakeAirflow) -> None:  # H7
        date = datetime(2026, 5, 1, tzinfo=UTC)
        run = job_of(root).run("2026-06-01", "2026-06-02", logical_date=date, airflow=airflow)
        assert run.conf["logical_date"] == "2026-05-01T00:00:00Z"

    def test_a_logical_date_without_a_window_is_refused(self, root: Path, airflow: FakeAirflow) -> None:  # H7
        with pytest.raises(ChrononError, match="without a window"):
            job_of(root).run(logical_date="2026-06-01", airflow=airflow)
        assert airflow.run_records == []
