"""A ceiling for what a process may take in memory while it works: what the engine itself does not count ends there (S3)."""

from __future__ import annotations

import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_lock = threading.Lock()
_inside: list[int] = []  #: the soft limit from before the first of those that work now, once for each of them


@contextmanager
def memory_ceiling(more: int) -> Iterator[None]:
    """Within it this process gets at most so many bytes beyond what it has; asking for more is a ``MemoryError``.

    A machine out of memory ends whatever it likes, a scheduler perhaps. Where the system does not tell what the process has,
    or holds it to less already, nothing changes. Of several at a time the highest holds, until the last one has ended.
    """
    if not _raise_ceiling(more):
        yield
        return
    try:
        yield
    finally:
        with _lock:
            before = _inside.pop()
            if not _inside:
                resource.setrlimit(resource.RLIMIT_DATA, (before, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def _raise_ceiling(more: int) -> bool:
    """Set the ceiling for one more that works; whether there is one now."""
    with _lock:
        now, hard = resource.getrlimit(resource.RLIMIT_DATA)
        before, taken = _inside[0] if _inside else now, _taken()
        most = None if taken is None else taken + more
        if most is None or any(limit != resource.RLIM_INFINITY and limit <= most for limit in (before, hard)):
            return False
        if not _inside or most > now:
            resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
        _inside.append(before)
        return True


def _taken() -> int | None:
    """The bytes that count against the ceiling already."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:")), None)
