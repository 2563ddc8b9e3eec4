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
from tests.support.integration.airflow_options import airflow_options
from tests.support.integration.compose_file import AIRFLOW_SERVICES, FILE, VARIABLE, filled, replicas, services

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
    assert re.fullmatch(r"redis:\d+\.\d+\.\d+-\w+@\$\{REDIS_DIGEST:\?[^}]*\}", services()["redis"]["image"])
    shown = (ROOT / ".env.example").read_text()  # the command beside each variable asks for the very tag
    for name in ("postgres", "redis"):
        assert f"inspect {services()[name]['image'].partition('@')[0]} " in shown
    assert f"inspect {base_images()[0].partition('@')[0]} " in shown


def base_images() -> list[str]:
    return re.findall(r"^FROM (\S+)", (ROOT / "docker" / "Dockerfile").read_text(), re.MULTILINE)


def test_each_service_gets_the_secrets_that_it_needs_and_no_others() -> None:  # S10
    held = {
        name: {found for match in VARIABLE.finditer(str(each)) if (found := match["name"]) and "DIGEST" not in found}
        for name, each in services().items()
    }
    database, broker = {"POSTGRES_PASSWORD"}, {"REDIS_PASSWORD"}
    keys = {"AIRFLOW_JWT_SECRET", "AIRFLOW_FERNET_KEY"}
    accounts = {"AIRFLOW_EDITOR_PASSWORD", "AIRFLOW_READER_PASSWORD"}
    assert held == {
        "postgres": database,
        "redis": broker,
        "migrate": database,
        "dag-processor": database,  # it runs whatever lies in the dags folder
        "triggerer": database | {"AIRFLOW_FERNET_KEY", "AIRFLOW_READER_PASSWORD"},
        "scheduler": database | broker | keys,  # it runs no task, so it asks for nobody
        "worker": broker | accounts,  # it runs what teams wrote: no key, no database
        "api-server": database | keys | accounts | {"AIRFLOW_API_SECRET_KEY", "AIRFLOW_ADMIN_PASSWORD"},
    }


def test_a_volume_is_mounted_where_it_is_needed_and_nowhere_else() -> None:  # S10
    mounts: dict[str, set[str]] = {}
    for name, service in services().items():
        for mount in service.get("volumes", []):
            source, _, more = mount.partition(":")
            mounts.setdefault(source, set()).add(f"{name}{' reads' if more.endswith(':ro') else ''}")
    logs = {"api-server", "scheduler", "worker", "dag-processor", "triggerer"}
    assert mounts == {
        "database": {"postgres"},
        "broker": {"redis"},
        "logs": logs,
        "state": {"worker", "dag-processor"},
        "./dags": {"worker reads", "dag-processor reads", "triggerer reads"},
        "warehouse": {"worker", "triggerer reads"},
    }


def test_whatever_a_run_depends_on_is_there_twice_except_the_api_the_parser_and_the_servers() -> None:
    assert {name for name in services() if replicas(name) == 2} == {"scheduler", "triggerer", "worker"}
    published = {name for name, service in services().items() if "ports" in service}
    assert published.isdisjoint(name for name in services() if replicas(name) > 1)  # one port, one container


def test_tasks_of_a_scheduler_that_is_gone_are_found_within_a_minute() -> None:
    assert services()["scheduler"]["environment"]["AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL"] == "60"


def test_tasks_read_by_an_account_that_may_change_nothing_and_no_connection_is_an_administrators() -> None:  # S10
    users = services()["api-server"]["environment"]["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"]
    assert users == "admin:admin,editor:user,reader:viewer"
    for name in ("worker", "triggerer"):
        login = json.loads(services()[name]["environment"]["AIRFLOW_CONN_CHRONON_AIRFLOW"])["login"]
        assert login == "reader", name
    assert json.loads(services()["worker"]["environment"]["AIRFLOW_CONN_CHRONON_RECONCILER"])["login"] == "editor"


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
    for name in ("scheduler", "worker"):
        after = services()[name]["depends_on"]
        assert after["api-server"] == after["redis"] == {"condition": "service_healthy"}, name
    assert "execution/health" in services()["api-server"]["healthcheck"]["test"][-1]


def test_all_airflow_services_share_one_environment() -> None:
    compose = yaml.safe_load(FILE.read_text())
    shared = compose["x-airflow"]["environment"]
    for name in AIRFLOW_SERVICES:
        assert shared.items() <= services()[name]["environment"].items(), name


def test_no_container_of_ours_runs_as_root() -> None:
    assert services()["redis"]["user"] == "999:999"  # that of the image
    users = {name: service["user"].split(":")[0] for name, service in services().items() if name in AIRFLOW_SERVICES}
    assert set(users.values()) == {"50000"}
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text()
    assert "--uid 50000" in dockerfile and "\nUSER airflow\n" in dockerfile


@pytest.mark.soak
def test_every_setting_is_an_option_that_airflow_knows() -> None:
    options = airflow_options()
    unknown = [
        name
        for service in AIRFLOW_SERVICES
        for name in services()[service]["environment"]
        if name.startswith("AIRFLOW__") and not _is_known(name, options)
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
    assert len(lines) == 7
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


def test_redis_is_given_its_password_by_no_argument(tmp_path: Path) -> None:  # S4
    shim = tmp_path / "redis-server"
    shim.write_text('#!/bin/sh\necho "$@"\nstat -c %a "$1"\ncat "$1"\n')
    shim.chmod(0o755)
    _, _, script = services()["redis"]["command"]
    script = filled(script, variables={}).replace("/tmp/", f"{tmp_path}/")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "REDISCLI_AUTH": "one"}
    done = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"{tmp_path}/redis.conf", "600", "appendonly", "yes", "requirepass", "one"]


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


def _is_known(variable: str, options: dict[str, list[str]]) -> bool:
    _, section, option = variable.lower().split("__", 2)
    return option in options.get(section, [])
