"""The history of a DAG as JSON lines: what the archive keeps when Airflow forgets (C23)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from airflow_chronon.airflow_api.errors import NotThere
from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.airflow_api.records import RunRecord, TaskRecord
from airflow_chronon.core.calendar.instants import Instant, iso, to_datetime
from airflow_chronon.core.records.record import DeploymentRecord, Retirement
from airflow_chronon.state.folder import StateFolder

Json = dict[str, Any]

_AT_WORK = ("running", "restarting")


def archive_name(dag_id: str, retirement: Retirement) -> str:
    """One archive per retirement, so that archiving again replaces what an interrupted reconcile wrote."""
    return f"archive/{dag_id}/{to_datetime(retirement.since):%Y-%m-%dT%H%M%SZ}.jsonl"


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


def write_history(state: StateFolder, record: DeploymentRecord, history: History, *, now: Instant) -> str:
    """Write the archive of a DAG that is being retired, read it back, and return its name.

    Raises ``StateError`` when it is not as written.
    """
    retirement = record.retirement
    assert retirement is not None
    name = archive_name(record.dag_id, retirement)
    head = {
        "kind": "retirement",
        "dag_id": record.dag_id,
        "why": retirement.why,
        "by": retirement.by,
        "since": iso(retirement.since),
        "archived": iso(now),
    }
    # what an earlier archive of this retirement holds and Airflow no longer does must not be lost
    earlier = [line for line in state.read_archive(name) or () if line["kind"] in ("run", "task_instance")]
    kept = {_identity(line): line for line in (*earlier, *history.lines)}
    counts = {kind: sum(line["kind"] == kind for line in kept.values()) for kind in ("run", "task_instance")}
    end = {"kind": "end", "runs": counts["run"], "task_instances": counts["task_instance"]}
    state.write_archive(name, [head, *_conf_lines(record), *kept.values(), end])
    return name


def is_archived(state: StateFolder, retirement: Retirement, history: History) -> bool:
    """Whether the archive holds each of these runs and task instances as they are."""
    lines = state.read_archive(retirement.archive) if retirement.archive else None
    if not lines or lines[-1]["kind"] != "end":
        return False
    held = {_identity(line): line for line in lines}
    return all(held.get(_identity(line)) == line for line in history.lines)


def _conf_lines(record: DeploymentRecord) -> Iterator[Json]:
    manifest = record.manifest
    if manifest is not None:
        yield {
            "kind": "conf",
            "key": manifest.key,
            "file": manifest.file,
            "table": manifest.table,
            "schedule": manifest.content["schedule"],
            "tags": manifest.content["tags"],
            "document": manifest.document,
        }
        first_seen, revisions = iso(record.first_seen), len(record.revisions)
        yield {"kind": "record", "first_seen": first_seen, "grid": record.grid, "revisions": revisions}


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
