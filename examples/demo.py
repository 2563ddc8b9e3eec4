"""Airflow on this machine with the sample feature repo, until its partitions have landed: `make demo`.

    python examples/demo.py            stays up until Ctrl-C, while source data goes on landing
    python examples/demo.py --exit     ends when everything expected has landed: code 0, or 1 with the reason

Everything it writes lies in one folder, `.demo` in the checkout, and each start begins anew.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import httpx
from airflow_api import AirflowApi, ApiError
from demo_progress import (
    DemoFailed,
    Expectation,
    Failure,
    Progress,
    Watcher,
    expected_partitions,
    features_table,
    landed_table,
    progress_line,
    progress_table,
)
from local_airflow import CONNECTION, USER, AirflowNotRunning, LocalAirflow, free_port
from rich.console import Console
from rich.live import Live
from sessions import stopped_by_signals
from shop_data import land_newer, write_source_data

ROOT = Path(__file__).resolve().parents[1]
DAGS = ROOT / "dags"
POLL_SECONDS = 2.0  #: seconds between two looks at Airflow
ENVIRONMENT = "environment.sh"  #: in the demo's folder: what another shell needs for the commands
LAND_EVERY = 15.0  #: seconds between two landings of source data, and two questions what is expected

#: Progress; stdout is for the result. Lines are folded where a terminal shows them.
telling = Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())
result = Console(highlight=False, width=None if sys.stdout.isatty() else 160)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; returns the exit code: 0 good, 1 with the reason, 2 for a start that cannot be, 130 for Ctrl-C."""
    asked = parse(arguments)
    try:
        with stopped_by_signals(), only_demo_of(asked.home) as lock:
            return run(home=asked.home, lock=lock, ends=asked.exit, minutes=asked.minutes)
    except (DemoRunsAlready, FolderInUse) as error:
        telling.print(f"demo: {error}", style="red", markup=False)
        return 2
    except (DemoFailed, AirflowNotRunning) as error:
        telling.print(f"demo: {error}", style="red", markup=False)
        return 1
    except KeyboardInterrupt:
        telling.print("demo: stopped; no process is left")
        return 130


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="demo", description="Run the sample feature repo on a local Airflow.")
    parser.add_argument("--exit", action="store_true", help="end when everything expected has landed")
    parser.add_argument("--minutes", type=float, default=10, help="with --exit, how long at most (default: 10)")
    parser.add_argument("--home", type=Path, default=ROOT / ".demo", help="folder for all its files (default: .demo)")
    return parser.parse_args(arguments)


class DemoRunsAlready(RuntimeError):
    """Another demo uses the same folder."""


@contextlib.contextmanager
def only_demo_of(home: Path) -> Iterator[Path]:
    """Hold the folder for this demo; yields the file that says who runs. The kernel lets go when the process ends."""
    home.mkdir(parents=True, exist_ok=True)
    lock = home / "lock"
    with lock.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            who = file.read().strip() or "it is just starting"
            raise DemoRunsAlready(
                f"one is running already in {home} ({who}): stop it with Ctrl-C, or give this one a folder of its own"
                " with ARGS='--home FOLDER'"
            ) from None
        lock.write_text(f"process {os.getpid()}")
        yield lock


#: Says that a folder is a demo's own, which the next start may empty.
MARK = "demo-folder"


def begin_anew(home: Path, *, folders: Sequence[Path]) -> None:
    """Remove what an earlier demo left. Folders that no demo made are refused: ``--home`` may point anywhere."""
    foreign = [folder for folder in folders if folder.exists() and not (home / MARK).exists()]
    if foreign:
        raise FolderInUse(
            f"{foreign[0]} is there and no demo made it: give a folder of its own with ARGS='--home FOLDER'"
        )
    (home / MARK).touch()
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


class FolderInUse(RuntimeError):
    """The folder holds something that is not a demo's."""


def run(*, home: Path, lock: Path, ends: bool, minutes: float) -> int:
    """The demo itself, within its folder."""
    deadline = time.monotonic() + minutes * 60
    warehouse = home / "warehouse"
    settings = {
        "AIRFLOW__CHRONON__CONF_ROOT": str(DAGS / "chronon"),
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "10",
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "15",
        "CHRONON_WAREHOUSE": str(warehouse),
    }
    server = LocalAirflow(home=home / "airflow", dags=DAGS, port=free_port(preferred=8080), settings=settings)
    server.end_predecessors()
    begin_anew(home, folders=(server.home, warehouse))
    warehouse.mkdir()
    telling.print(f"Writing source data into {warehouse}")
    write_source_data(warehouse=warehouse, now=_now(), days=2)
    telling.print(f"Starting Airflow, which takes half a minute; its logs are in {server.home}")
    with server, AirflowApi(url=server.url, user=USER, password=server.password) as api:
        lock.write_text(f"process {os.getpid()}, {server.url}")
        entrance = () if ends else (_login(server), _page(server), _for_the_commands(server, home / ENVIRONMENT))
        for line in entrance:
            telling.print(line, markup=False)
        demo = Demo(server=server, watcher=Watcher(api=api, warehouse=warehouse), warehouse=warehouse)
        progress = demo.until_landed(deadline=deadline if ends else None)
        result.print(landed_table(progress, watcher=demo.watcher))
        if (features := features_table(progress, watcher=demo.watcher, width=result.width)) is not None:
            result.print(features)
        for failure in {failure.dag_id: failure for failure in demo.failures}.values():
            result.print(f"Not run: {failure}", markup=False, soft_wrap=not result.is_terminal)
        for line in entrance:
            result.print(line, markup=False, soft_wrap=True)
        if not ends:
            with contextlib.suppress(KeyboardInterrupt):
                demo.stay_up()
            telling.print("Stopping")
    return 0


def _login(server: LocalAirflow) -> str:
    return f"Airflow: {server.url}   user {USER}   password {server.password}"


def _page(server: LocalAirflow) -> str:
    return f"Every partition, what it waits for and what to press: {server.url}/plugin/chronon"


def _for_the_commands(server: LocalAirflow, file: Path) -> str:
    """Write what the commands need in another shell to find this Airflow, its state and its warehouse; how to read it."""
    names = (CONNECTION, "AIRFLOW_HOME", "AIRFLOW__CHRONON__CONF_ROOT", "CHRONON_WAREHOUSE")
    file.unlink(missing_ok=True)
    file.touch(mode=0o600)  # it holds the password
    file.write_text("".join(f"export {name}={shlex.quote(server.environment[name])}\n" for name in names))
    shown = file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
    return f"For airflow-chronon in another shell: . {shlex.quote(str(shown))}"


class Demo:
    """Keeps source data landing and looks at what becomes of it."""

    def __init__(self, *, server: LocalAirflow, watcher: Watcher, warehouse: Path) -> None:
        self.watcher = watcher
        self.failures: list[Failure] = []
        self._server, self._warehouse = server, warehouse
        self._expected = Expectation()
        self._landed_at = float("-inf")
        self._told: dict[str, str] = {}

    def until_landed(self, *, deadline: float | None) -> list[Progress]:
        """Return once every expected partition has landed.

        With a deadline (monotonic seconds) it raises :class:`DemoFailed` then, and at once when a run has
        failed or a file does not load; without one it only shows these and goes on.
        """
        with self._display() as live:
            while True:
                progress = self._look()
                if live is not None:
                    live.update(progress_table(progress, failures=self.failures, title="Partitions"), refresh=True)
                else:
                    self._tell(progress)
                if progress and not any(item.missing for item in progress):
                    return progress
                if deadline is not None:
                    self._give_up_when_hopeless(progress, deadline=deadline)
                time.sleep(POLL_SECONDS)

    def stay_up(self) -> None:
        """Go on until interrupted, telling what lands."""
        telling.print("Ctrl-C stops it; until then source data goes on landing, and partitions with it.")
        self._tell(self._look(), quietly=True)
        while True:
            time.sleep(LAND_EVERY)
            self._tell(self._look())

    def _look(self) -> list[Progress]:
        self._server.check_alive()
        if time.monotonic() - self._landed_at >= LAND_EVERY:
            now = _now()
            land_newer(warehouse=self._warehouse, now=now)
            self._expected = expected_partitions(root=DAGS / "chronon", now=now, environment=self._server.environment)
            self._landed_at = time.monotonic()
            for key in self._expected.rejected:
                if self._told.setdefault(key, "rejected") == "rejected":
                    self._told[key] = "rejected, reported"
                    telling.print(
                        f"{key} is rejected: its import error in Airflow says why", style="yellow", markup=False
                    )
        try:
            self.failures = self.watcher.failures()
            return self.watcher.progress(self._expected.partitions)
        except (ApiError, httpx.TransportError) as error:
            telling.print(f"Airflow did not answer just now: {error}", markup=False)
            return []

    def _give_up_when_hopeless(self, progress: Sequence[Progress], *, deadline: float) -> None:
        ours = {item.expected.dag_id for item in progress}
        failed = [str(failure) for failure in self.failures if failure.dag_id in ours]
        if failed:
            raise DemoFailed("a run failed: " + "; ".join(failed))
        if errors := self.watcher.import_errors():
            raise DemoFailed("Airflow could not load every DAG: " + "; ".join(errors))
        if time.monotonic() > deadline:
            late = "; ".join(f"{progress_line(item)}, missing {', '.join(item.missing)}" for item in progress)
            raise DemoFailed(f"not everything landed in time: {late or 'Airflow said nothing'}")

    @contextlib.contextmanager
    def _display(self) -> Iterator[Live | None]:
        if not telling.is_terminal:
            yield None
            return
        with Live(console=telling, auto_refresh=False) as live:
            yield live

    def _tell(self, progress: Sequence[Progress], *, quietly: bool = False) -> None:
        lines = {item.expected.name: progress_line(item) for item in progress}
        lines |= {str(failure): f"failed: {failure}" for failure in self.failures}
        for key, line in lines.items():
            if self._told.get(key) != line:
                self._told[key] = line
                if not quietly:
                    telling.print(f"{_now():%H:%M:%S} {line}", markup=False)


def _now() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    sys.exit(main())
