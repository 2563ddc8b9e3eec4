"""The files of the state folder: a storage whose errors say what to do about ``[chronon] state_root``."""

from __future__ import annotations

from airflow_chronon.errors import ChrononError, Fault
from airflow_chronon.storage.files import Storage, StorageError, open_storage


class StateError(ChrononError):
    """The state folder cannot be read or written."""


def open_state_files(root: str) -> Storage:
    """The files below a root: a path of this machine, or a URL such as ``s3://bucket/chronon_state``.

    Nothing is made or asked yet. Every error is a :class:`StateError`, a protocol that nothing serves too. A file is
    there as a whole or not at all, whenever the writer is killed.
    """
    return open_storage(root, as_error=_state_error)


def _state_error(error: StorageError) -> StateError:
    remedy = "check the rights and the space there, or set [chronon] state_root"
    return StateError(Fault("state", "[chronon] state_root", str(error), remedy))
