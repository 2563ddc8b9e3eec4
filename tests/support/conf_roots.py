"""Conf roots for tests: small compiled confs written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_FOLDERS = {"staging_query": "staging_queries", "group_by": "group_bys", "join": "joins"}


class ConfRootOnDisk:
    """A conf root below a folder; ``write`` adds confs to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "compiled").mkdir(parents=True)

    def settings(self, text: str) -> None:
        (self.path / "chronon.yaml").write_text(text, encoding="utf-8")

    def write(self, conf_type: str, name: str, document: dict[str, Any] | str, *, file: str | None = None) -> Path:
        """A conf at its place, ``<team>/<rest>``, or at ``file`` below the folder of its type."""
        path = self.path / "compiled" / _FOLDERS[conf_type] / (file or name.replace(".", "/", 1))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
        return path

    def staging_query(self, name: str, *, schedule: str = "@daily", version: str | None = "1", **more: Any) -> Path:
        """A daily staging query that reads ``raw.orders``; ``more`` goes into its metaData."""
        full = f"{name}__{version}" if version else name
        return self.write("staging_query", full, staging_query(full, schedule=schedule, version=version, **more))


def staging_query(name: str, *, schedule: str = "@daily", version: str | None = "1", **more: Any) -> dict[str, Any]:
    query = more.pop("query", "SELECT * FROM raw.orders WHERE ds BETWEEN {{ start_date }} AND {{ end_date }}")
    dependencies = more.pop("dependencies", [dependency("raw.orders")])
    execution = {"offlineSchedule": schedule, **more.pop("execution", {})}
    meta = {"name": name, "team": name.partition(".")[0], "outputNamespace": "shop", "online": 0, **more}
    if version:
        meta["version"] = version
    return {
        "metaData": {**meta, "executionInfo": execution},
        "query": query,
        "tableDependencies": dependencies,
    }


def dependency(table: str, *, interval: int = 1, unit: int = 1, **more: Any) -> dict[str, Any]:
    """A dependency on the same partitions of a table; ``unit`` 0 is hours, 1 days."""
    zero = {"length": 0, "timeUnit": 1}
    info = {"table": table, "partitionColumn": "ds", "partitionInterval": {"length": interval, "timeUnit": unit}}
    return {"tableInfo": info | more.pop("info", {}), "startOffset": zero, "endOffset": zero, **more}
