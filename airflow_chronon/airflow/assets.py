"""Assets: one per table, so that any DAG can wait for its partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import SplitResult

from airflow_chronon.core.confs.conf import asset_uri
from airflow_chronon.core.records.grid_contract import CONTRACTS_ASSET

if TYPE_CHECKING:
    from airflow.sdk import Asset


def sanitize_uri(uri: SplitResult) -> SplitResult:
    """Check a ``chronon://namespace/table`` URI. Raises ValueError for another shape."""
    if not uri.netloc or uri.path.strip("/").count("/") or not uri.path.strip("/"):
        raise ValueError(f"{uri.geturl()!r} is not an asset of a Chronon table: write chronon://namespace/table")
    return uri


def table_asset(table: str, *, namespace_prefix: str = "") -> Asset:
    """The asset of a table; one per table and branch."""
    from airflow.sdk import Asset

    uri = asset_uri(table, namespace_prefix=namespace_prefix)
    return Asset(name=uri, uri=uri)


def contracts_asset() -> Asset:
    """The asset whose state keeps the grids of first writes (C22): an inlet of whatever reads or keeps them."""
    from airflow.sdk import Asset

    return Asset(name=CONTRACTS_ASSET, uri=CONTRACTS_ASSET)
