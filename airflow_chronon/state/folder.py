"""What lies in the state folder of one deployment, by name.

::

    <state_root>/<bundle>/<branch>/copies/<dag id>.json        a conf as it was deployed
                                   tombstones/<dag id>.json    a retirement in progress
                                   archive/<dag id>/<time>.jsonl
                                   journal.json                schedules, and since when they hold
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from airflow_chronon.core.calendar.instants import to_datetime
from airflow_chronon.core.plan.facts import Deployment, StateFacts, Tombstone
from airflow_chronon.core.plan.history import JournalEntry, entry_from_json, entry_to_json
from airflow_chronon.core.plan.manifest import DeployedManifest, manifest_from_bytes
from airflow_chronon.errors import Fault
from airflow_chronon.state.files import StateError, StateFiles, open_state_files

Json = dict[str, Any]
_Read = TypeVar("_Read")

_JOURNAL = "journal.json"


@dataclass(frozen=True)
class StateFolder:
    """The state of one deployment. Everything is idempotent, and each file is whole or absent."""

    files: StateFiles
    prefix: str = ""  #: ``bundle/branch/`` below the root

    # copies

    def manifests(self) -> frozenset[str]:
        """The DAG ids of which there is a copy; one listing."""
        return frozenset(_ids(self.files.names(f"{self.prefix}copies")))

    def read_manifest(self, dag_id: str) -> DeployedManifest | None:
        return self._read(f"copies/{dag_id}.json", manifest_from_bytes)

    def write_manifest(self, manifest: DeployedManifest) -> None:
        self._write(f"copies/{manifest.dag_id}.json", manifest.to_bytes())

    def remove_manifest(self, dag_id: str) -> None:
        self.files.remove(f"{self.prefix}copies/{dag_id}.json")

    # tombstones

    def tombstones(self) -> dict[str, Tombstone]:
        """Every retirement in progress, by DAG id."""
        found = {dag_id: self.read_tombstone(dag_id) for dag_id in _ids(self.files.names(f"{self.prefix}tombstones"))}
        return {dag_id: tombstone for dag_id, tombstone in found.items() if tombstone is not None}

    def read_tombstone(self, dag_id: str) -> Tombstone | None:
        return self._read(f"tombstones/{dag_id}.json", _tombstone)

    def write_tombstone(self, dag_id: str, tombstone: Tombstone) -> None:
        self._write(f"tombstones/{dag_id}.json", json.dumps(asdict(tombstone)).encode())

    def remove_tombstone(self, dag_id: str) -> None:
        self.files.remove(f"{self.prefix}tombstones/{dag_id}.json")

    # journal

    def journal(self) -> dict[str, JournalEntry]:
        """Every conf that was ever deployed here, by DAG id."""
        return self._read(_JOURNAL, _journal) or {}

    def update_journal(self, entries: Iterable[JournalEntry]) -> None:
        """Put these entries in the place of those with their DAG ids."""
        journal = self.journal() | {entry.dag_id: entry for entry in entries}
        lines = ",\n".join(json.dumps(entry_to_json(entry), ensure_ascii=False) for _, entry in sorted(journal.items()))
        self._write(_JOURNAL, f"[\n{lines}\n]\n".encode())

    # archive

    def write_archive(self, name: str, lines: Iterable[Mapping[str, Any]]) -> None:
        """Write JSON lines and read them back. Raises :class:`StateError` when they are not there as written."""
        data = "".join(f"{json.dumps(line, ensure_ascii=False, default=str)}\n" for line in lines).encode()
        self._write(name, data)
        if self.files.read(f"{self.prefix}{name}") != data:
            problem = f"the archive {name} reads back otherwise than it was written, so nothing is deleted"
            raise StateError(Fault("state", self.files.place, problem, "check the storage"))

    def read_archive(self, name: str) -> tuple[Json, ...] | None:
        """The lines of an archive; None when there is none."""
        return self._read(name, _archive)

    def archives(self, dag_id: str) -> tuple[str, ...]:
        """The names of the archives of a DAG id, oldest first."""
        folder = f"archive/{dag_id}"
        return tuple(f"{folder}/{name}" for name in self.files.names(f"{self.prefix}{folder}"))

    def facts(self) -> StateFacts:
        """What a plan needs to know of it; the other branches' tables are left to the caller."""
        return StateFacts(manifests=self.manifests(), tombstones=self.tombstones(), journal=self.journal())

    def _write(self, path: str, data: bytes) -> None:
        self.files.write(f"{self.prefix}{path}", data)

    def _read(self, path: str, reader: Callable[[bytes], _Read]) -> _Read | None:
        data = self.files.read(f"{self.prefix}{path}")
        try:
            return None if data is None else reader(data)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError) as error:
            problem = f"{self.files.place}/{self.prefix}{path} is damaged: {error}"
            remedy = "restore it from a backup, or remove it"
            raise StateError(Fault("state", "[chronon] state_root", problem, remedy)) from error


def open_state(root: str, *, deployment: Deployment) -> StateFolder:
    """The state folder of a deployment below the state root; nothing is made yet."""
    bundle = _name(deployment.bundle or "")
    return StateFolder(open_state_files(root), f"{bundle}/{_name(deployment.branch)}/")


def open_branches(root: str, *, branch: str | None = None) -> dict[tuple[str, str], StateFolder]:
    """The state folders below a root, by bundle and branch; with ``branch``, those of this branch only."""
    files = open_state_files(root)
    found = {}
    for bundle in files.names(""):
        for each in files.names(bundle):
            if branch is None or unquote(each) == branch:
                found[unquote(bundle), unquote(each)] = StateFolder(files, f"{bundle}/{each}/")
    return found


def _tombstone(data: bytes) -> Tombstone:
    found = Tombstone(**json.loads(data))
    to_datetime(found.since)  # raises for what is no instant
    if not isinstance(found.archive, str):
        raise TypeError("archive is no text")
    return found


def _archive(data: bytes) -> tuple[Json, ...]:
    lines = tuple(json.loads(line) for line in data.splitlines())
    if not all(isinstance(line, dict) and "kind" in line for line in lines):
        raise ValueError("a line is no record")
    return lines


def _journal(data: bytes) -> dict[str, JournalEntry]:
    return {entry.dag_id: entry for entry in map(entry_from_json, json.loads(data))}


def _ids(names: Iterable[str]) -> Iterable[str]:
    return (name.removesuffix(".json") for name in names if name.endswith(".json"))


def _name(text: str) -> str:
    """A folder's name that holds no slash and is not hidden."""
    return quote(text, safe="").replace(".", "%2E") or "_"
