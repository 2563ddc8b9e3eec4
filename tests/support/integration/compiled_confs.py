"""Small confs in the shape that ``zipline compile`` writes, for tests that drop them into a real deployment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DAY = 24 * 60  #: minutes
TEAM = "it"
NAMESPACE = "lab"

#: Lands every partition of a job, as Chronon's own driver would; none when there is no window.
LAND = """
set -eu
[ -n "${CHRONON_PARTITIONS:-}" ] || exit 0
table="$CHRONON_WAREHOUSE/{table}"
echo "$CHRONON_PARTITIONS" | tr , '\\n' | while read -r label; do
  mkdir -p "$table/ds=$label"
  : > "$table/ds=$label/_SUCCESS"
done
"""


@dataclass(frozen=True)
class CompiledConf:
    """One conf: what stands in its file, and what a deployment makes of it."""

    kind: str  #: ``staging_query`` or ``group_by``
    name: str
    document: Mapping[str, Any]

    @property
    def file(self) -> str:
        """Where the compiler puts it, below the compiled tree."""
        folder = {"staging_query": "staging_queries", "group_by": "group_bys"}[self.kind]
        return f"{folder}/{TEAM}/{self.name.removeprefix(f'{TEAM}.')}"

    @property
    def dag_id(self) -> str:
        return f"{self.kind}.{self.name}"

    @property
    def table(self) -> str:
        return f"{NAMESPACE}.{self.name.replace('.', '_')}"


def shell(script: str, **more: Any) -> dict[str, Any]:
    """A runner that runs a script; ``{table}`` in it is the table that the job writes."""
    escaped = script.replace("{", "{{").replace("}", "}}").replace("{{table}}", "{table}")
    return {"kind": "command", "argv": ["/bin/sh", "-c", escaped], **more}


def staging_query(
    name: str,
    *,
    every: int = DAY,
    schedule: str = "@never",
    reads: str | None = None,
    reads_every: int | None = None,
    query: str = "SELECT 1 AS n, {{ start_date }} AS ds",
    airflow: Mapping[str, Any] | None = None,
) -> CompiledConf:
    """A staging query on a grid of ``every`` minutes that reads one table, of the same grid or of ``reads_every``; it lands by
    command unless ``airflow``, the conf's own settings, names another runner."""
    document: dict[str, Any] = {
        "metaData": _meta(name, every=every, offline=schedule, airflow=airflow),
        "query": query,
        "tableDependencies": [
            {
                "tableInfo": {
                    "table": table,
                    "partitionColumn": "ds",
                    "partitionInterval": _minutes(reads_every or every),
                },
                "startOffset": {"length": 0, "timeUnit": 1},
                "endOffset": {"length": 0, "timeUnit": 1},
            }
            for table in ([] if reads is None else [reads])
        ],
    }
    return CompiledConf("staging_query", document["metaData"]["name"], document)


def group_by(
    name: str, *, offline: str, online: str, reads: str, airflow: Mapping[str, Any] | None = None
) -> CompiledConf:
    """An online GroupBy over the snapshots of a table, on the daily grid."""
    meta = _meta(name, every=DAY, offline=offline, airflow=airflow)
    meta["online"] = 1
    meta["executionInfo"]["onlineSchedule"] = online
    document = {
        "metaData": meta,
        "keyColumns": ["id"],
        "sources": [{"entities": {"snapshotTable": reads, "query": {"selects": {"id": "id", "n": "n"}}}}],
    }
    return CompiledConf("group_by", meta["name"], document)


def _meta(name: str, *, every: int, offline: str, airflow: Mapping[str, Any] | None) -> dict[str, Any]:
    own = {"runner": shell(LAND), **(airflow or {})}
    execution: dict[str, Any] = {"offlineSchedule": offline}
    if every != DAY:
        execution["outputTableInfo"] = {"partitionInterval": _minutes(every)}
    return {
        "name": f"{TEAM}.{name}__1",
        "version": "1",
        "team": TEAM,
        "outputNamespace": NAMESPACE,
        "customJson": json.dumps({"airflow": own}),
        "executionInfo": execution,
    }


def _minutes(length: int) -> dict[str, int]:
    return {"length": length, "timeUnit": 2}
