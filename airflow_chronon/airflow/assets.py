"""Assets: one per table, so that any DAG can wait for its partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import SplitResult

if TYPE_CHECKING:
    from airflow.sdk import Asset


def sanitize_uri(uri: SplitResult) -> SplitResult:
    """Check a ``chronon://namespace/table`` URI. Raises ValueError for another shape."""
    if not uri.netloc or uri.path.strip("/").count("/") or not uri.path.strip("/"):
        raise ValueError(f"{uri.geturl()!r} is no asset of a Chronon table: write chronon://namespace/table")
    return uri


def table_asset(table: str, *, branch: str, default_branch: str) -> Asset:
    """The asset of a table. Off the default branch its namespace carries the branch: an experiment never wakes
    production's consumers (C24)."""
    from airflow.sdk import Asset

    namespace, _, name = table.rpartition(".")
    prefix = "" if branch == default_branch else f"{branch}--"
    uri = f"chronon://{prefix}{namespace}/{name}"
    return Asset(name=uri, uri=uri)
