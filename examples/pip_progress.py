"""`pip install` that says now and then how far it is: what `make venv` runs. Needs nothing but Python and its pip.

    python examples/pip_progress.py ARGUMENTS OF pip install

pip's own output is shown only when it fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

EVERY = 5.0  #: seconds between two lines
LAST_LINES = 40  #: of pip's output, where it fails


def main(arguments: Sequence[str]) -> int:
    """Run pip and return its exit code."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--progress-bar",
        "off",
        *arguments,
    ]
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    said: deque[str] = deque(maxlen=LAST_LINES)
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as pip:
        assert pip.stdout is not None
        for line in progress(kept(pip.stdout, said), total=locked(arguments), clock=time.monotonic):
            print(f"  {line}", flush=True)
    if pip.returncode:
        print("".join(said), end="", file=sys.stderr)
    return pip.returncode


def progress(lines: Iterable[str], *, total: int, clock: Callable[[], float]) -> Iterator[str]:
    """What to say while pip prints these lines; ``total`` is how many packages may come."""
    found, told = 0, clock()
    for line in lines:
        if line.startswith("Collecting "):
            found += 1
            if clock() - told >= EVERY:
                told = clock()
                yield f"{found} of at most {total} packages: {line.split()[1]}"
        elif line.startswith("Installing collected packages") and found:
            yield f"{found} packages are here; unpacking them takes about a minute"


def kept(lines: Iterable[str], last: deque[str]) -> Iterator[str]:
    """The same lines; the last ones stay in ``last``."""
    for line in lines:
        last.append(line)
        yield line


def locked(arguments: Sequence[str]) -> int:
    """How many packages the lists of exact versions among the arguments name."""
    files = [Path(each) for before, each in pairwise(arguments) if before == "-r"]
    return sum("==" in line and line[:1].isalnum() for file in files for line in file.read_text().splitlines())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
