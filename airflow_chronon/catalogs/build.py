"""From the setting ``catalog`` to a catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from airflow_chronon.catalogs.connections import Connect, StoreConnection, connections_of_environment
from airflow_chronon.catalogs.delta import DeltaCatalog
from airflow_chronon.catalogs.filesystem import FilesystemCatalog
from airflow_chronon.catalogs.iceberg import IcebergCatalog
from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.partitions.listing import TableListing
from airflow_chronon.core.settings.catalogs import CATALOGS
from airflow_chronon.core.settings.kinds import NO_VARIABLES
from airflow_chronon.core.settings.variables import Secrets
from airflow_chronon.core.waits.catalog import ExpressionValue, PartitionCatalog

#: The class of every kind of catalog in :data:`airflow_chronon.core.settings.catalogs.CATALOGS`.
CLASSES: Mapping[str, Callable[..., PartitionCatalog]] = {
    "filesystem": FilesystemCatalog,
    "iceberg": IcebergCatalog,
    "delta": DeltaCatalog,
}


def build_catalog(
    settings: Mapping[str, object], environ: Mapping[str, str] = NO_VARIABLES, *, connect: Connect | None = None
) -> PartitionCatalog:
    """The catalog that a section describes, filled in from ``environ``; nothing is opened yet.

    ``connect`` finds the connection that the section names, on first use; by default the environment's. No message of the
    catalog holds what was filled in or what a connection keeps secret (S4). Raises :class:`airflow_chronon.errors.Rejected` with
    every unknown kind, key or value and what is allowed.
    """
    found = CATALOGS.read(settings, environ)
    made, given, secrets = CLASSES[str(settings["kind"])], found.given, Secrets.of(settings, environ=environ)
    if (connection_id := given.pop("connection", None)) is not None:
        find, known = connect or connections_of_environment(environ), dict[str, str](secrets.values)
        secrets = Secrets(known)

        def connected() -> StoreConnection:
            connection = find(connection_id)
            known.update({f"{connection_id}.{name}": value for name, value in connection.secrets.items()})
            return connection

        given["connect"] = connected
        return DiscreetCatalog(made(**given), secrets)
    catalog = made(**given)
    return DiscreetCatalog(catalog, secrets) if secrets.values else catalog


@dataclass(frozen=True)
class DiscreetCatalog:
    """A catalog that says nothing of what was filled into its settings: drivers quote addresses and keys (S4)."""

    catalog: PartitionCatalog = field(repr=False)
    secrets: Secrets

    def place_of(self, table: str) -> str:
        return self.secrets.hidden(self.catalog.place_of(table))

    def change_token(self, table: str) -> str | None:
        with self.secrets.kept():
            return self.catalog.change_token(table)

    def list_partitions(self, table: str) -> TableListing:
        with self.secrets.kept():
            return self.catalog.list_partitions(table)

    def newest_value(self, table: str, column: str) -> Instant | None:
        with self.secrets.kept():
            return self.catalog.newest_value(table, column)

    def evaluate(self, table: str, expression: str) -> ExpressionValue:
        with self.secrets.kept():
            return self.catalog.evaluate(table, expression)
