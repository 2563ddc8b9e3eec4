"""The processes of docker-compose.yaml without Docker: each container as a session of this machine.

A process gets the command, the environment and the mounts of its service in the file, and nothing else but what a
container has of its image: where programs are, and its home. Addresses and ports are those of this machine.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from local_airflow import HOST, MARK, free_port
from sessions import (
    end_processes,
    end_sessions,
    hold_signals,
    processes_marked,
    start_session,
    stopped_by_signals,
)

from tests.support.checkout import ROOT
from tests.support.integration.airflow_client import AirflowClient
from tests.support.integration.compose_file import environment, filled, replicas, services
from tests.support.integration.postgres_server import PostgresServer, postgres_server
from tests.support.integration.redis_server import RedisServer, redis_server

FOLDERS = ("/opt/airflow", "/warehouse")  #: of a container; everything that the file mounts lies below them
BEFORE_OTHERS = ("migrate", "api-server")


class Executor(Enum):
    """Who runs the tasks: the workers of the file, or its schedulers, which then are given what the workers have."""

    CELERY = "CeleryExecutor"
    LOCAL = "LocalExecutor"


@dataclass(frozen=True)
class Container:
    """One replica of a service."""

    service: str
    number: int
    root: Path  #: what its ``/`` would be
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    health_check: tuple[str, ...] | None

    @property
    def name(self) -> str:
        return f"{self.service}-{self.number}"

    @property
    def home(self) -> Path:
        return self.root / "opt/airflow"

    @property
    def log(self) -> Path:
        return self.root / "output.log"


@dataclass
class ComposeProcesses:
    """The running containers, their servers, and where the shared folders lie."""

    base: Path
    port: int
    passwords: Mapping[str, str] = field(repr=False)  #: of Airflow's accounts, by their names
    containers: list[Container] = field(default_factory=list)
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    sessions: set[int] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def dags(self) -> Path:
        return self.base / "dags"

    def volume(self, name: str) -> Path:
        return self.base / "volumes" / name

    def client(self, user: str) -> AirflowClient:
        return AirflowClient(url=self.url, user=user, password=self.passwords[user])

    def start(self, container: Container) -> None:
        """Start a container's process; it need not be healthy yet when this returns."""
        with hold_signals():
            process = start_session(container.command, environment=container.environment, log=container.log)
            self.sessions.add(process.pid)
            self.running[container.name] = process

    def run_once(self, container: Container) -> None:
        """Start a container that ends by itself, and wait for its end."""
        self.start(container)
        code = self.running.pop(container.name).wait()
        assert code == 0, f"{container.name} ended with {code}\n{_tail(container.log)}"

    def wait_until_healthy(self, *containers: Container, timeout: float = 600) -> None:
        """Return once the health check of each container passes, as the file has it."""
        deadline = time.monotonic() + timeout
        waiting = [each for each in containers if each.health_check is not None]
        while waiting:
            for each in waiting:
                code = self.running[each.name].poll()
                assert code is None, f"{each.name} ended with {code}\n{_tail(each.log)}"
            waiting = [each for each in waiting if not is_healthy(each)]
            names = [f"{each.name}\n{_tail(each.log)}" for each in waiting]
            assert not waiting or time.monotonic() < deadline, f"not healthy after {timeout:g} s: {names}"

    def stop(self) -> None:
        """End everything that was started, workers and jobs included."""
        with hold_signals():
            end_sessions(self.sessions, grace=5)
            end_processes(
                processes_marked(variable=MARK, value=str(self.base)), grace=5
            )  # jobs have sessions of their own
            for process in self.running.values():
                process.wait()


def is_healthy(container: Container) -> bool:
    """Whether the container's health check passes now."""
    assert container.health_check is not None
    done = subprocess.run(
        container.health_check, env=dict(container.environment), capture_output=True, check=False, timeout=300
    )
    return done.returncode == 0


@contextlib.contextmanager
def compose_processes(
    base: Path, *, executor: Executor = Executor.CELERY, settings: Mapping[str, str] | None = None
) -> Iterator[ComposeProcesses]:
    """Run what the file describes, on a PostgreSQL and a Redis of this machine. ``base/dags`` is the dags folder.

    Inside the block the api-server is healthy, and the others have been started. ``settings`` are further variables of
    every container of Airflow.
    """
    port, accounts = free_port(), {name: secrets.token_hex(9) for name in ("admin", "editor", "reader")}
    with stopped_by_signals(), postgres_server() as postgres, redis_server() as redis:
        here = ComposeProcesses(base, port, accounts)
        here.dags.mkdir(parents=True, exist_ok=True)
        ports = [free_port() for _ in range(replicas("scheduler"))]
        place = _Place(here, postgres, redis, executor, dict(settings or {}), ports)
        try:
            migrate, api_server = (place.container(name, number=1) for name in BEFORE_OTHERS)
            here.run_once(migrate)
            here.start(api_server)
            here.wait_until_healthy(api_server)
            here.containers = [api_server, *place.others()]
            for each in here.containers[1:]:
                here.start(each)
            yield here
        finally:
            here.stop()


@dataclass(frozen=True)
class _Place:
    """What stands on this machine for what the file names."""

    here: ComposeProcesses
    postgres: PostgresServer
    redis: RedisServer
    executor: Executor
    settings: Mapping[str, str]
    schedulers_ports: Sequence[int]  #: on which the schedulers tell how they are

    @property
    def variables(self) -> dict[str, str]:
        return {
            "POSTGRES_PASSWORD": self.postgres.password,
            "REDIS_PASSWORD": self.redis.password,
            "AIRFLOW_FERNET_KEY": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",  # 32 digits, of no use elsewhere
            "AIRFLOW_API_SECRET_KEY": "for a test " * 4,
            "AIRFLOW_JWT_SECRET": "of a test, of no use elsewhere " * 3,
            **{f"AIRFLOW_{name.upper()}_PASSWORD": text for name, text in self.here.passwords.items()},
        }

    def others(self) -> list[Container]:
        """The containers beside those that start before them."""
        names = [name for name, each in services().items() if "build" in each and name not in BEFORE_OTHERS]
        if self.executor is Executor.LOCAL:
            names.remove("worker")
        return [self.container(name, number=number + 1) for name in names for number in range(replicas(name))]

    def container(self, service: str, *, number: int) -> Container:
        alike = [service]
        if service == "scheduler" and self.executor is Executor.LOCAL:
            alike.append("worker")
        root = self.here.base / "containers" / f"{service}-{number}"
        described = services()[service]
        (root / "opt/airflow").mkdir(parents=True)
        for each in alike:
            self._mount(services()[each].get("volumes", ()), root)
        given: dict[str, str] = {}
        for each in alike:
            given |= environment(each, variables=self.variables)
        if self.executor is Executor.LOCAL:
            given = {name: text for name, text in given.items() if not name.startswith("AIRFLOW__CELERY")}
            given["AIRFLOW__CORE__EXECUTOR"] = self.executor.value
        given = {name: self._here(text, root) for name, text in given.items()}
        return Container(
            service,
            number,
            root,
            self._command(described, root, number),
            {**self._image(root), **given, **self._only_here(given, service, number), **self.settings},
            self._health_check(described, root, number),
        )

    def _mount(self, mounts: Sequence[str], root: Path) -> None:
        for mount in mounts:
            source, target = mount.split(":")[:2]
            held = self.here.dags if source == "./dags" else self.here.volume(source)
            held.mkdir(parents=True, exist_ok=True)
            place = root / target.lstrip("/")
            if not place.is_symlink():
                place.symlink_to(held)

    def _command(self, service: Mapping[str, Any], root: Path, number: int) -> tuple[str, ...]:
        words = service["entrypoint"] if "entrypoint" in service else ["airflow", *service["command"]]
        own_name = ["--celery-hostname", f"worker-{number}"] if "worker" in words else []
        return tuple(self._here(filled(word, variables={}), root) for word in [*words, *own_name])

    def _health_check(self, service: Mapping[str, Any], root: Path, number: int) -> tuple[str, ...] | None:
        words = service["healthcheck"].get("test", [None])[1:]
        texts = [self._here(word, root).replace("socket.gethostname()", f"'worker-{number}'") for word in words]
        return tuple(text.replace("8974", self._schedulers_port(number)) for text in texts) or None

    def _here(self, text: str, root: Path) -> str:
        for name, other in (
            ("postgres:5432", f"{HOST}:{self.postgres.port}"),
            ("redis:6379", f"{HOST}:{self.redis.port}"),
            ("http://api-server:8080", self.here.url),
            (f"http://{HOST}:8080", self.here.url),
        ):
            text = text.replace(name, other)
        return f"{root}{text}" if text.startswith(FOLDERS) else text

    def _image(self, root: Path) -> dict[str, str]:
        """What every container has of its image."""
        scripts = sysconfig.get_path("scripts")
        return {
            "PATH": os.pathsep.join((scripts, str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath))),
            "HOME": str(root),
            "AIRFLOW_HOME": str(root / "opt/airflow"),
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
            MARK: str(self.here.base),
            "SPT_NOENV": "1",  # Airflow's process titles would overwrite the environment that MARK is read from
        }

    def _only_here(self, given: Mapping[str, str], service: str, number: int) -> dict[str, str]:
        """What cannot hold where all containers share one machine."""
        found = {"AIRFLOW__CORE__HOSTNAME_CALLABLE": "socket.gethostname"}  # the default asks the name server
        if "AIRFLOW__API__PORT" in given:
            found |= {"AIRFLOW__API__HOST": HOST, "AIRFLOW__API__PORT": str(self.here.port)}
        if service == "scheduler":
            found["AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_SERVER_PORT"] = self._schedulers_port(number)
        return found

    def _schedulers_port(self, number: int) -> str:
        return str(self.schedulers_ports[(number - 1) % len(self.schedulers_ports)])


def _tail(path: Path, *, lines: int = 30) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""
