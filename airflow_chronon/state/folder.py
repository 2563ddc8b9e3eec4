"""What lies in the state folder of one deployment, by name.

::

    <state_root>/<bundle>/<branch>/records/<dag id>.json       what is remembered of one DAG, its deployed conf included
                                   archive/<dag id>/<time>.jsonl
                                   settings.yaml               the text of the last good settings (C23)
                                   freshness.json              how fresh tables were, and which late partitions were told
                                   bad                         stands for what was wrong in the tree at the last reconcile
                                   damaged/<dag id>.json       a record that could not be used, kept for whoever wants to look
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from airflow_chronon.core.plan.facts import Deployment
from airflow_chronon.core.records.record import DeploymentRecord
from airflow_chronon.errors import ChrononError, Fault
from airflow_chronon.state.files import StateError, open_state_files
from airflow_chronon.storage.files import Storage

Json = dict[str, Any]
_Read = TypeVar("_Read")


@dataclass(frozen=True)
class Records:
    """What was read of several DAG ids: a damaged record concerns its own DAG only (S9)."""

    found: Mapping[str, DeploymentRecord] = field(default_factory=dict)
    damaged: Mapping[str, Fault] = field(default_factory=dict)


@dataclass(frozen=True)
class StateFolder:
    """The state of one deployment. Everything is idempotent, and each file is whole or absent."""

    files: Storage
    prefix: str = ""  #: ``bundle/branch/`` below the root

    # records

    def dag_ids(self) -> frozenset[str]:
        """The DAG ids of which there is a record; one listing."""
        names = self.files.names(f"{self.prefix}records")
        return frozenset(name.removesuffix(".json") for name in names if name.endswith(".json"))

    def read_record(self, dag_id: str) -> DeploymentRecord | None:
        """Raises :class:`StateError` when it is damaged."""
        records = self.read_records((dag_id,))
        if dag_id in records.damaged:
            raise StateError(records.damaged[dag_id])
        return records.found.get(dag_id)

    def read_records(self, dag_ids: Iterable[str] | None = None) -> Records:
        """The records of these DAG ids, as far as there are any; of all by default, at once."""
        asked = {self._path(dag_id): dag_id for dag_id in (self.dag_ids() if dag_ids is None else dag_ids)}
        found: dict[str, DeploymentRecord] = {}
        damaged: dict[str, Fault] = {}
        for path, data in self.files.read_many(asked).items():
            dag_id = asked[path]
            if data is None:
                damaged[dag_id] = self._damage(path, "it is not a file")
                continue
            try:
                found[dag_id] = self._parsed(path, data, lambda raw, of=dag_id: _record(raw, of))  # type: ignore[misc]
            except StateError as error:
                damaged[dag_id] = error.fault
        return Records(found, damaged)

    def write_record(self, record: DeploymentRecord) -> None:
        self.files.write(self._path(record.dag_id), f"{json.dumps(record.to_json(), indent=1)}\n".encode())

    def remove_record(self, dag_id: str) -> None:
        self.files.remove(self._path(dag_id))

    def set_aside(self, dag_id: str) -> None:
        """Move a damaged record, or a folder in its place, to where it holds up nothing, beside those set aside before."""
        self._set_aside(f"records/{dag_id}.json", dag_id, ".json")

    def _set_aside(self, path: str, stem: str, suffix: str) -> None:
        taken = frozenset(self.files.names(f"{self.prefix}damaged"))
        names = (f"{stem}{'' if number == 1 else f'.{number}'}{suffix}" for number in count(1))
        name = next(name for name in names if name not in taken)
        self.files.move(f"{self.prefix}{path}", f"{self.prefix}damaged/{name}")

    def damage(self, dag_id: str, how: str) -> Fault:
        """What is said of a damaged record."""
        return self._damage(self._path(dag_id), how)

    # settings

    def read_settings(self) -> str | None:
        """The text of the last good settings; None when there have been none."""
        data = self.files.read(f"{self.prefix}settings.yaml")
        return None if data is None else data.decode(errors="replace")

    def keep_settings(self, text: str) -> None:
        """Remember the text of good settings; what cannot be read in their place is set aside (S9)."""
        try:
            if text == self.read_settings():
                return
        except StateError:
            self._set_aside("settings.yaml", "settings", ".yaml")
        self.files.write(f"{self.prefix}settings.yaml", text.encode())

    # freshness

    def read_freshness(self) -> Json:
        """What is remembered of how fresh tables are, by DAG id; empty where nothing can be read: it begins anew then."""
        try:
            data = self.files.read(f"{self.prefix}freshness.json")
            found = {} if data is None else json.loads(data)
        except (StateError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def keep_freshness(self, found: Mapping[str, Json]) -> None:
        """Remember it; what cannot be read in its place is set aside (S9)."""
        data = json.dumps(found).encode()
        try:
            if data == self.files.read(f"{self.prefix}freshness.json"):
                return
        except StateError:
            self._set_aside("freshness.json", "freshness", ".json")
        self.files.write(f"{self.prefix}freshness.json", data)

    # what is bad

    def read_bad(self) -> str:
        """What :meth:`keep_bad` was given last; empty when nothing was, or nothing can be read."""
        try:
            return (self.files.read(f"{self.prefix}bad") or b"").decode(errors="replace")
        except StateError:
            return ""

    def keep_bad(self, digest: str) -> None:
        """Remember which mistakes the tree has, so that others are noticed; what cannot be read in its place is set aside (S9)."""
        try:
            self.files.read(f"{self.prefix}bad")
        except StateError:
            self._set_aside("bad", "bad", "")
        self.files.write(f"{self.prefix}bad", digest.encode())

    # archive

    def write_archive(self, name: str, lines: Iterable[Mapping[str, Any]]) -> None:
        """Write JSON lines and read them back. Raises :class:`StateError` when they are not there as written."""
        data = "".join(f"{json.dumps(line, ensure_ascii=False, default=str)}\n" for line in lines).encode()
        self.files.write(f"{self.prefix}{name}", data)
        if self.files.read(f"{self.prefix}{name}") != data:
            problem = f"the archive {name} reads back otherwise than it was written, so nothing is deleted"
            raise StateError(Fault("state", self.files.place, problem, "check the storage"))

    def read_archive(self, name: str) -> tuple[Json, ...] | None:
        """The lines of an archive; None when there is none."""
        data = self.files.read(f"{self.prefix}{name}")
        return None if data is None else self._parsed(f"{self.prefix}{name}", data, _archive)

    def archives(self, dag_id: str) -> tuple[str, ...]:
        """The names of the archives of a DAG id, oldest first."""
        folder = f"archive/{dag_id}"
        return tuple(f"{folder}/{name}" for name in self.files.names(f"{self.prefix}{folder}"))

    def _path(self, dag_id: str) -> str:
        return f"{self.prefix}records/{dag_id}.json"

    def _parsed(self, path: str, data: bytes, parse: Callable[[bytes], _Read]) -> _Read:
        try:
            return parse(data)
        except (
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            RecursionError,
            OverflowError,
            ChrononError,
        ) as error:
            raise StateError(self._damage(path, str(error))) from error

    def _damage(self, path: str, how: str) -> Fault:
        problem = f"{self.files.place}/{path} is damaged: {how}"
        remedy = "restore it from a backup, or let the next reconcile set it aside"
        return Fault("state", "[chronon] state_root", problem, remedy)


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


def _record(data: bytes, dag_id: str) -> DeploymentRecord:
    return DeploymentRecord.from_json(json.loads(data), dag_id=dag_id)


def _archive(data: bytes) -> tuple[Json, ...]:
    lines = tuple(json.loads(line) for line in data.splitlines())
    if not all(isinstance(line, dict) and "kind" in line for line in lines):
        raise ValueError("a line is not an entry of an archive")
    return lines


def _name(text: str) -> str:
    """A folder's name that holds no slash and is not hidden."""
    return quote(text, safe="").replace(".", "%2E") or "_"
