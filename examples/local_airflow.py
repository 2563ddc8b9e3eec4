"""A whole Airflow on this machine, started and ended as one thing: for the demo and for the integration tests.

Its four processes listen on 127.0.0.1 only, keep everything under one home folder, and take nothing from the caller's
own Airflow settings.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
from sessions import (
    end_processes,
    end_sessions,
    hold_signals,
    processes_marked,
    start_session,
    stopped_by_signals,
)

HOST = "127.0.0.1"
USER = "admin"
CONNECTION = "AIRFLOW_CONN_CHRONON_AIRFLOW"
#: Marks every process of a home, so that those of a killed predecessor can be known from anyone else's.
MARK = "LOCAL_AIRFLOW_HOME"


class Component(Enum):
    """One long-running process of Airflow; the value is its command."""

    API_SERVER = "api-server"
    SCHEDULER = "scheduler"
    DAG_PROCESSOR = "dag-processor"
    TRIGGERER = "triggerer"

    @property
    def arguments(self) -> tuple[str, ...]:
        """The command line after ``airflow``; log servers stay off, since they listen on every interface."""
        serves_logs = self in (Component.SCHEDULER, Component.TRIGGERER)
        return (self.value, "--skip-serve-logs") if serves_logs else (self.value,)

    @property
    def health_key(self) -> str:
        """Its name in the answer of ``/api/v2/monitor/health``; the api-server answers for the database."""
        return "metadatabase" if self is Component.API_SERVER else self.value.replace("-", "_")


class AirflowNotRunning(RuntimeError):
    """Airflow did not come up, or one of its processes ended; the text holds the last lines of its log."""


@dataclass(frozen=True)
class Running:
    """A component that was started: its process, the leader of its session, and when (seconds since the epoch)."""

    process: subprocess.Popen[bytes]
    since: float


def free_port(*, preferred: int | None = None) -> int:
    """A port of 127.0.0.1 on which nothing listens: the preferred one if it is free, else any."""
    for candidate in (preferred, 0):
        if candidate is None:
            continue
        with socket.socket() as probe, contextlib.suppress(OSError):
            # as the server will bind it: a port whose last connections are still closing down is free
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, candidate))
            return int(probe.getsockname()[1])
    raise AirflowNotRunning(f"no port of {HOST} is free")


class LocalAirflow:
    """Airflow as a context manager: migrated, started and healthy inside the block, and gone without trace after it.

    :param home: folder for database, logs and passwords; made when missing
    :param dags: the dags folder
    :param port: of the api-server; None takes any free one
    :param settings: further ``AIRFLOW__SECTION__KEY`` variables; they win over the defaults here
    :param database: SQLAlchemy URL; None is a SQLite file in the home
    """

    def __init__(
        self,
        *,
        home: Path,
        dags: Path,
        port: int | None = None,
        settings: Mapping[str, str] | None = None,
        database: str | None = None,
    ) -> None:
        self.home = home.resolve()
        self.port = port if port is not None else free_port()
        self.url = f"http://{HOST}:{self.port}"
        self.password = secrets.token_urlsafe(9)
        self._running: dict[Component, Running] = {}
        self._sessions: set[int] = set()
        self._signals = contextlib.ExitStack()
        self.environment = _clean_environment() | _settings(home=self.home, dags=dags, port=self.port)
        # writers queue: after the default of 5 s Airflow's processes end with "database is locked" on a busy machine
        sqlite = f"sqlite:///{self.home / 'airflow.db'}?timeout=60"
        self.environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = database or sqlite
        # the connection through which tasks and commands talk to this Airflow's own API
        self.environment[CONNECTION] = f"chronon-airflow://{USER}:{self.password}@{HOST}:{self.port}"
        self.environment |= dict(settings or {})

    def __enter__(self) -> Self:
        self._signals.enter_context(stopped_by_signals())
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, *, timeout: float = 180) -> None:
        """Migrate the database, start the four processes together, and return when all of them are healthy.

        Raises :class:`AirflowNotRunning` when a process ends early or ``timeout`` seconds have passed.
        """
        if free_port(preferred=self.port) != self.port:
            raise AirflowNotRunning(f"port {self.port} of {HOST} is in use; choose another")
        self.home.mkdir(parents=True, exist_ok=True)
        self.end_predecessors()
        self._write_password()
        # the api-server spends ten seconds on imports before it asks the database anything
        self.start_component(Component.API_SERVER)
        self._migrate()
        for component in Component:
            if component not in self._running:
                self.start_component(component)
        self.wait_until_healthy(timeout=timeout)

    def stop(self, *, grace: float = 5) -> None:
        """End every process of every component, workers included: SIGTERM, and SIGKILL after ``grace`` seconds."""
        with hold_signals():
            end_sessions(self._sessions, grace=grace)
            for running in self._running.values():
                running.process.wait()
            self._running.clear()
            self._sessions.clear()
        atexit.unregister(self.stop)
        self._signals.close()

    def end_predecessors(self) -> None:
        """End what a supervisor that was killed (SIGKILL) left running in this home."""
        end_processes(processes_marked(variable=MARK, value=str(self.home)), grace=5)

    def start_component(self, component: Component) -> None:
        """Start one component; it need not be healthy yet when this returns."""
        self._spawn(component, component.arguments)

    def wait_until_healthy(self, components: Iterable[Component] = tuple(Component), *, timeout: float = 60) -> None:
        """Return once each component answers as healthy with a heartbeat of its own, not of one that ran before it.

        An api-server is healthy when the API that tasks talk to answers too.
        """
        waited_for = tuple(components)
        deadline = time.monotonic() + timeout
        while True:
            self.check_alive()
            health = self.health()
            late = [component for component in waited_for if not self._is_healthy(component, health)]
            if not late and Component.API_SERVER in waited_for:
                late = [] if self._serves_tasks(timeout=timeout) else [Component.API_SERVER]
            if not late:
                return
            if time.monotonic() > deadline:
                names = ", ".join(component.value for component in late)
                tails = "\n".join(self.log_tail(component) for component in late)
                raise AirflowNotRunning(f"not healthy after {timeout:g} s: {names}; health is {health}\n{tails}")
            time.sleep(0.2)

    def check_alive(self) -> None:
        """Raise :class:`AirflowNotRunning` if a component that was started has ended by itself."""
        for component, running in self._running.items():
            code = running.process.poll()
            if code is not None:
                raise AirflowNotRunning(f"airflow {component.value} ended with code {code}\n{self.log_tail(component)}")

    def health(self) -> dict[str, dict[str, str | None]]:
        """What ``/api/v2/monitor/health`` says; empty while nothing answers."""
        try:
            answer = httpx.get(f"{self.url}/api/v2/monitor/health", timeout=5, trust_env=False)
            answer.raise_for_status()
            return dict(answer.json())
        except (httpx.HTTPError, ValueError):
            return {}

    def run(self, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """Run ``airflow`` with these arguments against this Airflow; the caller looks at the exit code and the output."""
        command = [sys.executable, "-m", "airflow", *arguments]
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=timeout, check=False
        )

    def log(self, component: Component) -> Path:
        """Where a component's output goes."""
        return self.home / f"{component.value}.log"

    def log_tail(self, component: Component, *, lines: int = 25) -> str:
        """The last lines of a component's output, for error messages."""
        return _tail(self.log(component), lines=lines)

    def _spawn(self, component: Component, arguments: tuple[str, ...]) -> None:
        command = [sys.executable, "-m", "airflow", *arguments]
        with hold_signals():
            atexit.register(self.stop)  # an interrupt may fall between here and the caller's own clean-up
            since = time.time()
            process = start_session(command, environment=self.environment, log=self.log(component))
            self._sessions.add(process.pid)
            self._running[component] = Running(process, since)

    def _migrate(self) -> None:
        log = self.home / "migrate.log"
        with hold_signals():
            atexit.register(self.stop)
            command = [sys.executable, "-m", "airflow", "db", "migrate"]
            process = start_session(command, environment=self.environment, log=log)
            self._sessions.add(process.pid)
        if code := process.wait():
            raise AirflowNotRunning(f"airflow db migrate ended with code {code}\n{_tail(log, lines=25)}")
        self._sessions.discard(process.pid)

    def _write_password(self) -> None:
        path = Path(self.environment["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"])
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump({USER: self.password}, file)

    def _serves_tasks(self, *, timeout: float) -> bool:
        """Whether the task execution API answers. Its first answer takes seconds, on a busy machine far more than tasks
        wait for: those that came first would fail."""
        try:
            answer = httpx.get(f"{self.url}/execution/health", timeout=timeout, trust_env=False)
        except httpx.HTTPError:
            return False
        return answer.is_success

    def _is_healthy(self, component: Component, health: Mapping[str, Mapping[str, str | None]]) -> bool:
        said = health.get(component.health_key, {})
        if said.get("status") != "healthy":
            return False
        if component is Component.API_SERVER:
            return True
        # the row of a process that was killed half a minute ago still counts as healthy for Airflow
        beat = said.get(f"latest_{component.health_key}_heartbeat")
        running = self._running.get(component)
        return beat is not None and running is not None and _seconds(beat) >= running.since


def _settings(*, home: Path, dags: Path, port: int) -> dict[str, str]:
    """Airflow's settings for one small machine, each home with secrets of its own."""
    return {
        MARK: str(home),
        # a job's `python` is the one that has the packages, whether or not its environment was activated
        "PATH": os.pathsep.join((sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath))),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__API__BASE_URL": f"http://{HOST}:{port}",
        "AIRFLOW__API__HOST": HOST,
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__SECRET_KEY": secrets.token_urlsafe(32),
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_urlsafe(48),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags.resolve()),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://{HOST}:{port}/execution/",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__FERNET_KEY": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "AIRFLOW__CORE__HOSTNAME_CALLABLE": "socket.gethostname",  # the default asks the name server
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / "passwords.json"),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "5",
        "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
        "AIRFLOW__DATABASE__CHECK_MIGRATIONS": "False",  # done by start(), once
        "AIRFLOW__LOGGING__COLORED_CONSOLE_LOG": "False",
        "AIRFLOW__SCHEDULER__MAX_DAGRUNS_PER_LOOP_TO_SCHEDULE": "500",
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "30",  # 5 by default: too short for a laptop that is busy
        # how long a worker may keep its slot after its task has ended: 5 seconds by default, longer than most tasks here
        "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
        "PYTHONUNBUFFERED": "1",
        "SPT_NOENV": "1",  # Airflow's process titles would overwrite the environment that MARK is read from
    }


def _clean_environment() -> dict[str, str]:
    """The caller's environment without its Airflow settings, and with no proxy between the processes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW_", "_AIRFLOW_"))}
    for name in ("NO_PROXY", "no_proxy"):
        kept[name] = ",".join(filter(None, [kept.get(name), HOST, "localhost"]))
    return kept


def _seconds(iso: str) -> float:
    moment = datetime.fromisoformat(iso)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _tail(path: Path, *, lines: int) -> str:
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return f"(no {path.name})"
