"""What one file may hold: everything that reaches Airflow is within what PostgreSQL takes (S1, S2)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_chronon.core.bounds import MAX_DEPTH, MAX_TABLES, unstorable
from airflow_chronon.core.confs.documents import ConfType, read_document
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.settings.yaml import branches_in, read_settings
from airflow_chronon.errors import Fault, Rejected
from tests.support.confs import dependency, faults_of, group_by, join, plan_of, staging_query
from tests.support.jobs import HEAD, job

LONGEST_RUN_ID = len("asset_materialization__") + len("__") + len("0123abcd")
NESTED = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 20)
)


def refused(document: dict[str, Any], kind: ConfType = ConfType.STAGING_QUERY) -> Fault:
    with pytest.raises(Rejected) as raised:
        read_document(kind, json.loads(json.dumps(document)))
    (fault,) = raised.value.faults
    assert str(fault).isprintable() and fault.remedy
    return fault


def with_meta(field: str, value: object) -> dict[str, Any]:
    """A staging query that says this in its metaData."""
    document = staging_query()
    document["metaData"][field] = value
    return document


def job_refused(text: str) -> Fault:
    with pytest.raises(Rejected) as raised:
        job(HEAD + text)
    *_, fault = raised.value.faults  # of a value that may be a text or a list, one for each
    assert str(fault).isprintable() and fault.remedy
    return fault


class TestTextsOfAConf:
    @pytest.mark.parametrize("bad", ["a\0b", "a\ud800", "\udfffa"], ids=["NUL", "half a pair", "the other half"])
    @pytest.mark.parametrize("field", ["team", "version", "outputNamespace", "customJson", "anything"])
    def test_what_postgresql_does_not_store_is_refused_wherever_it_stands(self, field: str, bad: str) -> None:  # S1
        fault = refused(with_meta(field, bad))
        assert fault.rule == "S1" and fault.field == f"metaData.{field}"

    @pytest.mark.parametrize("bad", ["a\nb", "a\x1b[2Jb", "a\u202eb", "x" * 501], ids=["line", "ESC", "turned", "long"])
    def test_a_name_that_lists_and_terminals_do_not_take_is_refused(self, bad: str) -> None:  # S1
        assert refused(staging_query(team=bad)).field == "metaData.team"
        assert refused(staging_query(dependencies=[dependency(bad)])).field == "tableDependencies[0].tableInfo.table"
        part = group_by(sources=[{"events": {"table": bad, "query": {}}}])
        assert refused(join(parts=[part]), ConfType.JOIN).rule == "S1"

    def test_a_key_that_is_no_text_to_store_is_refused(self) -> None:  # S1
        assert refused(with_meta("a\0", 1)).rule == "S1"

    def test_numbers_that_json_or_the_wire_do_not_hold_are_refused(self) -> None:  # S1
        for number in (float("nan"), float("inf"), 2**63, -(2**63) - 1):
            assert refused(with_meta("more", number)).field == "metaData.more"

    def test_a_query_may_have_lines_and_be_long(self) -> None:
        read_document(ConfType.STAGING_QUERY, staging_query() | {"query": "SELECT 1\n\tAS n\n" * 10_000})

    def test_nesting_is_bounded(self) -> None:  # S2
        deep: Any = 1
        for _ in range(MAX_DEPTH + 1):
            deep = [deep]
        assert "nested too deeply" in refused(staging_query(deep=deep)).message
        assert unstorable([[[1]]]) is None

    def test_the_tables_of_one_conf_are_bounded(self) -> None:  # S2
        tables = [dependency(f"a.b{n}") for n in range(MAX_TABLES + 1)]
        assert refused(staging_query(dependencies=tables)).rule == "S2"
        assert len(plan_of(staging_query(dependencies=tables[1:])).dependencies[Mode.BACKFILL]) == MAX_TABLES
        custom = json.dumps({"airflowDependencies": [{"spec": f"a.b{n}/ds={{{{ ds }}}}"} for n in range(8_000)]})
        (fault,) = faults_of(staging_query(customJson=custom))
        assert fault.rule == "S2" and "8000" in fault.message

    def test_the_labels_of_a_format_fit_into_a_run_id(self) -> None:  # S1
        (fault,) = faults_of(staging_query(info={"partitionFormat": "yyyy-MM-dd'" + "x" * 300 + "'"}))
        assert fault.rule == "S1" and "310 characters" in fault.message
        plan = plan_of(staging_query(info={"partitionFormat": "yyyy-MM-dd'" + "x" * 90 + "'"}))
        assert len(plan.spec.label(0)) + LONGEST_RUN_ID <= 250


class TestSettings:
    @pytest.mark.parametrize(
        "text",
        [
            "owner: " + "x" * 3000,
            "owner: ''",
            'owner: "a\\0b"',
            'owner: "a\\ud800"',
            'owner: "a\\nb"',
            "retries: 3000000000",
            "task_defaults: {priority_weight: 3000000000}",
            "task_defaults: {priority_weight: -3000000000}",
            "task_defaults: {pool: " + "x" * 300 + "}",
            "task_defaults: {queue: " + "x" * 300 + "}",
            "task_defaults: {pool: !!binary aGVsbG8=}",
            "task_defaults: {email: !!set {a, b}}",
            "task_defaults: {email: " + json.dumps(["a@b"] * 200) + "}",
            "env: {A: 2026-01-01, B: !!timestamp 2026-01-01}",
            "task_defaults: {on_failure_callback: a." + "x" * 3000 + "}",
        ],
    )
    def test_a_job_cannot_say_what_airflow_does_not_store(self, text: str) -> None:  # S1
        assert job_refused(text)

    @pytest.mark.parametrize("kind", ["binary", "set", "omap", "pairs", "timestamp"])
    def test_what_json_has_not_is_refused_by_name(self, kind: str) -> None:  # S1
        value = {"binary": "aGk=", "set": "{a}", "omap": "[a: 1]", "pairs": "[a: 1]", "timestamp": "2026-01-01"}[kind]
        assert f"!!{kind}" in job_refused(f"env:\n  A: !!{kind} {value}\n").message

    def test_weights_of_a_whole_dag_stay_within_an_integer(self) -> None:  # S1
        job(HEAD + "task_defaults: {priority_weight: 1000000}")
        assert "1000000 or less" in job_refused("task_defaults: {priority_weight: 1000001}").remedy

    def test_a_confs_own_settings_are_held_to_the_same(self) -> None:  # S1
        for own in ({"owner": "a\ud800"}, {"owner": "x" * 3000}, {"retries": 10**30}, {"catalog": {"a": "\0"}}):
            document = staging_query(customJson=json.dumps({"airflow": own}))
            (fault,) = faults_of(document)
            assert fault.field.startswith("metaData.customJson.airflow") and str(fault).isprintable()
        large = {"catalog": {"kind": "filesystem", "root": "x" * 100_000}}
        (fault,) = faults_of(staging_query(customJson=json.dumps({"airflow": large})))
        assert fault.rule == "S1" and "64 KB" in fault.message

    def test_aliases_are_bounded_by_what_they_expand_to(self) -> None:  # S2
        text = f"{NESTED}branch: *a19\n"
        assert len(text) < 2048
        with pytest.raises(Rejected, match="its aliases written out"):
            read_settings(text)
        branches_in(text, {})  # ends
        assert branches_in(f"branch: try\n{NESTED}", {}).branch == "try"  # type: ignore[union-attr]
        with pytest.raises(Rejected, match="its aliases written out"):
            job(f"{HEAD}env: {{}}\n{NESTED}")

    def test_merged_aliases_are_bounded_too(self) -> None:  # S2
        text = "m0: &m0 {a: 1, b: 2}\n" + "".join(
            f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 10)}]}}\n" for n in range(1, 12)
        )
        with pytest.raises(Rejected, match="its aliases written out"):
            read_settings(text)

    def test_a_branch_fits_into_addresses_and_folders(self) -> None:  # S1
        assert read_settings("branch: feature/short").branch == "feature/short"
        for bad in ("x" * 201, "ö" * 100):
            with pytest.raises(Rejected, match="too long for a branch"):
                read_settings(f"branch: {bad}")


class TestMessages:
    def test_can_be_printed_and_stored_whatever_they_quote(self) -> None:  # S1
        fault = Fault("C1", "a\ud800", "b\0c\x1b[2J" + "x" * 100_000, "d\u202e")
        str(fault).encode()
        assert "\0" not in str(fault) and "\x1b" not in str(fault) and len(str(fault)) < 5_000

    def test_of_one_file_are_as_many_as_someone_reads(self) -> None:  # S1
        error = Rejected([Fault("C1", "", f"number {n}") for n in range(500)])
        assert len(error.faults) < 30 and "480 more" in str(error)
