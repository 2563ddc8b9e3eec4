"""``check``, ``explain``, ``run`` and ``import-schedule`` on job files (H1 to H15, C24, C26)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_chronon.conf_root.root import read_conf_root
from airflow_chronon.core.bounds import MAX_JOB_BYTES
from airflow_chronon.core.plan.facts import TreeState
from tests.support.command_line import Command
from tests.support.stub_server import StubServer, stub_server

HEAD = "version: 1\nrunner: {kind: command, argv: ['true']}\n"
HOURLY = HEAD + "schedule: {cron_expression: '0 0 * ? * *', start_time: 2026-01-01}\n"
UNKNOWN = (404, {"detail": "Dag with dag_id: 'job.etl.hourly' not found"})
RUNS = "/api/v2/dags/job.etl.hourly/dagRuns"


def write(root: Path, place: str, text: str) -> Path:
    path = root / "jobs" / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """A conf root with one job and no confs."""
    write(tmp_path, "etl/hourly.yaml", HOURLY)
    return tmp_path


class TestCheck:
    def test_a_root_of_jobs_alone_is_good(self, command: Command, jobs: Path) -> None:
        answer = command("check", "--root", jobs)
        assert answer.code == 0
        assert answer.out.splitlines()[0].split() == ["ok", "job/etl.hourly", "0", "*", "*", "*", "*"]
        assert answer.out.splitlines()[-1].startswith("1 good, 0 of them with warnings; 0 rejected")

    def test_jobs_stand_beside_confs(self, command: Command, root: Path) -> None:
        confs = command("check", "--root", root, "--format", "json").json
        write(root, "etl/hourly.yaml", HOURLY)
        both = command("check", "--root", root, "--format", "json").json
        assert both.pop("job/etl.hourly")["dag_id"] == "job.etl.hourly"
        assert both == confs

    def test_one_bad_file_never_touches_another(self, command: Command, jobs: Path) -> None:
        write(jobs, "etl/shape.yaml", HEAD + "schedul: {}\n")
        write(jobs, "etl/rule.yaml", HEAD + "schedule: {cron_expression: '0 0 0 1,L * ?'}\n")
        write(jobs, "etl/syntax.yaml", "version: [")
        write(jobs, "etl/huge.yaml", "#" * (MAX_JOB_BYTES + 1))
        (jobs / "jobs/etl/binary.yaml").write_bytes(b"\xff\xfe")
        (jobs / "jobs/etl/link.yaml").symlink_to(jobs / "nowhere")
        answer = command("check", "--root", jobs, "--format", "json")
        assert answer.code == 1
        found = {key: entry.get("errors", [{}])[0].get("rule") for key, entry in answer.json.items()}
        assert found == {
            "job/etl.hourly": None,
            "job/etl.shape": "settings",
            "job/etl.rule": "H1",
            "job/etl.syntax": "settings",
            "job/etl.huge": "input",
            "job/etl.binary": "input",
            "job/etl.link": "input",
        }

    def test_a_bad_variable_is_reported_without_its_value(self, command: Command, jobs: Path) -> None:
        write(jobs, "etl/secret.yaml", "version: 1\nrunner: {argv: [run]}\nenv: {PASSWORD: 12345678}\n")
        answer = command("check", "--root", jobs)
        assert answer.code == 1 and "env.PASSWORD" in answer.out + answer.err
        assert "12345678" not in answer.out + answer.err

    @pytest.mark.parametrize(
        "version", ["!!int 0x_", "!!int 0b_", "9" * 5000, "!!int abc", "!!timestamp 2026-99-01", '!!int ""', "!!bool x"]
    )
    def test_a_value_that_yaml_cannot_build_touches_no_other_job(
        self, command: Command, jobs: Path, version: str
    ) -> None:
        write(jobs, "etl/odd.yaml", f"version: {version}\nrunner: {{argv: [run]}}\n")
        found = command("check", "--root", jobs, "--format", "json").json
        assert found["job/etl.hourly"]["status"] == "ok"
        assert found["job/etl.odd"]["status"] == "rejected"

    def test_folders_linked_within_the_root_are_read_and_links_that_lead_back_end(
        self, command: Command, jobs: Path
    ) -> None:  # S2
        elsewhere = jobs / "mounted"
        elsewhere.mkdir()
        (elsewhere / "linked.yaml").write_text(HOURLY)
        (jobs / "jobs" / "other").symlink_to(elsewhere)
        (jobs / "jobs" / "etl" / "back").symlink_to(jobs / "jobs")
        found = command("check", "--root", jobs, "--format", "json").json
        assert set(found) == {"job/etl.hourly", "job/other.linked"}

    def test_only_files_at_their_place_are_jobs(self, command: Command, jobs: Path) -> None:
        write(jobs, "etl/README.md", "not a job")
        write(jobs, "etl/ingest.py", "print()")
        write(jobs, ".hidden/x.yaml", "not a job")
        write(jobs, "loose.yaml", HOURLY)
        write(jobs, "etl/deep/er.yaml", HOURLY)
        answer = command("check", "--root", jobs, "--format", "json").json
        bad = {
            entry["file"]: entry["errors"][0]["remedy"] for entry in answer.values() if entry["status"] == "rejected"
        }
        assert bad == {
            "jobs/loose.yaml": "move it to jobs/<team>/loose.yaml",
            "jobs/etl/deep/er.yaml": "move it to jobs/<team>/er.yaml",
        }

    def test_the_same_job_in_two_files_is_refused_twice(self, command: Command, jobs: Path) -> None:  # C26
        write(jobs, "etl/hourly.yml", HOURLY)
        answer = command("check", "--root", jobs, "--format", "json").json
        assert {entry["errors"][0]["rule"] for entry in answer.values()} == {"C26"}
        assert {entry["file"] for entry in answer.values()} == {"jobs/etl/hourly.yaml", "jobs/etl/hourly.yml"}

    def test_a_runner_that_cannot_be_built_is_reported(self, command: Command, jobs: Path) -> None:
        write(jobs, "etl/hourly.yaml", HOURLY.replace("argv: ['true']", "argv: ['true'], nice: 5"))
        (error,) = command("check", "--root", jobs, "--format", "json").json["job/etl.hourly"]["errors"]
        assert "'nice'" in error["message"]

    def test_warnings_are_shown(self, command: Command, jobs: Path) -> None:  # H2
        write(jobs, "etl/hourly.yaml", HOURLY.replace("start_time", "end_time_offset_seconds: 60, start_time"))
        answer = command("check", "--root", jobs)
        assert answer.code == 0 and "warning: line 3, schedule.end_time_offset_seconds" in answer.out

    def test_jobs_by_hand_and_jobs_that_are_off_say_so(self, command: Command, jobs: Path) -> None:
        write(jobs, "etl/by_hand.yaml", HEAD)
        write(jobs, "etl/hourly.yaml", HOURLY.replace("start_time", "enabled: false, start_time"))
        lines = command("check", "--root", jobs).out.splitlines()
        assert lines[0].endswith("  by hand")
        assert lines[1].endswith("0 * * * * (off)")


class TestExplain:
    def test_the_runs_of_a_window(self, command: Command, jobs: Path) -> None:
        span = ("--from", "2026-06-03T10:00", "--to", "2026-06-03T11:00", "--format", "json")
        assert command("explain", "etl.hourly", "--root", jobs, *span).json["job/etl.hourly"]["runs"] == [
            {
                "fire": "2026-06-03T10:00:00Z",
                "partition_key": "2026-06-03T09:00:00Z",
                "logical_date": "2026-06-03T09:00:00Z",
                "start": "2026-06-03T09:00:00Z",
                "end": "2026-06-03T10:00:00Z",
            }
        ]

    @pytest.mark.parametrize(
        ("more", "after", "fires"),
        [
            pytest.param("", "2026-06-03T00:00", ["06"], id="an outage without catch-up: the newest alone"),  # H8
            pytest.param("", "none", [], id="switched on without catch-up: nothing yet"),  # H8
            pytest.param("catchup: true,", "2026-06-03T03:00", ["04", "05", "06"], id="an outage with catch-up"),  # H9
            pytest.param(
                "catchup: true, max_catchup_runs: 2,", "none", ["05", "06"], id="switched on with a cap"
            ),  # H10, H13
        ],
    )
    def test_what_an_outage_leaves_and_what_switching_on_does(
        self, command: Command, jobs: Path, more: str, after: str, fires: list[str]
    ) -> None:
        write(jobs, "etl/hourly.yaml", HOURLY.replace("start_time", f"{more} start_time"))
        answer = command(
            "explain", "--root", jobs, "--after", after, "--now", "2026-06-03T06:30", "--format", "json"
        ).json
        found = [run["fire"] for run in answer["job/etl.hourly"]["runs"]]
        assert found == [f"2026-06-03T{hour}:00:00Z" for hour in fires]

    def test_for_people(self, command: Command, jobs: Path) -> None:
        span = ("--from", "2026-06-03T10:00", "--to", "2026-06-03T11:00")
        lines = command("explain", "hourly", "--root", jobs, *span).out.splitlines()
        assert lines[0] == "job/etl.hourly: cron '0 * * * *', DAG job.etl.hourly"
        assert lines[2].split("  ")[1:] == [
            "2026-06-03T10:00:00Z",
            "2026-06-03T09:00:00Z",
            "[2026-06-03T09:00:00Z, 2026-06-03T10:00:00Z)",
        ]

    def test_catch_up_without_a_start_begins_when_it_is_first_seen(self, command: Command, jobs: Path) -> None:  # H15
        write(jobs, "etl/hourly.yaml", HEAD + "schedule: {cron_expression: '@hourly', catchup: true}\n")
        answer = command("explain", "--root", jobs, "etl.hourly", "--after", "none", "--now", "2026-06-01T10:20")
        assert "catch-up begins when the job is first seen" in answer.out
        assert "the next one fires 2026-06-01T11:00:00Z" in answer.out

    def test_what_the_skip_date_drops_is_not_shown_as_a_run(self, command: Command, jobs: Path) -> None:  # H11
        write(jobs, "etl/hourly.yaml", HOURLY.replace("2026-01-01", "2026-01-01, skip_to_date: 2026-06-03T02:00Z"))
        span = ("explain", "etl.hourly", "--root", jobs, "--from", "2026-06-03T01:00", "--to", "2026-06-03T04:00")
        lines = command(*span).out.splitlines()
        assert [line.split()[0] for line in lines[2:-1]] == ["2026-06-03T03:00:00Z"]
        assert "2 runs skipped: skip_to_date is 2026-06-03T02:00:00Z" in lines[-1]
        found = command(*span, "--format", "json").json["job/etl.hourly"]["runs"]
        assert [run.get("skipped", False) for run in found] == [True, True, False]

    def test_a_job_by_hand_has_no_runs(self, command: Command, jobs: Path) -> None:
        write(jobs, "etl/by_hand.yaml", HEAD)
        for span in (("--from", "2026-06-03", "--to", "2026-06-04"), ("--after", "none", "--now", "2026-06-03")):
            answer = command("explain", "by_hand", "--root", jobs, *span)
            assert answer.code == 0 and "runs by hand only" in answer.out and "no runs" in answer.out

    @pytest.mark.parametrize(
        ("more", "asked", "said"),
        [
            pytest.param(
                "",
                "--from 2026-06-03T10:10 --to 2026-06-03T10:20",
                "; the next one fires 2026-06-03T11:00:00Z",
                id="between fires",
            ),
            pytest.param(
                "",
                "--after 2026-06-03T10:00 --now 2026-06-03T10:20",
                "; the next one fires 2026-06-03T11:00:00Z",
                id="nothing due",
            ),
            pytest.param(
                "",
                "--from 2025-06-03 --to 2025-06-04",
                "; the next one fires 2026-01-01T01:00:00Z",
                id="before the start",
            ),
            pytest.param(", enabled: false", "--from 2026-06-03 --to 2026-06-04", ": the schedule is off", id="off"),
            pytest.param(
                ", end_time: 2026-05-01",
                "--from 2026-06-03 --to 2026-06-04",
                ", and none later: the schedule ends 2026-05-01T00:00:00Z",
                id="over",
            ),
        ],
    )
    def test_no_runs_are_explained(self, command: Command, jobs: Path, more: str, asked: str, said: str) -> None:
        write(jobs, "etl/hourly.yaml", HOURLY.replace("2026-01-01", f"2026-01-01{more}"))
        assert command("explain", "hourly", "--root", jobs, *asked.split()).out.splitlines()[1:] == [f"  no runs{said}"]

    def test_a_window_of_too_many_runs_is_refused(self, command: Command, jobs: Path) -> None:
        minutely = "schedule: {cron_expression: '* * * * *', start_time: 1970-01-01, catchup: true}\n"
        write(jobs, "etl/minutely.yaml", HEAD + minutely)
        answer = command("explain", "minutely", "--root", jobs, "--after", "none", "--now", "2026-06-03")
        assert answer.code == 2 and not answer.out
        assert answer.err.startswith("job/etl.minutely: these are more than 500000 runs")


class TestBranches:
    def test_a_branch_deploys_only_the_jobs_that_differ(self, tmp_path: Path) -> None:  # C24
        base, root = tmp_path / "base", tmp_path / "branch"
        for place in (base, root):
            (place / "compiled").mkdir(parents=True)
            write(place, "etl/same.yaml", HOURLY)
            write(place, "etl/changed.yaml", HOURLY)
        write(root, "etl/changed.yaml", HOURLY.replace("2026-01-01", "2026-02-01"))
        write(root, "etl/new.yaml", HOURLY)
        (root / "chronon.yaml").write_text("branch: try\nbase_root: ../base\n")
        assert {*read_conf_root(root, environ={}).judge()} == {"job/etl.changed", "job/etl.new"}

    def test_jobs_alone_are_a_whole_tree_and_nothing_is_none(self, jobs: Path) -> None:  # C23
        assert read_conf_root(jobs, environ={}).state is TreeState.WHOLE
        (jobs / "jobs/etl/hourly.yaml").unlink()
        assert read_conf_root(jobs, environ={}).state is TreeState.EMPTY


class TestRun:
    @pytest.fixture
    def stub(self) -> Iterator[StubServer]:
        with stub_server() as running:
            started = {
                "dag_id": "job.etl.hourly",
                "dag_run_id": "manual__1",
                "run_type": "manual",
                "state": "queued",
            }
            running.reply(RUNS, (200, started))
            yield running

    def test_over_a_window(self, command: Command, jobs: Path, stub: StubServer) -> None:  # H7
        address = stub.url.replace("://", "://admin:secret@")
        span = ("--start", "2026-06-01T00:00", "--end", "2026-06-02T00:00Z")
        answer = command("run", "etl.hourly", "--root", jobs, *span, "--airflow", address)
        assert answer.code == 0, answer.err
        assert "manual__1 created, over [2026-06-01T00:00:00Z, 2026-06-02T00:00:00Z)" in answer.out
        (body,) = [body for method, path, _, body in stub.seen if (method, path) == ("POST", RUNS)]
        assert body["conf"] == {"start_time": "2026-06-01T00:00:00Z", "end_time": "2026-06-02T00:00:00Z"}
        assert body["logical_date"] is None

    def test_without_a_window(self, command: Command, jobs: Path, stub: StubServer) -> None:  # H7
        address = stub.url.replace("://", "://admin:secret@")
        answer = command("run", "hourly", "--root", jobs, "--airflow", address, "--format", "json")
        assert answer.json == {"dag_id": "job.etl.hourly", "run_id": "manual__1", "state": "queued"}
        assert stub.seen[-1][3]["conf"] == {}

    @pytest.mark.parametrize("half", [("--end", "2026-06-02"), ("--start", "2026-06-02")])
    def test_half_a_window_is_refused_before_anything_is_asked(
        self, command: Command, jobs: Path, stub: StubServer, half: tuple[str, str]
    ) -> None:  # H7
        answer = command("run", "hourly", "--root", jobs, *half, "--airflow", stub.url.replace("://", "://a:b@"))
        assert answer.code == 2 and "(H7)" in answer.err and stub.seen == []

    def test_a_job_that_was_just_dropped_runs_as_soon_as_airflow_knows_it(
        self, command: Command, jobs: Path, stub: StubServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("airflow_chronon.cli.commands.run.POLL_SECONDS", 0)
        started = stub.next_reply(RUNS)
        stub.reply("/api/v2/dags", (200, {"dags": [], "total_entries": 0}))
        stub.reply(RUNS, UNKNOWN, UNKNOWN, started)
        answer = command("run", "hourly", "--root", jobs, "--airflow", stub.url.replace("://", "://a:b@"))
        assert answer.code == 0 and "manual__1 created" in answer.out
        assert answer.err.splitlines() == [
            "Airflow does not know job.etl.hourly yet: waiting up to 120 s for it to read jobs/etl/hourly.yaml"
        ]

    def test_a_job_that_airflow_never_knows_is_one_sentence(
        self, command: Command, jobs: Path, stub: StubServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("airflow_chronon.cli.commands.run.APPEARS_WITHIN", 0)
        stub.reply(RUNS, UNKNOWN)
        answer = command("run", "hourly", "--root", jobs, "--airflow", stub.url.replace("://", "://a:b@"))
        assert answer.code == 2 and answer.err.startswith("JOB: Airflow does not know the DAG job.etl.hourly")
        assert "airflow dags list-import-errors" in answer.err and len(answer.err.splitlines()) == 1

    def test_an_address_where_no_airflow_is_is_not_waited_for(
        self, command: Command, jobs: Path, stub: StubServer
    ) -> None:
        stub.reply(RUNS, UNKNOWN)
        answer = command("run", "hourly", "--root", jobs, "--airflow", stub.url.replace("://", "://a:b@"))
        assert answer.code == 2 and "listing the DAGs: Not Found (404)" in answer.err

    def test_the_nearest_job_is_named(self, command: Command, root: Path) -> None:
        write(root, "etl/hourly.yaml", HOURLY)
        answer = command("run", "etl.hourli", "--root", root)
        assert answer.code == 2 and "no job is called 'etl.hourli' (input). Did you mean etl.hourly?" in answer.err

    def test_a_conf_is_no_job(self, command: Command, root: Path) -> None:
        write(root, "etl/hourly.yaml", HOURLY)
        answer = command("run", "group_by/checkout.purchases.three_hour__1", "--root", root)
        assert answer.code == 2 and "is called" in answer.err


class TestImportSchedule:
    SCHEDULE = json.dumps(
        {"cronExpression": "0 0 * ? * * *", "startDateTime": 1767225600000, "endTimeOffsetSeconds": 0}
    )

    def test_the_job_file_is_printed_and_is_good(self, command: Command, tmp_path: Path) -> None:
        (tmp_path / "schedule.json").write_text(self.SCHEDULE)
        answer = command("import-schedule", tmp_path / "schedule.json")
        assert answer.code == 0 and "legacy_start_time_arg: true" in answer.out  # H6
        assert "endTimeOffsetSeconds" in answer.err  # H2
        write(tmp_path, "etl/hourly.yaml", answer.out)
        span = ("--from", "2026-01-01", "--to", "2026-01-01T02:00", "--format", "json")
        (run,) = command("explain", "--root", tmp_path, *span).json["job/etl.hourly"]["runs"]
        assert (run["start"], run["end"]) == ("2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z")

    def test_it_writes_the_file_and_never_over_one(self, command: Command, tmp_path: Path) -> None:
        (tmp_path / "schedule.json").write_text(self.SCHEDULE)
        out = tmp_path / "jobs" / "etl" / "hourly.yaml"
        arguments = ("import-schedule", tmp_path / "schedule.json", "--out", out)
        assert command(*arguments).code == 0 and command("check", "--root", tmp_path).code == 0
        out.write_text("mine")
        answer = command(*arguments)
        assert answer.code == 2 and "File exists" in answer.err and out.read_text() == "mine"

    def test_what_cannot_be_carried_is_named_and_nothing_is_made(self, command: Command, tmp_path: Path) -> None:
        (tmp_path / "schedule.json").write_text('{"cronExpression": "0 0 0 1,L * ?", "startTimeOffsetSeconds": -5}')
        answer = command("import-schedule", tmp_path / "schedule.json", "--out", tmp_path / "job.yaml")
        assert answer.code == 1 and answer.out == ""
        assert "cronExpression" in answer.err and "startTimeOffsetSeconds" in answer.err
        assert not (tmp_path / "job.yaml").exists()

    def test_a_missing_file_is_one_sentence(self, command: Command, tmp_path: Path) -> None:
        answer = command("import-schedule", tmp_path / "nothing.json")
        assert answer.code == 2 and "cannot be read" in answer.err
