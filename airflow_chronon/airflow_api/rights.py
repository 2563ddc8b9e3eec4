"""Which right a call to Airflow's API needs, in words: what is told when Airflow says that its user lacks it (S10)."""

from __future__ import annotations

_VERBS = {"GET": "read", "POST": "create", "PATCH": "edit", "PUT": "edit", "DELETE": "delete"}
#: By the last word of a path that is here. Airflow counts a backfill among the runs of its DAG.
_THINGS = {
    "dags": "DAGs",
    "dagRuns": "DAG runs",
    "backfills": "DAG runs",
    "taskInstances": "task instances",
    "xcomEntries": "XComs",
    "importErrors": "import errors",
    "assets": "assets",
    "config": "the configuration",
    "parseDagFile": "DAGs",
}


def right_of(method: str, path: str) -> str:
    """Such as ``edit DAGs``, for a method and a path below ``/api/v2/``."""
    thing = next((_THINGS[part] for part in reversed(path.split("/")) if part in _THINGS), path)
    return f"{_VERBS[method]} {thing}"
