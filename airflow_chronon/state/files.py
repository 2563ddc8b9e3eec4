"""The files of the state folder: a storage whose errors say what to do about ``[chronon] state_root``."""

from __future__ import annotations

from dataclasses import replace

from airflow_chronon.errors import ChrononError, Fault
from airflow_chronon.extras import MissingExtra
from airflow_chronon.storage.files import Storage, StorageError, open_storage

_SETTING = "[chronon] state_root"


class StateError(ChrononError):
    """The state folder cannot be read or written."""


def open_state_files(root: str) -> Storage:
    """The files below a root: a path of this machine, or a URL such as ``s3://bucket/chronon_state``.

    Nothing is made or asked yet. Every error is a :class:`StateError`, a protocol that nothing serves too. A file is
    there as a whole or not at all, whenever the writer is killed.
    """
    try:
        return open_storage(root, as_error=_state_error)
    except MissingExtra as error:
        raise StateError(replace(error.fault, rule="state", field=_SETTING)) from error


def _state_error(error: StorageError) -> StateError:
    remedy = f"check the rights and the space there, or set {_SETTING}"
    return StateError(Fault("state", _SETTING, str(error), remedy))
