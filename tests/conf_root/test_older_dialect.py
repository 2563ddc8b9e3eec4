"""Confs of the older dialect: compiled by chronon-ai 0.0.115 from the sources beside them (D1 to D4)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import DATA, Command

REPOSITORY = DATA / "older"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return Path(shutil.copytree(REPOSITORY, tmp_path / "repo"))


def changed(root: Path, file: str, change: Callable[[dict[str, Any]], None]) -> None:
    path = root / "production" / file
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def explained(command: Command, root: Path, key: str, *, end: str = "2026-06-02") -> dict[str, Any]:
    answer = command("explain", key, "--root", root, "--from", "2026-06-01", "--to", end, "--format", "json")
    found: dict[str, Any] = answer.json[key]
    return found


def waits(command: Command, root: Path, key: str, mode: str = "backfill") -> list[str]:
    """What the run of the first of June waits for, a line per table."""
    (run,) = explained(command, root, key)["runs"]
    return [
        "/".join([wait["table"], f"{wait['column']}={','.join(wait['labels'])}", *wait["sub"]])
        for wait in run["modes"][mode]["waits"]
    ]


class TestSchedules:
    @pytest.mark.parametrize(
        ("key", "modes"),
        [
            ("group_by/checkout.purchases.backfilled", ["backfill"]),
            ("group_by/checkout.purchases.only_right_part", []),
            ("group_by/search.clicks.v1", ["upload"]),
            ("group_by/search.clicks.v2", ["backfill", "upload"]),
            ("join/checkout.training.v1", ["backfill"]),
            ("join/checkout.training.served", ["backfill", "metadata_upload"]),
            ("join/checkout.training.never", []),
            ("staging_query/checkout.orders.cleaned", ["backfill"]),
            ("staging_query/checkout.orders.off", []),
        ],
    )
    def test_what_is_scheduled(self, command: Command, key: str, modes: list[str]) -> None:  # D3
        answer = command("check", "--root", REPOSITORY, "--format", "json")
        entry = answer.json[key]
        assert (sorted(entry["modes"]), entry["version"]) == (modes, None)
        assert entry["grid"] == {
            "interval_minutes": 1440,
            "offset_minutes": 0,
            "format": "yyyy-MM-dd",
            "column": "ds",
        }

    def test_each_at_its_own_time_and_daily_without_one(self, command: Command) -> None:  # D2
        fires = {
            key: [run["fire"] for run in explained(command, REPOSITORY, key, end="2026-06-09")["runs"]][:2]
            for key in ("join/checkout.training.temporal", "join/checkout.training.newest", "join/checkout.training.v1")
        }
        assert fires == {
            "join/checkout.training.temporal": ["2026-06-01T06:00:00Z", "2026-06-02T06:00:00Z"],
            "join/checkout.training.newest": ["2026-06-01T07:00:00Z", "2026-06-08T07:00:00Z"],
            "join/checkout.training.v1": ["2026-06-01T00:00:00Z", "2026-06-02T00:00:00Z"],
        }

    def test_a_join_without_its_history_writes_the_newest_day_of_a_week(self, command: Command) -> None:
        (run,) = explained(command, REPOSITORY, "join/checkout.training.newest")["runs"]
        assert run["modes"]["backfill"]["partitions"] == ["2026-05-31"]

    def test_a_schedule_below_a_day_is_refused(self, command: Command) -> None:  # D2, C6
        answer = command("check", "--root", REPOSITORY)
        assert answer.code == 1 and "fires every 12h over partitions of 1d (C6)" in answer.out

    def test_a_schedule_of_uploads_alone_is_not_passed_over_silently(self, command: Command, root: Path) -> None:
        def weekly(conf: dict[str, Any]) -> None:
            conf["metaData"]["customJson"] = json.dumps({"uploadSchedule": "@weekly"})

        changed(root, "group_bys/search/clicks.v1", weekly)
        answer = command("check", "--root", root)
        assert "the upload schedule '@weekly' is not read: uploads follow offlineSchedule (D3)" in answer.out


class TestWaits:
    @pytest.mark.parametrize(
        ("key", "expected"),
        [
            ("staging_query/checkout.orders.cleaned", ["raw.orders/ds=2026-05-31"]),
            ("staging_query/checkout.orders.late_hour", ["raw.orders_hourly/ds=2026-05-31/hr=23:00"]),
            ("staging_query/checkout.orders.nodash", ["raw.payments/day=20260531"]),
            ("staging_query/checkout.orders.behind", ["raw.fees/ds=2026-05-31", "raw.settlements/ds=2026-05-29"]),
            ("staging_query/checkout.orders.bare", []),
            ("group_by/checkout.purchases.dated_column", ["raw.purchases/day=2026-05-31"]),
            ("group_by/checkout.purchases.lagging", ["raw.purchases/ds=2026-05-30"]),
            ("group_by/checkout.purchases.mobile", ["raw.purchases/ds=2026-05-31/system=mobile"]),
            ("group_by/checkout.purchases.overridden", ["raw.purchases/dt=2026-05-30/region=eu"]),
            ("group_by/checkout.purchases.of_staging", ["checkout_features.checkout_orders_cleaned/ds=2026-05-31"]),
            ("join/checkout.training.of_entities", ["raw.clicks/ds=2026-05-31", "raw.purchases/ds=2026-05-31", "raw.users/ds=2026-05-31"]),
        ],
    )  # fmt: skip
    def test_what_the_run_of_a_day_waits_for(self, command: Command, key: str, expected: list[str]) -> None:  # D4
        assert waits(command, REPOSITORY, key) == expected

    def test_the_metadata_of_a_join_waits_for_the_upload_tables_of_this_dialect(self, command: Command) -> None:  # D3
        assert waits(command, REPOSITORY, "join/search.ranking.v1", "metadata_upload") == [
            "search_features.search_clicks_v1_upload/ds=2026-05-31"
        ]

    def test_a_dependency_that_fits_no_source_is_waited_for_with_a_warning(self, command: Command) -> None:  # D4
        key = "join/checkout.training.own_words"
        assert "raw.ready/ds=2026-05-31/of=checkouts" in waits(command, REPOSITORY, key)
        (warning,) = explained(command, REPOSITORY, key)["warnings"]
        assert warning["rule"] == "D4" and "raw.ready" in warning["message"]

    def test_its_end_is_a_cut_off(self, command: Command, root: Path) -> None:  # D2, D4
        def ended(conf: dict[str, Any]) -> None:
            spec = {"name": "wait", "spec": "raw.ready/ds={{ ds }}", "start": None, "end": "2026-05-20"}
            conf["metaData"]["dependencies"] = [json.dumps(spec)]

        changed(root, "joins/checkout/training.own_words", ended)
        assert not any("raw.ready" in wait for wait in waits(command, root, "join/checkout.training.own_words"))

    @pytest.mark.parametrize("text", ["raw.ready", "raw.ready/ds={{ yesterday_ds }}", "", 7, {"spec": "a"}, "x" * 5000])
    def test_a_dependency_that_says_nothing_is_refused(self, command: Command, root: Path, text: Any) -> None:
        changed(root, "joins/checkout/training.own_words", lambda conf: conf["metaData"].update(dependencies=[text]))
        answer = command("check", "--root", root)
        assert answer.code == 1 and "metaData.dependencies: " in answer.out and "Traceback" not in answer.err

    def test_a_join_that_is_read_may_name_no_namespace_and_be_called_by_a_template(
        self, command: Command, root: Path
    ) -> None:  # D4
        join = json.loads((root / "production/joins/search/ranking.v2").read_text())
        join["metaData"].pop("outputNamespace")
        for part in join["joinParts"]:
            part["groupBy"]["metaData"].pop("outputNamespace", None)
        spec = {
            "name": "wait",
            "spec": "{{ db }}.search_ranking_v2/ds={{ ds }}",
            "start": None,
            "end": None,
        }

        def of_a_join(conf: dict[str, Any]) -> None:
            conf["sources"] = [
                {"joinSource": {"join": join, "query": {"selects": {"user": "user"}, "timeColumn": "ts"}}}
            ]
            conf["metaData"]["dependencies"] = [json.dumps(spec)]

        changed(root, "group_bys/search/clicks.v2", of_a_join)
        key = "group_by/search.clicks.v2"
        assert waits(command, root, key) == ["search_features.search_ranking_v2/ds=2026-05-31"]
        assert explained(command, root, key)["warnings"] == []


class TestTree:
    def test_the_folders_of_a_repository_are_not_taken_for_a_compiled_tree(self, command: Command) -> None:  # D1
        found = command("check", "--root", REPOSITORY, "--format", "json").json
        assert len(found) == 45 and all(entry["file"].startswith("production/") for entry in found.values())

    def test_the_folder_itself_may_be_the_root(self, command: Command) -> None:
        found = command("check", "--root", REPOSITORY / "production", "--format", "json").json
        assert len(found) == 45 and found["group_by/search.clicks.v1"]["modes"] == ["upload"]

    def test_a_repository_that_is_not_compiled_yet_says_so(self, command: Command, root: Path) -> None:
        shutil.rmtree(root / "production")
        answer = command("check", "--root", root)
        assert answer.code == 1 and "holds no compiled confs" in answer.err and len(answer.err.splitlines()) == 1

    def test_both_dialects_stand_in_one_root(self, command: Command, root: Path) -> None:  # D1
        shutil.copytree(DATA / "main", root / "compiled")
        found = command("check", "--root", root, "--format", "json").json
        newer = command("check", "--root", DATA / "main", "--format", "json").json
        assert len(found) == 45 + len(newer)
        assert {key: found[key]["status"] for key in newer} == {key: newer[key]["status"] for key in newer}

    def test_a_name_in_both_is_refused_in_both(self, command: Command, root: Path) -> None:  # D1, C26
        here = root / "compiled/joins/checkout/training.v1"
        here.parent.mkdir(parents=True)
        shutil.copy(root / "production/joins/checkout/training.v1", here)
        answer = command("check", "--root", root, "--format", "json")
        entry = answer.json["join/checkout.training.v1"]
        assert entry["status"] == "rejected" and [error["rule"] for error in entry["errors"]] == ["C26"]

    @pytest.mark.parametrize(
        "meta", [[], "x", None, {}, {"name": 7}, {"name": "checkout.training.v1", "dependencies": "x"}]
    )
    @pytest.mark.parametrize("sources", [None, [], "x", [{"events": "x"}], [{"events": {"table": 7, "query": 3}}]])
    def test_a_wrong_shape_is_named_and_stops_nobody(  # S1
        self, command: Command, root: Path, meta: Any, sources: Any
    ) -> None:
        changed(
            root, "joins/checkout/training.v1", lambda conf: conf.update(metaData=meta, left=sources, joinParts=sources)
        )
        answer = command("check", "--root", root, "--format", "json")
        assert answer.json["join/checkout.training.v1"]["status"] == "rejected"
        assert (
            sum(entry["status"] == "rejected" for entry in answer.json.values()) == 2
        )  # the other is so in the corpus
