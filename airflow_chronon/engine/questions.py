"""Short commands that are asked something: bounded in time and output, and apart from the process that asks."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

SECONDS = 60.0  #: how long a command may take to answer
_MOST_BYTES = 1_000_000
_KEPT_BYTES = 64_000  # of the end of its output
_POLL_SECONDS = 0.05
_SHOWN = 300


@dataclass(frozen=True)
class Reply:
    """How a command answered."""

    said: str  #: the last line that is not blank of its standard output
    problem: str = ""  #: why it is no answer; empty for a good one


def ask(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    cwd: str | None = None,
    seconds: float = SECONDS,
) -> Reply:
    """Run a command to its end, and read its last line. What it left running is ended too. Raises nothing."""
    try:
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                cwd=cwd,
                env=environment,
                start_new_session=True,
            )
            try:
                problem = _wait(process, output, errors, seconds=seconds)
            finally:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            said = _last_line(output)
            if problem and (why := _last_line(errors) or said):
                problem = f"{problem}: {why[:_SHOWN]}"
            return Reply(said, problem)
    except (OSError, ValueError) as error:  # no such program, no memory for it, no room for its output
        return Reply("", f"it cannot be started: {getattr(error, 'strerror', None) or error}")


def _wait(process: subprocess.Popen[bytes], *files: IO[bytes], seconds: float) -> str:
    """What went wrong; empty when the command ended well."""
    deadline = time.monotonic() + seconds
    while process.poll() is None:
        if time.monotonic() > deadline:
            return f"it did not answer within {seconds:g} seconds"
        if any(os.fstat(file.fileno()).st_size > _MOST_BYTES for file in files):
            return f"it wrote more than {_MOST_BYTES:,} bytes"
        time.sleep(_POLL_SECONDS)
    code = process.returncode
    return f"it ended with {f'exit code {code}' if code > 0 else f'signal {-code}'}" if code else ""


def _last_line(file: IO[bytes]) -> str:
    file.seek(max(0, os.fstat(file.fileno()).st_size - _KEPT_BYTES))
    lines = file.read().decode(errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
