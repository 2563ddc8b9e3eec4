"""A ceiling for what a process may take in memory while it works: what the engine itself does not count ends there (S3)."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def memory_ceiling(more: int) -> Iterator[None]:
    """Within it this process gets at most so many bytes beyond what it has; asking for more is a ``MemoryError``.

    A machine out of memory ends whatever it likes, a scheduler perhaps. Where the system does not tell what the process has,
    or holds it to less already, nothing changes.
    """
    before, hard = resource.getrlimit(resource.RLIMIT_DATA)
    taken = _taken()
    most = None if taken is None else taken + more
    if most is None or any(limit != resource.RLIM_INFINITY and limit <= most for limit in (before, hard)):
        yield
        return
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, hard))


def _taken() -> int | None:
    """The bytes that count against the ceiling already."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:")), None)
