"""``catalog`` and ``runner`` in the settings file: each fault at its key, once, with what the kind allows."""

from __future__ import annotations

import pytest

from airflow_chronon.core.settings.yaml import read_settings
from airflow_chronon.errors import Rejected

ROOT = "/warehouse"


def refused(text: str, **environ: str) -> list[str]:
    """The messages for a bad file."""
    with pytest.raises(Rejected) as error:
        read_settings(text, environ=environ, warehouse=ROOT)
    return [str(fault) for fault in error.value.faults]


def test_a_catalog_that_names_no_root_has_the_deployments():
    assert read_settings("", warehouse=ROOT).catalog.default == {"kind": "filesystem", "root": ROOT}
    assert read_settings("catalog: {root: /mine}", warehouse=ROOT).catalog.default["root"] == "/mine"


def test_what_is_not_filled_in_yet_stays_as_it_is_written_and_is_judged_as_it_will_be():
    text = "catalog: {root: '${ROOT}', landed: '${LANDED}'}"
    catalog = read_settings(text, environ={"ROOT": "/r", "LANDED": "any_file"}, warehouse=ROOT).catalog
    assert catalog.default == {"kind": "filesystem", "root": "${ROOT}", "landed": "${LANDED}"}
    (message,) = refused(text, ROOT="/r", LANDED="soon")
    assert message.startswith("line 1, catalog.landed: '${LANDED}' is not allowed")


@pytest.mark.parametrize(
    "text",
    [
        "runner: {kind: command, argv: [run, '--password=${PW}', 5]}",
        "runner: {kind: command, argv: [run], grace_seconds: '${PW}'}",
        "catalog: {root: 's3://key:${PW}@bucket'}",
        "catalog: {landed: '${PW}'}",
        "catalog: {tables: [{match: x, landed: '${PW}'}]}",
        "overrides: [{match: x, runner: {kind: '${PW}'}}]",
    ],
)
def test_no_message_holds_what_the_environment_does(text: str) -> None:
    assert not [each for each in refused(text, PW="hunter'2") if "hunter" in each]


def test_an_unknown_kind_names_the_known_and_the_nearest():
    (message,) = refused("\nrunner: {kind: comand}")
    assert message.startswith("line 2, runner.kind: the runner kind 'comand' is not known")
    assert message.endswith("Did you mean command? Use local or command or zipline or operator.")


def test_a_key_of_another_kind_is_not_known():
    (message,) = refused("runner:\n  kind: command\n  thread: 2")
    assert message.startswith("line 3, runner.thread: unknown key 'thread'")
    (message,) = refused("runner:\n  kind: local\n  arg: [x]")
    assert message.endswith("Allowed are kind, kv_store, memory_limit, spill_limit, threads, timeout, warehouse.")


def test_the_tables_of_a_catalog_are_a_known_key_of_every_kind():
    (message,) = refused("catalog: {tabels: []}")
    assert message.endswith(
        "Did you mean tables? Allowed are expression_memory, expression_timeout, kind, landed, root, "
        "storage_options, tables."
    )
    (message,) = refused("catalog: {tables: [{match: x, lnded: any_file}]}")
    assert message.endswith(
        "Allowed are expression_memory, expression_timeout, kind, landed, match, root, storage_options."
    )


def test_the_embedded_engine_cannot_write_to_a_catalog_elsewhere():
    (message,) = refused("catalog: {root: 's3://bucket'}")
    assert (
        "runner.warehouse: the embedded engine writes to folders of this machine only, not to 's3://bucket'" in message
    )
    read_settings("catalog: {root: 's3://bucket'}\nrunner: {kind: command}", warehouse=ROOT)


def test_the_catalog_of_a_table_is_judged_over_the_default_and_named_by_its_place():
    text = "catalog:\n  tables:\n  - {match: 'a.*', landed: soon}\n  - {match: 'a.b', rot: /x}\n"
    first, second = refused(text)
    assert first.startswith("line 3, catalog.tables[0].landed: 'soon' is not allowed")
    assert second.startswith("line 4, catalog.tables[1].rot: unknown key 'rot'")


def test_a_fault_of_the_defaults_is_named_once_and_not_again_for_what_is_laid_over_them():
    text = "catalog: {landed: soon, tables: [{match: x}]}\noverrides:\n- {match: '*', retries: 3}\n- {match: y, catalog: {root: /y}}\n"
    (message,) = refused(text)
    assert message.startswith("line 1, catalog.landed:")
    (message,) = refused("catalog: {rot: 1, tables: [{match: x}]}\noverrides: [{match: '*', retries: 3}]")
    assert message.startswith("line 1, catalog.rot:")


def test_a_fault_of_an_override_stands_in_the_override():
    text = "overrides:\n- match: '*'\n  runner:\n    threads: many\n- match: x\n  catalog:\n    rot: 1\n"
    first, second = refused(text)
    assert first.startswith("line 4, overrides[0].runner.threads: 'many' is not a number of threads")
    assert second.startswith("line 7, overrides[1].catalog.rot: unknown key 'rot'")


def test_an_override_of_another_kind_is_judged_without_the_defaults_keys():
    settings = read_settings(
        "runner: {kind: local, threads: 2}\noverrides: [{match: '*', runner: {kind: command, argv: [x]}}]",
        warehouse=ROOT,
    )
    assert settings.for_conf("join/a", ()).runner.model_dump() == {"kind": "command", "argv": ["x"]}


@pytest.mark.parametrize(
    "text",
    ["runner: {kind: command, env: {TOKEN: ['${SECRET}']}}", "catalog: {root: /x, storage_options: '${SECRET}'}"],
)
def test_what_may_be_a_secret_is_not_shown(text: str):
    (message,) = refused(text, SECRET="hush")
    assert "hush" not in message and "this value is not allowed" in message


@pytest.mark.parametrize("value", [".inf", ".nan", "-1", "1e300"])
def test_seconds_that_no_clock_counts_are_refused(value: str) -> None:
    (message,) = refused(f"runner: {{kind: command, argv: [x], grace_seconds: {value}}}")
    assert "is not a number of" in message  # seconds, or of JSON at all (S1)
