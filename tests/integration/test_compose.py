"""What can be known of docker-compose.yaml, the Dockerfile and .env.example without a Docker engine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft201909Validator

from tests.support.checkout import ROOT
from tests.support.integration.compose_file import AIRFLOW_SERVICES, FILE, VARIABLE, services

SCHEMA = Path(__file__).with_name("compose_spec.json")


def test_the_file_follows_the_compose_specification() -> None:
    schema = json.loads(SCHEMA.read_text())
    errors = [
        f"{'.'.join(map(str, error.path))}: {error.message}"
        for error in Draft201909Validator(schema).iter_errors(yaml.safe_load(FILE.read_text()))
    ]
    assert errors == []


def test_the_schema_check_sees_a_misspelt_key() -> None:
    schema = json.loads(SCHEMA.read_text())
    compose = yaml.safe_load(FILE.read_text())
    compose["services"]["scheduler"]["restrat"] = "always"
    assert not Draft201909Validator(schema).is_valid(compose)


def test_published_ports_are_reachable_from_this_machine_only() -> None:
    published = [str(port) for service in services().values() for port in service.get("ports", [])]
    assert published
    assert [port for port in published if not port.startswith("127.0.0.1:")] == []


def test_every_variable_is_required_and_has_no_default() -> None:
    uses = [match for match in VARIABLE.finditer(FILE.read_text()) if match["name"]]
    assert uses
    assert {match[0] for match in uses if match["operator"] != ":?"} == set()


def test_no_secret_stands_in_the_file() -> None:
    literal = [
        f"{name}.{key}"
        for name, service in services().items()
        for key, value in service.get("environment", {}).items()
        if re.search(r"PASSWORD$|SECRET|FERNET|SQL_ALCHEMY_CONN", key) and "${" not in str(value)
    ]
    assert literal == []


def test_the_example_environment_names_exactly_the_variables_of_the_file_and_starts_nothing_as_it_is() -> None:
    # ${NAME:?…} refuses an empty value too
    asked = {match["name"] for match in VARIABLE.finditer(FILE.read_text()) if match["name"]}
    given = dict(line.split("=", 1) for line in (ROOT / ".env.example").read_text().splitlines() if "=" in line[:40])
    given = {name: value for name, value in given.items() if not name.startswith("#")}
    assert given == dict.fromkeys(asked, "")


def test_every_container_gives_up_what_it_does_not_need() -> None:  # S10
    for name, service in services().items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["mem_limit"] and service["pids_limit"], name


def test_images_from_elsewhere_are_pinned_by_digest() -> None:
    assert re.fullmatch(r"postgres:\d+\.\d+-\w+@\$\{POSTGRES_DIGEST:\?[^}]*\}", services()["postgres"]["image"])
    built = [service for name, service in services().items() if name in AIRFLOW_SERVICES]
    assert all(service["build"]["args"]["PYTHON_DIGEST"].startswith("${PYTHON_DIGEST:?") for service in built)
    shown = (ROOT / ".env.example").read_text()  # the command beside each variable asks for the very tag
    assert f"inspect {services()['postgres']['image'].partition('@')[0]} " in shown
    assert f"inspect {base_images()[0].partition('@')[0]} " in shown


def base_images() -> list[str]:
    return re.findall(r"^FROM (\S+)", (ROOT / "docker" / "Dockerfile").read_text(), re.MULTILINE)


def test_each_service_gets_the_secrets_that_it_needs_and_no_others() -> None:  # S10
    held = {
        name: {match["name"] for match in VARIABLE.finditer(str(each)) if not match["name"].endswith("_DIGEST")}
        for name, each in services().items()
    }
    database = {"POSTGRES_PASSWORD"}
    ask_airflow = {"AIRFLOW_JWT_SECRET", "AIRFLOW_FERNET_KEY", "AIRFLOW_EDITOR_PASSWORD", "AIRFLOW_READER_PASSWORD"}
    assert held == {
        "postgres": database,
        "migrate": database,
        "dag-processor": database,  # it runs whatever lies in the dags folder
        "triggerer": database | {"AIRFLOW_FERNET_KEY", "AIRFLOW_READER_PASSWORD"},
        "scheduler": database | ask_airflow,
        "api-server": database | ask_airflow | {"AIRFLOW_API_SECRET_KEY", "AIRFLOW_ADMIN_PASSWORD"},
    }


def test_only_what_writes_the_warehouse_may() -> None:
    mounts = {
        name: [each for each in service.get("volumes", []) if each.startswith("warehouse:")]
        for name, service in services().items()
    }
    assert {name: found for name, found in mounts.items() if found} == {
        "scheduler": ["warehouse:/warehouse"],
        "triggerer": ["warehouse:/warehouse:ro"],
    }


def test_tasks_read_by_an_account_that_may_change_nothing_and_no_connection_is_an_administrators() -> None:  # S10
    users = services()["api-server"]["environment"]["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"]
    assert users == "admin:admin,editor:user,reader:viewer"
    for name in ("scheduler", "triggerer"):
        login = json.loads(services()[name]["environment"]["AIRFLOW_CONN_CHRONON_AIRFLOW"])["login"]
        assert login == "reader", name
    assert json.loads(services()["scheduler"]["environment"]["AIRFLOW_CONN_CHRONON_RECONCILER"])["login"] == "editor"


def test_every_service_that_stays_up_has_a_health_check_and_comes_back() -> None:
    for name, service in services().items():
        check = service["healthcheck"]
        if check.get("disable"):  # a one-shot: its exit code is awaited instead
            others = [other.get("depends_on", {}).get(name, {}) for other in services().values()]
            assert {"condition": "service_completed_successfully"} in others, name
        else:
            assert check["test"][0] == "CMD", name
            assert service["restart"] == "unless-stopped", name


def test_the_airflow_processes_start_after_the_migration() -> None:
    for name in set(AIRFLOW_SERVICES) - {"migrate"}:
        after = services()[name]["depends_on"]
        assert after["postgres"] == {"condition": "service_healthy"}
        assert after["migrate"] == {"condition": "service_completed_successfully"}


def test_no_task_is_the_first_to_ask_the_execution_api() -> None:
    assert services()["scheduler"]["depends_on"]["api-server"] == {"condition": "service_healthy"}
    assert "execution/health" in services()["api-server"]["healthcheck"]["test"][-1]


def test_all_airflow_services_share_one_environment() -> None:
    shared = services()["migrate"]["environment"]
    for name in AIRFLOW_SERVICES:
        assert shared.items() <= services()[name]["environment"].items(), name


def test_no_container_of_ours_runs_as_root() -> None:
    users = {name: service["user"].split(":")[0] for name, service in services().items() if name in AIRFLOW_SERVICES}
    assert set(users.values()) == {"50000"}
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text()
    assert "--uid 50000" in dockerfile and "\nUSER airflow\n" in dockerfile


@pytest.mark.soak
def test_every_setting_is_an_option_that_airflow_knows(airflow_options: dict[str, list[str]]) -> None:
    unknown = [
        name
        for service in AIRFLOW_SERVICES
        for name in services()[service]["environment"]
        if name.startswith("AIRFLOW__") and not _is_known(name, airflow_options)
    ]
    assert unknown == []


@pytest.mark.soak
def test_the_commands_and_checks_are_command_lines_that_airflow_parses() -> None:
    lines = [
        service["command"] for name, service in services().items() if name in AIRFLOW_SERVICES and "command" in service
    ]
    lines += [
        service["healthcheck"]["test"][2:]
        for service in services().values()
        if service["healthcheck"].get("test", [])[1:2] == ["airflow"]
    ]
    assert len(lines) == 6
    program = (
        "import json, sys; from airflow.cli.cli_parser import get_parser\n"
        "for line in json.loads(sys.argv[1]): get_parser().parse_args(line)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(lines)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_api_server_takes_the_passwords_from_the_environment(tmp_path: Path) -> None:
    shim = tmp_path / "airflow"
    shim.write_text(
        '#!/bin/sh\necho "$@" "${ADMIN_PASSWORD-no password in the environment}${EDITOR_PASSWORD-}${READER_PASSWORD-}"\n'
    )
    shim.chmod(0o755)
    passwords = tmp_path / "passwords.json"
    environment = {
        "PATH": f"{tmp_path}:/usr/bin:/bin",
        "ADMIN_PASSWORD": 'a "quoted" one',
        "EDITOR_PASSWORD": "one more",
        "READER_PASSWORD": "another",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
    }
    _, *arguments = services()["api-server"]["entrypoint"]
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "api-server no password in the environment"
    assert json.loads(passwords.read_text()) == {
        "admin": 'a "quoted" one',
        "editor": "one more",
        "reader": "another",
    }
    assert passwords.stat().st_mode & 0o077 == 0


def test_the_image_is_built_from_public_names_and_the_lock_with_hashes() -> None:
    dockerfile, images = (ROOT / "docker" / "Dockerfile").read_text(), base_images()
    assert len(images) == 2 and len(set(images)) == 1
    assert re.fullmatch(r"python:3\.12\.\d+-slim-\w+@\$\{PYTHON_DIGEST\}", images[0])
    assert "--require-hashes --requirement requirements.lock" in dockerfile
    copied = {
        name for line in re.findall(r"^COPY (?!--from)(.+)$", dockerfile, re.MULTILINE) for name in line.split()[:-1]
    }
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert copied == kept and all((ROOT / name).exists() for name in copied)


@pytest.fixture(scope="module")
def airflow_options() -> dict[str, list[str]]:
    """Section to option names of the installed Airflow, providers (this one too) included."""
    program = (
        "import json; from airflow.configuration import conf\n"
        "print('options=' + json.dumps({name: list(section['options'])"
        " for name, section in conf.configuration_description.items()}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("options="))
    options: dict[str, list[str]] = json.loads(line.removeprefix("options="))
    return options


def _is_known(variable: str, options: dict[str, list[str]]) -> bool:
    _, section, option = variable.lower().split("__", 2)
    return option in options.get(section, [])
