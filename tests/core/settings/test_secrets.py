"""What the environment holds is in no message (S4): settings are quoted as they are written."""

from __future__ import annotations

from itertools import combinations

import pytest

from airflow_chronon.core.settings.variables import Secrets, filled_template, unfilled_template
from airflow_chronon.core.settings.yaml import branches_in, read_settings
from airflow_chronon.errors import CatalogError, Fault, Rejected

#: Values of every shape: long, short, one sign, none, a common word, a number, braces, quotes, a place, a URL with a key.
VALUES = ("hunter'2-{x}", "a", "", "is", "7", "{day}", "/srv/w", "s3://key:pa/ss@bucket/w", "command", "-")

WRONG = (
    "catalog: {kind: '${S}'}",
    "catalog: {root: 'http://x', landed: '${S}'}",
    "catalog: {storage_options: '${S}'}",
    "catalog: {tables: [{match: x, landed: '${S}'}]}",
    "runner: {kind: '${S}'}",
    "runner: {kind: local, warehouse: 's3://${S}'}",
    "runner: {kind: local, threads: '${S}'}",
    "runner: {kind: local, memory_limit: ['${S}']}",
    "runner: {kind: local, kv_store: '${S}://x'}",
    "runner: {kind: command, argv: '${S}'}",
    "runner: {kind: command, argv: [x, '{${S}}']}",
    "runner: {kind: command, argv: [x, '{a${S}']}",
    "runner: {kind: command, argv: [x, '--pw=${S}', '{day}']}",
    "runner: {kind: command, argv: [x], cwd: ['${S}']}",
    "runner: {kind: command, argv: [x], env: {A: ['${S}']}}",
    "runner: {kind: command, argv: [x], grace_seconds: '${S}'}",
    "runner: {kind: command, argv: [x], pass_env: ['${S}=']}",
    "environment: 'x${S}'",
    "owner: '${S}'",
    "start_date: '${S}'",
    "retries: '-${S}x'",
    "sensor: {timeout: '${S}'}",
    "task_defaults: {pool: 'a-${S}', email: ['${S}']}",
    "overrides: [{match: '${S}'}]",
)


@pytest.mark.parametrize("text", WRONG)
def test_what_is_said_is_the_same_whatever_the_environment_holds(text: str) -> None:
    said = set()
    for value in VALUES:
        with pytest.raises(Rejected) as refused:
            read_settings(text, environ={"S": value}, warehouse="/w")
        said.add(str(refused.value))
    (message,) = said
    assert "${S}" in message or "this value is not allowed" in message or "placeholder" in message


def test_the_braces_of_a_value_are_no_placeholders() -> None:
    for value in VALUES:
        template = filled_template(["--pw=${S}", "{mode}"], {"S": value})
        assert [each.format(mode="x") for each in template] == [f"--pw={value}", "x"]
        read_settings("runner: {kind: command, argv: [x, '--pw=${S}', '{mode}']}", environ={"S": value}, warehouse="/w")
    assert [each.format(mode="x") for each in unfilled_template(["--pw=${S:-d}", "{mode}"])] == ["--pw=${S:-d}", "x"]


def test_what_everybody_sees_is_filled_in_only_where_that_is_meant() -> None:
    environ = {"BRANCH": "try", "AIRFLOW__CORE__FERNET_KEY": "f3rnet"}
    assert read_settings("branch: ${BRANCH}", environ=environ).branch == "try"
    text = "branch: ${AIRFLOW__CORE__FERNET_KEY}"
    with pytest.raises(Rejected, match=r"for everybody to see .S4.") as refused:
        read_settings(text, environ=environ)
    assert "f3rnet" not in str(refused.value)
    assert branches_in(text, environ) is None  # it must not become the name of a branch
    with pytest.raises(Rejected, match=r"line 1, owner: what \$.BRANCH. stands for would be in DAGs"):
        read_settings("owner: ${BRANCH}", environ=environ)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("s3://key:pa/ss@bucket", "cannot list s3://key:pa/ss@bucket/t: no bucket"),
        ("s3://key:pa%2Fss@bucket", "403 for key: signature of bucket"),
        ("abc/def+gh/ijkl", "no host named abc%2Fdef%2Bgh%2Fijkl"),
        ('{"key": "k3y", "secret": "s3cret"}', "unexpected argument s3cret"),
        ("hunter'2", "cannot parse 'hunter\\'2'"),
        ("x", "cannot take x"),
        ("cat", "it says cat: no cat"),
        ("/srv/wh", "cannot write /srv/wh/t: full"),
    ],
)
def test_no_piece_of_a_value_is_left_in_a_text(value: str, text: str) -> None:
    secrets = Secrets.of("${S}", environ={"S": value})
    said = secrets.hidden(text)
    assert value not in said and "${S}" in said
    for piece in ("pa/ss", "pa%2Fss", "bucket", "def", "s3cret", "hunter"):
        assert piece not in value or piece not in said


def test_a_short_value_does_not_show_by_what_is_left_out() -> None:
    # replaced one by one, the signs around the names would tell it
    said = Secrets.of("${S}", environ={"S": "a"}).hidden("a partition: it landed")
    assert said == "…: it landed (left out is what tells ${S})"
    assert Secrets.of("${S}", environ={"S": ""}).hidden("as it was") == "as it was"
    assert Secrets.of("s3://b", environ={}).hidden("as it was") == "as it was"


def test_a_place_is_written_by_its_name() -> None:
    secrets = Secrets.of("${WAREHOUSE}/${DAY}", environ={"WAREHOUSE": "/srv/warehouse", "DAY": "2026-01-01"})
    assert (
        secrets.hidden("cannot list /srv/warehouse/2026-01-01/t: no data")
        == "cannot list ${WAREHOUSE}/${DAY}/t: no data"
    )


def test_an_error_keeps_its_kind_and_loses_what_led_to_it() -> None:
    secrets = Secrets.of("${S}", environ={"S": "s3cret-key"})
    with pytest.raises(CatalogError) as caught, secrets.kept():
        try:
            raise OSError("s3cret-key")
        except OSError as error:
            raise CatalogError(Fault("catalog", "", "no s3cret-key", "mend s3cret-key"), conf="t") from error
    error = caught.value
    assert str(error) == "t: no ${S} (catalog). Mend ${S}."
    assert error.fault.message == "no ${S}" and error.__cause__ is None and error.__context__ is None


def test_one_value_within_another_hides_both() -> None:
    values = {"A": "long-secret-one", "B": "long-secret-one-and-more", "C": "secret"}
    for names in combinations(values, 2):
        secrets = Secrets.of(*(f"${{{name}}}" for name in names), environ=values)
        said = secrets.hidden("it was long-secret-one-and-more: or secret: or long-secret-one")
        assert not any(values[name] in said for name in names)
