"""An api-server over a filled SQLite database, and nothing else of Airflow: for the page of partitions."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
from local_airflow import HOST, Component, LocalAirflow, free_port
from sessions import end_sessions, start_session

from tests.support.checkout import ROOT
from tests.support.integration.airflow_client import wait_until


class PageAirflow(LocalAirflow):
    """Airflow's api-server alone; whoever comes is an administrator."""

    now: int  #: when its database was filled

    def start(self, *, timeout: float = 400) -> None:
        self.home.mkdir(parents=True)
        self._migrate()
        self.now = int(time.time())
        command = [sys.executable, "-m", "tests.support.integration.page_fill", str(self.home / "confs")]
        done = subprocess.run(command, env=self.environment, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        self.start_component(Component.API_SERVER)
        self.wait_until_healthy([Component.API_SERVER], timeout=timeout)


@contextlib.contextmanager
def run_page_airflow(base: Path) -> Iterator[PageAirflow]:
    (base / "dags").mkdir()
    settings = {"AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True", "PYTHONPATH": str(ROOT)}
    with PageAirflow(home=base / "home", dags=base / "dags", settings=settings) as airflow:
        yield airflow


@dataclass(frozen=True)
class BelowPath:
    """Where another api-server of the same database is, below a path."""

    url: str


@contextlib.contextmanager
def run_below_path(airflow: PageAirflow, path: str) -> Iterator[BelowPath]:
    """Serve the same database at ``http://HOST:PORT/PATH``."""
    port = free_port()
    url = f"http://{HOST}:{port}{path}"
    environment = airflow.environment | {"AIRFLOW__API__PORT": str(port), "AIRFLOW__API__BASE_URL": url}
    log = airflow.home / "below-path.log"
    process = start_session([sys.executable, "-m", "airflow", "api-server"], environment=environment, log=log)

    def answers() -> bool:
        assert process.poll() is None, log.read_text(errors="replace")[-4000:]
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"{url}/api/v2/version", timeout=60, trust_env=False).is_success
        return False

    try:
        wait_until(answers, timeout=400, why="the api-server below a path answers", every=1)
        yield BelowPath(url)
    finally:
        end_sessions([process.pid], grace=5)
        process.wait()
