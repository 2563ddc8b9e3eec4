"""A PostgreSQL server for one test: a data folder of its own, on a free port of 127.0.0.1, gone afterwards."""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from local_airflow import HOST, free_port

INSTALL = (
    "PostgreSQL's server programs (initdb, pg_ctl) were found neither on PATH nor below /usr/lib/postgresql:"
    " install them, on Debian and Ubuntu with 'apt-get install postgresql'"
)


@dataclass(frozen=True)
class PostgresServer:
    """A server that accepts connections; ``user`` owns ``database``."""

    port: int
    password: str
    user: str = "airflow"
    database: str = "airflow"


def program(name: str) -> str:
    """Where a server program is: on PATH, else the newest of Debian's versions. Fails the test when there is none."""
    found = shutil.which(name)
    if found:
        return found
    versions = glob.glob(f"/usr/lib/postgresql/*/bin/{name}")
    if not versions:
        pytest.fail(INSTALL)
    return max(versions, key=lambda path: float(Path(path).parents[1].name))


#: After so many seconds the server ends a session that does nothing inside its transaction: LocalExecutor's workers inherit the
#: connection of their scheduler, and where it alone is killed they keep it open, with the runs that it had locked.
_IDLE_WITHIN = 15


@contextlib.contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Start PostgreSQL and stop it with ``pg_ctl stop``, whatever happens inside the block."""
    initdb, pg_ctl = program("initdb"), program("pg_ctl")
    server = PostgresServer(port=free_port(), password=secrets.token_hex(12))
    # not pytest's folder: its parents are closed to the user that the server runs as
    with tempfile.TemporaryDirectory(prefix="chronon-postgres-") as base:
        data, log, password_file = Path(base, "data"), Path(base, "server.log"), Path(base, "password")
        password_file.write_text(server.password)
        for path in (Path(base), password_file):
            _hand_over(path)
        _run([initdb, "-D", str(data), "-U", server.user, "-A", "scram-sha-256", "-N", f"--pwfile={password_file}"])
        options = f"-p {server.port} -c listen_addresses={HOST} -c unix_socket_directories='' -c fsync=off"
        options += f" -c idle_in_transaction_session_timeout={_IDLE_WITHIN}s"
        try:
            _run([pg_ctl, "-D", str(data), "-l", str(log), "-o", options, "-w", "-t", "60", "start"], log=log)
            _create_database(server)
            yield server
        finally:
            if (data / "postmaster.pid").exists():
                _run([pg_ctl, "-D", str(data), "-m", "immediate", "-w", "stop"])


def _create_database(server: PostgresServer) -> None:
    import psycopg2

    connection = psycopg2.connect(
        host=HOST, port=server.port, user=server.user, password=server.password, dbname="postgres"
    )
    with contextlib.closing(connection):
        connection.autocommit = True
        connection.cursor().execute(f"CREATE DATABASE {server.database}")


def _server_user() -> pwd.struct_passwd | None:
    """Whom the programs run as: PostgreSQL refuses root, so the package's own user then, else nobody else."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    pytest.fail("PostgreSQL does not run as root, and there is neither a user 'postgres' nor 'nobody' to run it as")


def _hand_over(path: Path) -> None:
    if user := _server_user():
        os.chown(path, user.pw_uid, user.pw_gid)


def _run(command: list[str], *, log: Path | None = None) -> None:
    user = _server_user()
    # the server inherits a pipe, so its end would never come: output goes to a file
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(
            command,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=False,
            user=user.pw_uid if user else None,
            group=user.pw_gid if user else None,
            extra_groups=() if user else None,
        )
        if done.returncode:
            output.seek(0)
            more = log.read_text() if log and log.exists() else ""
            pytest.fail(f"{' '.join(command)} ended with {done.returncode}: {output.read()}{more}")
