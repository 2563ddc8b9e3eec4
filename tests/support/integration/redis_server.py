"""A Redis server for one test: on a free port of 127.0.0.1, with a password, nothing kept, gone afterwards."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import redis
from local_airflow import HOST, free_port

from tests.support.integration.airflow_client import wait_until


@dataclass(frozen=True)
class RedisServer:
    """A server that answers whoever knows its password."""

    port: int
    password: str


@contextlib.contextmanager
def redis_server() -> Iterator[RedisServer]:
    """Start Redis, and end it whatever happens inside the block. Fails the test when its program is not there."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.fail(
            "redis-server was not found on PATH: install it, on Debian and Ubuntu with 'apt-get install redis-server'"
        )
    server = RedisServer(port=free_port(), password=secrets.token_hex(12))
    settings = {"bind": HOST, "port": server.port, "requirepass": server.password, "save": '""', "appendonly": "no"}
    process = subprocess.Popen(
        [program, "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True, cwd="/"
    )
    try:
        assert process.stdin is not None
        process.stdin.write("".join(f"{name} {value}\n" for name, value in settings.items()).encode())
        process.stdin.close()
        wait_until(lambda: _answers(server), timeout=30, why="Redis answers", every=0.1)
        yield server
    finally:
        process.terminate()
        process.wait()


def _answers(server: RedisServer) -> bool:
    client = redis.Redis(host=HOST, port=server.port, password=server.password)
    with contextlib.closing(client), contextlib.suppress(redis.ConnectionError):
        return bool(client.ping())
    return False
