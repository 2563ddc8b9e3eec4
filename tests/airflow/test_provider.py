"""What Airflow reads about the provider, by Airflow's own schemas and readers."""

from __future__ import annotations

import json
from importlib import import_module
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from airflow.api_fastapi.core_api.services.ui.connections import HookMetaService

from airflow_chronon.airflow_api.login import CONNECTION_TYPE, login_of_parts
from airflow_chronon.provider import get_provider_info

KINDS = ("operators", "sensors", "triggers", "hooks")
#: What Airflow takes a class of each kind for.
SUFFIXES = {"operators": "Operator", "sensors": "Sensor", "triggers": "Trigger", "hooks": "Hook"}


def test_it_follows_the_schema() -> None:
    schema = json.loads((files("airflow") / "provider_info.schema.json").read_text())
    jsonschema.validate(get_provider_info(), schema)


@pytest.mark.parametrize("kind", KINDS)
def test_every_module_it_names_has_classes_of_that_kind(kind: str) -> None:
    info = get_provider_info()
    (entry,) = info[kind]
    assert entry["integration-name"] == info["integrations"][0]["integration-name"]
    for name in entry["python-modules"]:
        module = import_module(name)
        assert [each for each in vars(module) if each.endswith(SUFFIXES[kind]) and not each.startswith("_")]


@pytest.fixture(scope="module")
def form() -> Any:
    """The form of the connection, as the UI asks for it."""
    (found,) = (each for each in HookMetaService.hook_meta_data() if each.connection_type == CONNECTION_TYPE)
    return found


def test_the_form_of_the_connection_asks_for_what_is_read(form: Any) -> None:
    assert form.hook_name == "Airflow API (Chronon)"
    assert form.standard_fields.url_schema.hidden
    assert form.standard_fields.host.placeholder == "http://127.0.0.1:8080"
    assert form.standard_fields.login.title == "User"
    assert [*form.extra_fields] == ["token", "scheme"]
    assert form.extra_fields["token"]["schema"]["format"] == "password"


def test_what_the_form_fills_in_is_a_login(form: Any) -> None:
    extra = dict(zip(form.extra_fields, ("t0ken", "https"), strict=True))
    login = login_of_parts(host="airflow.example", extra=extra)
    assert (login.url, login.token) == ("https://airflow.example", "t0ken")


def test_a_form_that_is_left_empty_is_no_token(form: Any) -> None:
    login = login_of_parts(host="h", user="u", password="p", extra=dict.fromkeys(form.extra_fields))
    assert (login.url, login.token) == ("http://h", None)
