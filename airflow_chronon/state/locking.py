"""One reconcile at a time, as far as one machine can tell. Every step may be repeated: this keeps logs readable."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from airflow_chronon.errors import Fault
from airflow_chronon.state.files import StateError
from airflow_chronon.state.folder import StateFolder
from airflow_chronon.storage.files import LocalStorage

try:
    import fcntl
except ImportError:  # pragma: no cover (Airflow itself does not run there)
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def only_reconcile(state: StateFolder) -> Iterator[None]:
    """Hold a local state folder; the kernel lets go when the process ends. Raises :class:`StateError` if it is held."""
    storage = state.files
    if not isinstance(storage, LocalStorage) or fcntl is None:
        yield
        return
    folder = storage.root / state.prefix
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("a")
    except (OSError, ValueError) as error:  # a name that no file system takes
        problem = f"cannot write {str(folder)!r}: {getattr(error, 'strerror', None) or error}"
        raise StateError(Fault("state", "[chronon] state_root", problem, "check the rights there")) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fault = Fault("state", "", f"another reconcile holds {folder}", "wait until it has ended")
            raise StateError(fault) from None
        except OSError:
            pass  # a network folder without locks: every step may be repeated anyway
        yield
