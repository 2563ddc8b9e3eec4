"""``airflow-chronon explain``: the runs of confs, and what the scheduler would create after an outage."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from airflow_chronon.core.calendar.instants import HOUR, parse_instant
from tests.support.command_line import DATA, Command

THREE_HOUR = "group_by/checkout.purchases.three_hour__1"
JUNE = ("--from", "2026-06-01", "--to", "2026-06-02")


class TestRuns:
    def test_a_run_in_json(self, command: Command) -> None:
        answer = command("explain", THREE_HOUR, "--root", DATA / "main", *JUNE, "--format", "json")
        assert list(answer.json) == [THREE_HOUR] and (answer.code, answer.err) == (0, "")
        run = next(run for run in answer.json[THREE_HOUR]["runs"] if run["fire"] == "2026-06-01T04:15:00Z")
        assert (run["partition_key"], run["start"], run["end"]) == (
            "2026-06-01-01-00",
            "2026-06-01T01:00:00Z",
            "2026-06-01T04:00:00Z",
        )
        mode = run["modes"]["backfill"]
        assert mode["fire"] == run["fire"] and mode["partitions"] == ["2026-06-01-01-00"]
        assert all(wait.keys() >= {"table", "column"} for wait in mode["waits"]) and mode["waits"]

    def test_the_fires_lie_in_from_inclusive_to_exclusive(self, command: Command) -> None:
        key = "staging_query/checkout.orders.hourly_rollup__1"
        span = ("--from", "2026-06-01T03:10Z", "--to", "2026-06-01 05:10")
        runs = command("explain", key, "--root", DATA / "main", *span, "--format", "json").json[key]["runs"]
        assert [run["fire"] for run in runs] == ["2026-06-01T03:10:00Z", "2026-06-01T04:10:00Z"]

    def test_a_run_in_text(self, command: Command) -> None:
        out = command("explain", THREE_HOUR, "--root", DATA / "main", *JUNE).out
        assert out.startswith(f"{THREE_HOUR}: grid 3h@1h, backfill '15 1-22/3 * * *'")
        assert "2026-06-01T04:15:00Z  2026-06-01-01-00" in out

    def test_what_the_skip_date_drops_is_no_run_in_the_table_and_marked_in_the_json(
        self, command: Command, tmp_path: Path
    ) -> None:  # H11
        root = tmp_path / "main"
        shutil.copytree(DATA / "main", root)
        (root / "chronon.yaml").write_text("skip_to_date: 2026-06-01T12:00:00Z\n")
        of = ("explain", THREE_HOUR, "--root", root, "--from", "2026-06-01", "--to", "2026-06-02")
        (shown,) = command(*of, "--format", "json").json.values()
        kept = [run["partition_key"] for run in shown["runs"] if not run.get("skipped")]
        assert kept and min(kept) >= "2026-06-01-12" and len(kept) < len(shown["runs"])
        out = command(*of).out
        assert "skipped: skip_to_date is 2026-06-01T12:00:00Z (H11)" in out and "2026-06-01-04-00" not in out

    def test_no_runs_are_explained(self, command: Command) -> None:
        key, gap = (
            "staging_query/checkout.orders.hourly_rollup__1",
            ("--from", "2026-06-01T03:15", "--to", "2026-06-01T03:20"),
        )
        out = command("explain", key, "--root", DATA / "main", *gap).out
        assert out.splitlines()[1] == "  no runs; the next one fires 2026-06-01T04:10:00Z"

    def test_without_a_name_every_conf_is_explained(self, command: Command) -> None:
        shown = command("explain", "--root", DATA / "main", *JUNE, "--format", "json").json
        checked = command("check", "--root", DATA / "main", "--format", "json").json
        assert shown.keys() == checked.keys()
        assert {key for key, entry in shown.items() if "runs" in entry} == {
            key for key, entry in checked.items() if entry["status"] == "ok"
        }


class TestWhatComesNext:
    def test_without_a_time_the_next_five_runs_are_shown(self, command: Command) -> None:
        before = int(time.time())
        runs = command("explain", THREE_HOUR, "--root", DATA / "main", "--format", "json").json[THREE_HOUR]["runs"]
        fires = [parse_instant(run["fire"]) for run in runs]
        assert fires == [fires[0] + 3 * HOUR * number for number in range(5)]
        assert before <= fires[0] <= int(time.time()) + 3 * HOUR

    def test_those_that_the_skip_date_drops_are_left_out(self, command: Command, root: Path) -> None:  # H11
        (root / "chronon.yaml").write_text("skip_to_date: 2190-01-01\n")
        (shown,) = command("explain", THREE_HOUR, "--root", root, "--format", "json").json.values()
        assert (
            shown["runs"][0]["partition_key"] == "2189-12-31-22-00" and len(shown["runs"]) == 5
        )  # it holds that day's start

    def test_a_schedule_that_is_off_says_so(self, command: Command, root: Path) -> None:
        (root / "chronon.yaml").write_text("enabled: false\n")
        answer = command("explain", THREE_HOUR, "--root", root)
        assert answer.code == 0 and "the schedule is off" in answer.out


class TestSelection:
    @pytest.mark.parametrize(
        "text",
        [
            pytest.param("group_by.checkout.purchases.three_hour__1", id="a DAG id"),
            pytest.param(THREE_HOUR, id="type/name"),
            pytest.param("checkout.purchases.three_hour__1", id="a name"),
            pytest.param("group_bys/checkout/purchases.three_hour__1", id="a file below the root"),
            pytest.param(str(DATA / "main/group_bys/checkout/purchases.three_hour__1"), id="a file"),
        ],
    )
    def test_a_conf_is_known_by_many_names(self, command: Command, text: str) -> None:
        assert list(command("explain", text, "--root", DATA / "main", *JUNE, "--format", "json").json) == [THREE_HOUR]

    def test_a_file_relative_to_where_one_stands(self, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(DATA / "main/group_bys")
        answer = command(
            "explain", "./checkout/purchases.three_hour__1", "--root", DATA / "main", *JUNE, "--format", "json"
        )
        assert list(answer.json) == [THREE_HOUR]

    def test_several_confs_in_the_order_given(self, command: Command) -> None:
        other = "join/checkout.training.daily_join__1"
        assert list(command("explain", THREE_HOUR, other, "--root", DATA / "main", *JUNE, "--format", "json").json) == [
            THREE_HOUR,
            other,
        ]

    def test_a_name_that_two_types_have_is_refused(self, command: Command) -> None:
        answer = command("explain", "growth.same_name.daily__1", "--root", DATA / "main", *JUNE, "--format", "json")
        assert (answer.code, answer.out) == (2, "")
        assert "group_by/growth.same_name.daily__1" in answer.err and "join/growth.same_name.daily__1" in answer.err

    def test_an_unknown_name_gets_the_nearest(self, command: Command) -> None:
        answer = command("explain", "checkout.purchases.tree_hour__1", "--root", DATA / "main", *JUNE)
        assert (answer.code, answer.out) == (2, "")
        assert "no conf is called 'checkout.purchases.tree_hour__1'" in answer.err
        assert "checkout.purchases.three_hour__1" in answer.err and "Traceback" not in answer.err

    def test_a_rejected_conf_is_explained_by_its_faults_and_ends_with_1(self, command: Command, root: Path) -> None:
        (root / "compiled/joins/checkout/broken").write_text("{")
        answer = command("explain", "join/checkout.broken", "--root", root, *JUNE)
        assert answer.code == 1 and "join/checkout.broken: rejected" in answer.out and "not JSON" in answer.out

    def test_other_confs_are_not_troubled_by_a_rejected_one(self, command: Command, root: Path) -> None:
        (root / "compiled/joins/checkout/broken").write_text("{")
        assert command("explain", THREE_HOUR, "--root", root, *JUNE).code == 0


class TestRecovery:
    KEY = "staging_query/checkout.orders.hourly_rollup__1"

    def keys(self, command: Command, root: Path, *arguments: str) -> list[str]:
        answer = command("explain", self.KEY, "--root", root, "--format", "json", *arguments)
        assert answer.code == 0, answer.err
        return [run["partition_key"][-5:] for run in answer.json[self.KEY]["runs"]]

    @pytest.mark.parametrize(
        ("settings", "after", "keys"),
        [
            pytest.param("", "2026-06-10T03:00Z", ["05-00"], id="catch-up off: the newest alone"),
            pytest.param("", "none", ["05-00"], id="catch-up off and new: the newest at once"),
            pytest.param("", "2026-06-10T06:10Z", [], id="nothing missed"),
            pytest.param(
                "catchup: true\nstart_date: 2026-06-10",
                "2026-06-10T03:30Z",
                ["03-00", "04-00", "05-00"],
                id="catch-up on",
            ),
            pytest.param(
                "catchup: true\nstart_date: 2026-06-10-02",
                "none",
                ["02-00", "03-00", "04-00", "05-00"],
                id="catch-up on and new",
            ),
            pytest.param(
                "catchup: true\nstart_date: 2026-06-10\nmax_catchup_runs: 2", "none", ["04-00", "05-00"], id="capped"
            ),
            pytest.param("skip_to_date: 2026-06-10-06", "none", [], id="skipped"),
        ],
    )
    def test_what_is_created_at_now(
        self, command: Command, root: Path, settings: str, after: str, keys: list[str]
    ) -> None:
        (root / "chronon.yaml").write_text(settings)
        assert self.keys(command, root, "--after", after, "--now", "2026-06-10T06:20Z") == keys

    def test_now_may_be_this_moment(self, command: Command, root: Path) -> None:
        assert len(self.keys(command, root, "--after", "none", "--now", "now")) == 1


class TestMisuse:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--from", "2026-06-01"], "give --from and --to, or --after and --now"),
            (["--after", "none"], "give --from and --to, or --after and --now"),
            ([*JUNE, "--after", "none", "--now", "now"], "give --from and --to, or --after and --now"),
            (["--from", "2026-06-02", "--to", "2026-06-01"], "--to must be after --from"),
            (["--from", "yesterday", "--to", "2026-06-01"], "'yesterday' is not an instant"),
            (["--from", "0001-01-01", "--to", "2026-06-01"], "1970 to 2199"),
            (["--from", "2026-06-01", "--to", "9999-12-31"], "1970 to 2199"),
        ],
    )
    def test_it_is_one_sentence_and_exit_code_2(self, command: Command, arguments: list[str], message: str) -> None:
        answer = command("explain", "--root", DATA / "main", *arguments)
        assert (answer.code, answer.out) == (2, "")
        assert message in answer.err and "Traceback" not in answer.err
