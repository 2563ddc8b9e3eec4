"""The history of a DAG as JSON lines: what the archive keeps when Airflow forgets (C23)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from airflow_chronon.airflow_api.errors import NotThere
from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.airflow_api.records import RunRecord, TaskRecord
from airflow_chronon.core.calendar.instants import Instant, iso, to_datetime
from airflow_chronon.core.plan.facts import Tombstone
from airflow_chronon.core.plan.history import JournalEntry
from airflow_chronon.state.folder import StateFolder

Json = dict[str, Any]

_AT_WORK = ("running", "restarting")


def archive_name(dag_id: str, tombstone: Tombstone) -> str:
    """One archive per retirement, so that archiving again replaces what an interrupted reconcile wrote."""
    return f"archive/{dag_id}/{to_datetime(tombstone.since):%Y-%m-%dT%H%M%SZ}.jsonl"


@dataclass(frozen=True)
class History:
    """Every run and every try of a task instance that Airflow has of a DAG."""

    runs: tuple[RunRecord, ...] = ()
    tasks: tuple[TaskRecord, ...] = ()

    @property
    def is_active(self) -> bool:
        return any(run.is_active for run in self.runs) or any(task.state in _AT_WORK for task in self.tasks)

    @property
    def lines(self) -> list[Json]:
        """As the archive holds them."""
        return [*map(_run_line, self.runs), *map(_task_line, self.tasks)]


def history_of(server: AirflowServer, dag_id: str) -> History:
    """The history of a DAG; an empty one when Airflow does not know it."""
    try:
        runs, tasks = server.runs(dag_id), server.tasks(dag_id)
        retried = [task for task in tasks if task.try_number > 1]
        return History(runs, (*tasks, *(earlier for task in retried for earlier in server.earlier_tries(task))))
    except NotThere:
        return History()


def write_history(
    state: StateFolder,
    dag_id: str,
    tombstone: Tombstone,
    *,
    history: History,
    entry: JournalEntry | None,
    now: Instant,
) -> str:
    """Write the archive, read it back, and return its name. Raises ``StateError`` when it is not as written."""
    name = archive_name(dag_id, tombstone)
    earlier = state.read_archive(name) or ()
    head = {
        "kind": "retirement",
        "dag_id": dag_id,
        "why": tombstone.why,
        "by": tombstone.by,
        "since": iso(tombstone.since),
        "archived": iso(now),
    }
    lines: list[Json] = [head, *_conf_lines(state, dag_id, earlier, entry)]
    current = history.lines
    # what an earlier archive of this retirement holds and Airflow no longer does must not be lost
    kept = {_identity(line): line for line in earlier if line["kind"] in ("run", "task_instance")}
    kept |= {_identity(line): line for line in current}
    lines += kept.values()
    counts = {kind: sum(line["kind"] == kind for line in lines) for kind in ("run", "task_instance")}
    lines.append({"kind": "end", "runs": counts["run"], "task_instances": counts["task_instance"]})
    state.write_archive(name, lines)
    return name


def is_archived(state: StateFolder, tombstone: Tombstone, history: History) -> bool:
    """Whether the archive holds each of these runs and task instances as they are."""
    lines = state.read_archive(tombstone.archive) if tombstone.archive else None
    if not lines or lines[-1]["kind"] != "end":
        return False
    held = {_identity(line): line for line in lines}
    return all(held.get(_identity(line)) == line for line in history.lines)


def _conf_lines(state: StateFolder, dag_id: str, earlier: Sequence[Json], entry: JournalEntry | None) -> Iterator[Json]:
    manifest = state.read_manifest(dag_id)
    if manifest is not None:
        line: Json = {"kind": "conf", "key": manifest.key, "file": manifest.file, "table": manifest.table}
        yield {
            **line,
            "schedule": manifest.content["schedule"],
            "tags": manifest.content["tags"],
            "document": manifest.document,
        }
    else:
        yield from (line for line in earlier if line["kind"] == "conf")
    if entry is not None:
        yield {
            "kind": "journal",
            "first_seen": iso(entry.first_seen),
            "grid": entry.grid,
            "revisions": len(entry.revisions),
        }


def _run_line(run: RunRecord) -> Json:
    return {"kind": "run", **_plain(dict(run.raw) or _without_raw(asdict(run)))}


def _task_line(task: TaskRecord) -> Json:
    return {"kind": "task_instance", **_plain(dict(task.raw) or _without_raw(asdict(task)))}


def _without_raw(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if name != "raw"}


def _plain(value: Any) -> Any:
    """As JSON gives it back: lists for tuples."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def _identity(line: Json) -> tuple[Any, ...]:
    names = ("kind", "dag_run_id", "run_id", "task_id", "map_index", "try_number")
    return tuple(line.get(name) for name in names)
