"""A second api-server of a running Airflow, with the FAB auth manager: people whose rights are those of their roles."""

from __future__ import annotations

import contextlib
import json
import secrets
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
from local_airflow import HOST, LocalAirflow, free_port
from sessions import end_sessions, start_session

from tests.support.integration.airflow_client import wait_until
from tests.support.integration.fab_environment import ensure_fab

Right = tuple[str, str]  #: an action and a resource, as FAB names them

#: Makes roles and people; it is run by the Python that has FAB.
MAKE = """
import json, sys
from airflow.providers.fab.auth_manager.cli_commands.utils import get_application_builder

roles, people = json.load(sys.stdin)
with get_application_builder() as builder:
    manager = builder.sm
    manager.sync_roles()
    for name, rights in roles.items():
        role = manager.add_role(name)
        for action, resource in rights:
            manager.add_permission_to_role(role, manager.create_permission(action, resource))
    for name, (role, password) in people.items():
        assert manager.add_user(name, name, name, f"{name}@localhost", manager.find_role(role), password)
"""


@dataclass(frozen=True)
class FabServer:
    """Where it is, and who may log in."""

    url: str
    passwords: Mapping[str, str]


@contextlib.contextmanager
def run_fab_server(
    airflow: LocalAirflow, *, roles: Mapping[str, Sequence[Right]], people: Mapping[str, str]
) -> Iterator[FabServer]:
    """Serve the same database; ``people`` are the names of their roles by name, of ``roles`` or of FAB's own."""
    python, port, home = str(ensure_fab()), free_port(), airflow.home
    url, passwords = f"http://{HOST}:{port}", {name: secrets.token_urlsafe(9) for name in people}
    environment = airflow.environment | {
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__CORE__AUTH_MANAGER": "airflow.providers.fab.auth_manager.fab_auth_manager.FabAuthManager",
    }
    accounts = {name: (role, passwords[name]) for name, role in people.items()}
    _done([python, "-m", "airflow", "fab-db", "migrate"], environment=environment)
    _done([python, "-c", MAKE], environment=environment, text=json.dumps([roles, accounts]))
    log = home / "fab-api-server.log"
    process = start_session([python, "-m", "airflow", "api-server"], environment=environment, log=log)
    try:
        wait_until(lambda: _answers(url, process, log), timeout=300, why="the api-server with FAB answers", every=1)
        yield FabServer(url, passwords)
    finally:
        end_sessions([process.pid], grace=5)
        process.wait()


def _done(command: Sequence[str], *, environment: Mapping[str, str], text: str = "") -> None:
    done = subprocess.run(
        command, env=dict(environment), input=text, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _answers(url: str, process: subprocess.Popen[bytes], log: Path) -> bool:
    assert process.poll() is None, log.read_text(errors="replace")[-4000:]
    return httpx.get(f"{url}/api/v2/version", timeout=60, trust_env=False).is_success
