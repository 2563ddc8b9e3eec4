"""``chronon.yaml`` and what a conf says of itself: strict reading, and which of them wins."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_chronon.core.settings.model import ConfSettings, Covers, Environment, OnTimeout, Settings, Unscheduled
from airflow_chronon.core.settings.variables import filled
from airflow_chronon.core.settings.yaml import read_settings
from airflow_chronon.errors import Rejected
from tests.support.confs import events, faults_of, group_by, plan_of, staging_query


def refused(text: str) -> list[str]:
    """The messages for a bad file."""
    with pytest.raises(Rejected) as error:
        read_settings(text)
    assert {fault.rule for fault in error.value.faults} == {"settings"}
    return [str(fault) for fault in error.value.faults]


class TestGoodFiles:
    @pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "{}"])
    def test_everything_has_a_default(self, text: str) -> None:
        settings = read_settings(text)
        assert settings == Settings()
        assert (settings.catchup, settings.max_active_runs, settings.max_pending_runs, settings.retries) == (
            False,
            4,
            64,
            2,
        )
        assert (
            settings.covers is Covers.ELAPSED and settings.unscheduled is Unscheduled.KEEP and settings.lookback is None
        )
        assert (settings.sensor.poll_seconds, settings.sensor.timeout, settings.sensor.on_timeout) == (
            60,
            2 * 86400,
            OnTimeout.FAIL,
        )
        assert settings.environment is Environment.PROD and settings.default_branch == "main"

    def test_dates_are_left_as_text_for_each_confs_own_grid(self) -> None:  # C29
        settings = read_settings("start_date: 2026-01-01\nend_date: 2026-01-01T03:00:00Z\nskip_to_date: 20260101\n")
        assert (settings.start_date, settings.end_date, settings.skip_to_date) == (
            "2026-01-01",
            "2026-01-01T03:00:00Z",
            "20260101",
        )

    @pytest.mark.parametrize(
        ("text", "seconds"), [("90s", 90), ("15m", 900), ("6h", 21600), ("2d", 172800), ("2 D", 172800), ("30", 30)]
    )
    def test_durations(self, text: str, seconds: int) -> None:
        assert read_settings(f"sensor: {{timeout: {text}}}").sensor.timeout == seconds

    def test_variables_come_from_the_environment(self) -> None:
        text = "branch: ${BRANCH}\ncatalog: {kind: filesystem, root: 's3://${BUCKET}/${BRANCH}'}"
        settings = read_settings(text, environ={"BRANCH": "try", "BUCKET": "b"})
        assert settings.branch == "try"
        # a catalog is filled in where it is opened: its secrets must not stand in a serialised DAG
        catalog = settings.catalog.of_table("x")
        assert catalog == {"kind": "filesystem", "root": "s3://${BUCKET}/${BRANCH}"}
        assert filled(catalog, {"BRANCH": "try", "BUCKET": "b"})["root"] == "s3://b/try"

    def test_sections_are_laid_over_each_other_key_by_key(self) -> None:
        override = "{match: '*', sensor: {timeout: 1h}, catalog: {landed: any_file}}"
        text = f"sensor: {{poll_seconds: 5}}\ncatalog: {{root: a}}\noverrides: [{override}]"
        found = read_settings(text).for_conf("group_by/x", ())
        assert (found.sensor.poll_seconds, found.sensor.timeout) == (5, 3600)
        assert found.catalog.of_table("t") == {"kind": "filesystem", "root": "a", "landed": "any_file"}

    def test_a_tables_catalog_is_the_first_that_matches(self) -> None:
        settings = read_settings("catalog: {kind: a, tables: [{match: 'vendor.*', kind: b}, {match: '*', kind: c}]}")
        assert settings.catalog.of_table("vendor.x") == {"kind": "b"}
        assert settings.catalog.of_table("data.x") == {"kind": "c"}


class TestBadFiles:
    def test_an_unknown_key_names_the_line_the_key_the_allowed_and_the_nearest(self) -> None:
        (message,) = refused("branch: main\n\ncatchpu: true\n")
        assert message.startswith("line 3, catchpu: unknown key 'catchpu'")
        assert "Did you mean catchup?" in message and "start_date" in message and "max_active_runs" in message

    def test_a_nested_key_is_held_against_its_own_level(self) -> None:
        (message,) = refused("overrides:\n  - match: '*'\n    sensor:\n      timout: 1h\n")
        assert message.startswith("line 4, overrides[0].sensor.timout:")
        assert message.endswith("Did you mean timeout? Allowed are on_never, on_timeout, poll_seconds, timeout.")

    @pytest.mark.parametrize(
        ("text", "where", "remedy"),
        [
            ("catchup: 3", "line 1, catchup: 3 is not allowed", "true or false"),
            ("max_catchup_runs: 0", "line 1, max_catchup_runs: 0 is not allowed", "1 or more"),
            ("retries: 3000000000", "line 1, retries: 3000000000 is not allowed", "10000 or less"),
            ("retries: 1.5", "line 1, retries: 1.5 is not allowed", "a whole number"),
            ("lookback: maybe", "line 1, lookback: 'maybe' is not allowed", "'require', 'warn' or 'ignore'"),
            ("environment: staging", "line 1, environment: 'staging' is not allowed", "prod or canary"),
            ("environment: true", "line 1, environment: True is not allowed", "prod or canary"),
            ("sensor: {timeout: 2w}", "line 1, sensor.timeout: '2w' is not allowed", "90s, 15m, 6h or 2d"),
            ("sensor: {timeout: 0s}", "line 1, sensor.timeout: '0s' is not allowed", "more than 0"),
            ("sensor: 5", "line 1, sensor: 5 is not allowed", "keys and values"),
            ("overrides: {match: x}", "line 1, overrides: {'match': 'x'} is not allowed", "a list"),
            ("overrides:\n- catchup: true", "line 2, overrides[0].match: the key 'match' is missing", "match"),
            ("start_date: [2026]", "line 1, start_date: [2026] is not allowed", "2026-01-15"),
            ("branch: 5", "line 1, branch: 5 is not allowed", "text, in quotes"),
            (
                "task_defaults: {on_failure_callback: foo}",
                "line 1, task_defaults.on_failure_callback: 'foo'",
                "package.module.function",
            ),
            ("5: x", "line 1, [5]: the key 5 is not text", "by its name"),
            ("catchup: true\ncatchup: false", "line 2, catchup: the key stands on line 1 too", "remove one"),
            ("branch: ${NOWHERE}", "line 1, branch: the environment has no NOWHERE", "set NOWHERE"),
            ("foo", "line 1: 'foo' is not allowed", "keys and values"),
            ("- a", "line 1: ['a'] is not allowed", "keys and values"),
            ("a: b: c", "line 1: it is not YAML: mapping values are not allowed here", "syntax"),
            ("{", "line 1: it is not YAML", "syntax"),
            ("a\0b", "it is not YAML", "syntax"),
            ("? [a]\n: b", "line 1: it is not YAML: found unhashable key", "syntax"),
            ("a: !!python/object:os.system {}", "line 1: it is not YAML: could not determine a constructor", "syntax"),
            ("a: &a [*a]", "nested too deeply, or an alias holds itself", "write the values out"),
            ("[" * 5000, "nested too deeply", "write the values out"),
        ],
    )
    def test_a_bad_value_is_one_sentence_with_its_place_and_what_is_allowed(
        self, text: str, where: str, remedy: str
    ) -> None:
        (message,) = refused(text)
        assert where in message and remedy.lower() in message.lower() and "\n" not in message

    def test_every_fault_of_the_file_is_reported_at_once(self) -> None:
        messages = refused("catchpu: 1\nretries: -1\noverrides: [{match: x, lookback: y}]")
        assert [message.split(":")[0] for message in sorted(messages)] == [
            "line 1, catchpu",
            "line 2, retries",
            "line 3, overrides[0].lookback",
        ]

    @pytest.mark.parametrize("key", ["branch", "environment", "overrides", "base_root", "default_branch"])
    def test_a_conf_may_not_set_what_belongs_to_the_deployment(self, key: str) -> None:
        conf = staging_query(customJson=json.dumps({"airflow": {key: "x"}}))
        (fault,) = faults_of(conf)
        assert fault.field == f"metaData.customJson.airflow.{key}" and f"unknown key {key!r}" in fault.message


class TestWhatHolds:
    @staticmethod
    def settings_of(yaml: str, own: object = None, **meta: Any) -> ConfSettings:
        custom: dict[str, Any] = {} if own is None else {"customJson": json.dumps({"airflow": own})}
        return plan_of(group_by("checkout.a.b__1", **meta, **custom), settings=read_settings(yaml)).settings

    def test_a_confs_own_settings_are_read_from_its_custom_json(self) -> None:
        assert self.settings_of("", {"retries": 5}).retries == 5

    def test_an_override_wins_over_the_conf_and_the_conf_over_the_file(self) -> None:
        yaml = "retries: 1\nowner: file\nmax_active_runs: 9\noverrides: [{match: 'group_by/checkout.*', retries: 3}]"
        settings = self.settings_of(yaml, {"retries": 2, "owner": "conf"})
        assert (settings.retries, settings.owner, settings.max_active_runs) == (3, "conf", 9)

    def test_of_the_overrides_only_the_first_match_counts(self) -> None:
        yaml = (
            "overrides:\n"
            "- {match: 'join/*', retries: 1}\n"
            "- {match: '*/checkout.*', retries: 3}\n"
            "- {match: '*', retries: 4, owner: x}\n"
        )
        settings = self.settings_of(yaml)
        assert (settings.retries, settings.owner) == (3, None)

    @pytest.mark.parametrize(
        ("match", "hits"),
        [
            ("group_by/checkout.a.b__1", True),
            ("group_by/*", True),
            ("team:checkout", True),
            ("grid:1h", True),
            ("version:1", True),
            ("checkout.a.b__1", False),
            ("team:check", False),
            ("GROUP_BY/*", False),
        ],
    )
    def test_an_override_matches_a_type_and_name_or_a_tag(self, match: str, hits: bool) -> None:
        settings = self.settings_of(
            f"overrides: [{{match: '{match}', retries: 7}}]", sources=[events(interval="1h")], schedule="0 * * * *"
        )
        assert settings.retries == (7 if hits else 2)

    def test_a_key_set_to_its_default_still_wins(self) -> None:
        yaml = "retries: 9\noverrides: [{match: '*', retries: 2}]"
        assert self.settings_of(yaml).retries == 2

    def test_null_means_not_set(self) -> None:
        assert self.settings_of("start_date: null\nmax_catchup_runs: null", {"skip_to_date": None}).skip_to_date is None

    @pytest.mark.parametrize("own", [[], 3, "x", {"retries": "many"}, {"sensor": {"poll": 3}}])
    def test_bad_settings_of_a_conf_reject_that_conf_alone(self, own: object) -> None:
        bad = staging_query("t.s.bad__1", customJson=json.dumps({"airflow": own}))
        good = staging_query("t.s.good__1")
        assert [fault.field.startswith("metaData.customJson.airflow") for fault in faults_of(bad, good)] == [True]
        assert faults_of(good, bad) == ()
