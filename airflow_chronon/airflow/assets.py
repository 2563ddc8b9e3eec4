"""Assets: one per table, so that any DAG can wait for its partitions and people see who reads whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult

from airflow_chronon.airflow.parsing import asked_dag
from airflow_chronon.core.confs.conf import asset_uri
from airflow_chronon.core.describe.description import TableFacts
from airflow_chronon.core.overview.snapshot import SNAPSHOT_ASSET
from airflow_chronon.core.records.grid_contract import CONTRACTS_ASSET
from airflow_chronon.core.waits.said import SAID_ASSET

if TYPE_CHECKING:
    from airflow.sdk import Asset
    from airflow.sdk.definitions.asset import AssetRef
    from pydantic import JsonValue

_DERIVED = "__derived"


def sanitize_uri(uri: SplitResult) -> SplitResult:
    """Check a ``chronon://namespace/table`` URI. Raises ValueError for another shape."""
    if not uri.netloc or uri.path.strip("/").count("/") or not uri.path.strip("/"):
        raise ValueError(f"{uri.geturl()!r} is not an asset of a Chronon table: write chronon://namespace/table")
    return uri


@dataclass
class TableAssets:
    """The assets of the tables that a deployment's DAGs write and read; those of another branch are set apart (C24).

    ``facts`` holds what people may want to know of the tables that it writes. It is None at the start of a task, which
    needs none of it: then no table that is read is declared either, since Airflow fails a task that names an asset it has not
    seen yet, as that of a dependency that was added a moment ago; and those that are written are named only.
    """

    namespace_prefix: str = ""
    facts: Mapping[str, TableFacts] | None = None
    snapshot: str = ""  #: the key of what the reconciler keeps of the deployment in the state of :func:`snapshot_asset`
    #: Most are named by several DAGs.
    _made: dict[str, Asset | AssetRef] = field(default_factory=dict, init=False, repr=False)

    def written(self, table: str) -> Asset | AssetRef:
        """The asset of a table that this deployment writes."""
        uri = asset_uri(table, namespace_prefix=self.namespace_prefix)
        if uri not in self._made:
            self._made[uri] = _asset(uri) if self.facts is None else _asset(uri, extra=self.facts.get(table, {}))
        return self._made[uri]

    def read(self, table: str, *, is_written_here: bool) -> list[Asset | AssetRef]:
        """The asset of a table that is read, for the inlets of its wait; none where it cannot be told or named.

        ``is_written_here`` says whether a conf of the tree writes it: of one that this branch leaves to another, what is known
        of the table is that one's to say.
        """
        if self.facts is None:
            return []
        main = table.removesuffix(_DERIVED)  # it comes with the main one, whose asset tells of both
        if main in self.facts:
            return [self.written(main)]
        if is_written_here:
            return []
        uri = asset_uri(table)
        try:
            if uri not in self._made:
                self._made[uri] = _asset(uri)
            return [self._made[uri]]
        except ValueError:  # a name without a namespace, or one that is no address
            return []


def _asset(uri: str, **further: Any) -> Asset | AssetRef:
    """An asset; at the start of a task only a reference to it, by its name.

    An asset of Airflow checks its address, and loads for that what every installed provider has to say of addresses: half a second
    of each task, where those of the large clouds are installed.
    """
    from airflow.sdk import Asset

    return Asset(name=uri, uri=uri, **further) if asked_dag() is None else Asset.ref(name=uri)


def snapshot_asset() -> Asset | AssetRef:
    """The asset whose state keeps what the page of partitions shows."""
    return _internal_asset(SNAPSHOT_ASSET, "keeps what the page of partitions shows; not a table", asked_dag())


def contracts_asset() -> Asset | AssetRef:
    """The asset whose state keeps the grids of first writes (C22): an inlet of whatever reads or keeps them.

    Airflow has no hidden assets; its group and its extra tell people that it is no table.
    """
    return _internal_asset(CONTRACTS_ASSET, "keeps the grid of each table's first write; not a table", asked_dag())


def said_asset() -> Asset | AssetRef:
    """The asset whose state keeps what people have said of partitions."""
    return _internal_asset(SAID_ASSET, "keeps what people have said of partitions; not a table", asked_dag())


@cache
def _internal_asset(uri: str, what: str, _asked: str | None) -> Asset | AssetRef:
    extra: dict[str, JsonValue] = {"internal": what}
    return _asset(uri, group="chronon-internal", extra=extra)
