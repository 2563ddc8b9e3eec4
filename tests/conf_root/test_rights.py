"""Who may say what: names by their place, namespaces by team, what a conf may set of itself (S6)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_chronon.conf_root.root import read_conf_root
from airflow_chronon.core.confs.plan import RejectedConf, Verdict
from airflow_chronon.core.confs.resolve import ConfPlan
from tests.support.conf_roots import ConfRootOnDisk, dependency, staging_query

TEAMS = "teams: {shop: {output_namespaces: [shop, 'shop_*']}, growth: {output_namespaces: [growth]}}\n"


@pytest.fixture
def root(tmp_path: Path) -> ConfRootOnDisk:
    return ConfRootOnDisk(tmp_path / "root")


def judged(root: ConfRootOnDisk) -> dict[str, Verdict]:
    return read_conf_root(root.path, environ={}).judge()


def faults(root: ConfRootOnDisk, key: str) -> list[str]:
    verdict = judged(root)[key]
    assert isinstance(verdict, RejectedConf)
    assert {fault.rule for fault in verdict.faults} == {"S6"}
    return [str(fault) for fault in verdict.faults]


class TestTheNameOfAConf:
    def test_that_is_its_place_is_good(self, root: ConfRootOnDisk) -> None:
        root.staging_query("shop.a")
        root.write("staging_query", "shop.sub.b__1", staging_query("shop.sub.b__1"), file="shop/sub/b__1")
        assert all(isinstance(verdict, ConfPlan) for verdict in judged(root).values())

    def test_of_another_costs_only_the_file_that_takes_it(self, root: ConfRootOnDisk) -> None:
        root.staging_query("shop.a")
        root.write("staging_query", "shop.a__1", staging_query("shop.a__1"), file="growth/stolen__1")
        assert isinstance(judged(root)["staging_query/shop.a__1"], ConfPlan)
        name, team = faults(root, "staging_query/growth.stolen__1")
        assert "the name 'shop.a__1' is not that of its file, 'growth.stolen__1'" in name
        assert "the team 'shop' is not that of its folder, 'growth'" in team

    def test_needs_the_folder_of_a_team(self, root: ConfRootOnDisk) -> None:
        root.write("staging_query", "shop.a__1", staging_query("shop.a__1"), file="shop.a__1")
        [fault] = faults(root, "staging_query/shop.a__1")
        assert "it is in no team's folder" in fault

    def test_may_leave_the_team_to_its_folder(self, root: ConfRootOnDisk) -> None:
        document = staging_query("shop.a__1")
        del document["metaData"]["team"]
        root.write("staging_query", "shop.a__1", document)
        assert isinstance(judged(root)["staging_query/shop.a__1"], ConfPlan)


class TestANamespace:
    def test_that_is_a_teams_own_is_nobody_elses(self, root: ConfRootOnDisk) -> None:
        root.settings(TEAMS)
        root.staging_query("shop.a")
        root.staging_query("risk.a", outputNamespace="shop_eu")
        [fault] = faults(root, "staging_query/risk.a__1")
        assert "the namespace 'shop_eu' belongs to the team shop, not to risk" in fault
        assert isinstance(judged(root)["staging_query/shop.a__1"], ConfPlan)

    def test_beside_those_of_a_team_is_refused(self, root: ConfRootOnDisk) -> None:
        root.settings(TEAMS)
        root.staging_query("growth.a", outputNamespace="lab")
        [fault] = faults(root, "staging_query/growth.a__1")
        assert "the team growth may not write in the namespace 'lab': its namespaces are growth" in fault

    def test_of_nobody_is_free_for_teams_that_are_not_named(self, root: ConfRootOnDisk) -> None:
        root.settings(TEAMS)
        root.staging_query("risk.a", outputNamespace="lab")
        assert isinstance(judged(root)["staging_query/risk.a__1"], ConfPlan)

    def test_links_its_tables_to_the_owners_conf(self, root: ConfRootOnDisk) -> None:
        # both would write shop.shop_a__1, and a GroupBy comes before a staging query
        root.settings(TEAMS)
        root.staging_query("shop.a")
        root.staging_query("shop.reader", dependencies=[dependency("shop.shop_a__1")])
        intruder = staging_query("shop.a__1") | {"sources": []}
        intruder["metaData"]["team"] = "alien"
        root.write("group_by", "shop.a__1", intruder, file="alien/shop.a__1")
        reader = judged(root)["staging_query/shop.reader__1"]
        assert isinstance(reader, ConfPlan)
        assert [str(producer) for producer in reader.producers] == ["staging_query/shop.a__1"]
        assert not [warning for warning in reader.warnings if warning.rule == "C28"]

    def test_list_with_a_typo_names_its_key(self, root: ConfRootOnDisk) -> None:
        root.settings("teams: {shop: {output_namespace: [shop]}}\n")
        faults = read_conf_root(root.path, environ={}).settings_faults
        assert any("Did you mean output_namespaces?" in str(fault) for fault in faults)


_OWN_WORDS = [
    pytest.param({"runner": {"kind": "command", "argv": ["true"]}}, "runner", "runner", id="runner"),
    pytest.param({"catalog": {"root": "/w"}}, "catalog", "catalog", id="catalog"),
    pytest.param(
        {"task_defaults": {"on_failure_callback": "os.abort"}},
        "task_defaults.on_failure_callback",
        "callbacks",
        id="callback",
    ),
]


class TestWhatAConfSaysOfItself:
    @pytest.mark.parametrize(("own", "key", "word"), _OWN_WORDS)
    def test_names_no_program_and_no_place(
        self, root: ConfRootOnDisk, own: dict[str, object], key: str, word: str
    ) -> None:
        root.staging_query("shop.a")
        root.staging_query("shop.b", customJson=json.dumps({"airflow": own}))
        [fault] = faults(root, "staging_query/shop.b__1")
        assert f"metaData.customJson.airflow.{key}: a conf may not set its own {key.rpartition('.')[2]}" in fault
        assert f"confs_may_set: [{word}]" in fault
        assert isinstance(judged(root)["staging_query/shop.a__1"], ConfPlan)

    @pytest.mark.parametrize(("own", "key", "word"), _OWN_WORDS)
    def test_counts_where_the_deployment_allows_it(
        self, root: ConfRootOnDisk, own: dict[str, object], key: str, word: str
    ) -> None:
        root.settings(f"confs_may_set: [{word}]\n")
        root.staging_query("shop.b", customJson=json.dumps({"airflow": own}))
        plan = judged(root)["staging_query/shop.b__1"]
        assert isinstance(plan, ConfPlan)
        said = plan.settings.model_dump(mode="json")
        for part in key.split("."):
            own, said = own[part], said[part]  # type: ignore[assignment]
        assert said == own or own.items() <= said.items()

    def test_may_be_all_that_runs_nothing(self, root: ConfRootOnDisk) -> None:
        own = {"catchup": True, "start_date": "2026-01-01", "task_defaults": {"pool": "shop"}, "retries": 1}
        root.staging_query("shop.a", customJson=json.dumps({"airflow": own}))
        assert isinstance(judged(root)["staging_query/shop.a__1"], ConfPlan)
