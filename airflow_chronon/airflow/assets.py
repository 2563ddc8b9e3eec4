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


def table_asset(table: str, *, namespace_prefix: str = "") -> Asset:
    """The asset of a table; one per table and branch."""
    from airflow.sdk import Asset

    namespace, _, name = table.rpartition(".")
    uri = f"chronon://{namespace_prefix}{namespace}/{name}"
    return Asset(name=uri, uri=uri)
