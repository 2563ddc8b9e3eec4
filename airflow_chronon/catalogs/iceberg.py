"""Partitions of Iceberg tables, seen through any catalog that pyiceberg knows: REST, SQL, Glue, Hive, BigQuery metastore.

Only metadata is read, never data: the current snapshot's manifests tell the partitions, and the bounds of each file the newest
value of a column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from airflow_chronon.catalogs.connections import StoreConnection
from airflow_chronon.catalogs.metadata import column_of, instant_of, said_of, text_of
from airflow_chronon.core.calendar.instants import DAY, HOUR, Instant
from airflow_chronon.core.partitions.labels import IllegalFormat, PartitionFormat, partition_format
from airflow_chronon.core.partitions.listing import TableListing, TableState
from airflow_chronon.core.waits.catalog import ExpressionValue, IllegalExpression
from airflow_chronon.errors import CatalogError, Fault
from airflow_chronon.extras import optional

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: How the partitions of a time transform are named, unless the settings say otherwise; as grids name theirs (C6).
_FORMATS = {"hour": "yyyy-MM-dd-HH-mm", "day": "yyyy-MM-dd", "month": "yyyy-MM", "year": "yyyy"}


@dataclass
class IcebergCatalog:
    """A catalog over the tables of one Iceberg catalog.

    A table's full name is its identifier. A partition of an ``identity`` field is its value as text; of the transforms ``hour``, ``day``,
    ``month`` and ``year`` it is the time's label, under the name of the field and of the column that it is made of. Rows whose
    value is null are in no partition that anyone can wait for. Every error is a :class:`CatalogError`.
    """

    properties: Mapping[str, Any] = field(default_factory=dict, repr=False)  #: pyiceberg's own
    connect: Callable[[], StoreConnection] | None = field(
        default=None, repr=False
    )  #: what the properties are laid over
    name: str = "default"  #: of the catalog: one of the type ``sql`` keeps the tables of several, by their names
    label_format: str | None = None  #: of time transforms; None: as grids of their length are named
    _opened: Any = field(default=None, init=False, repr=False)
    _loaded: dict[str, Any] = field(default_factory=dict, init=False, repr=False)  #: tables as their token was read

    def place_of(self, table: str) -> str:
        """The catalog; see :class:`airflow_chronon.core.waits.catalog.PartitionCatalog`."""
        kind = self.properties.get("type")
        return f"the Iceberg catalog{f' of type {kind}' if kind else ''}, {table}"

    def change_token(self, table: str) -> str | None:
        """The id of the table's current snapshot, and of how it is partitioned: one small call."""
        found = self._load(table)
        self._loaded[table] = found
        if found is None:
            return "missing"
        metadata = found.metadata
        return f"{metadata.table_uuid} {metadata.current_snapshot_id} {metadata.default_spec_id} {metadata.current_schema_id}"

    def list_partitions(self, table: str) -> TableListing:
        """The partitions that hold a data file; see :class:`airflow_chronon.core.waits.catalog.PartitionCatalog`."""
        found = self._take(table)
        if found is None:
            return TableListing(TableState.MISSING)
        with said_of("Iceberg", table):
            if not any(spec.fields for spec in found.specs().values()):
                return TableListing(TableState.UNPARTITIONED)
            if found.current_snapshot() is None:
                return TableListing(TableState.PARTITIONED)
            readers = {spec_id: self._fields(found, spec) for spec_id, spec in found.specs().items()}
            rows = found.inspect.partitions().select(["partition", "spec_id", "file_count"]).to_pylist()
            leaves = (_leaf(row["partition"], readers[row["spec_id"]]) for row in rows if row["file_count"])
            return TableListing(TableState.PARTITIONED, tuple(leaf for leaf in leaves if leaf))

    def newest_value(self, table: str, column: str) -> Instant | None:
        """The newest value of a time column, by the upper bounds that the metadata hold for each file (C18)."""
        found = self._take(table)
        if found is None or found.current_snapshot() is None:
            return None
        with said_of("Iceberg", table):
            name = column_of(found.schema().column_names, column, table)
            metrics = found.inspect.files()["readable_metrics"].to_pylist()
            bounds = [each[name]["upper_bound"] for each in metrics if each.get(name)]
            if bounds and all(bound is None for bound in bounds):
                problem = f"the metadata hold no bounds of the column {column!r}"
                remedy = "let its writer keep metrics of it (write.metadata.metrics.column."
                raise CatalogError(Fault("C18", column, problem, f"{remedy}{column}=full)"), conf=table)
            return max((instant_of(bound, column, table) for bound in bounds if bound is not None), default=None)

    def evaluate(self, table: str, expression: str) -> ExpressionValue:
        """No expression is run over the rows of an Iceberg table here."""
        problem = "a triggerExpr cannot be evaluated over an Iceberg table, of which only metadata are read"
        raise IllegalExpression(Fault("C19", "triggerExpr", problem, "remove the triggerExpr"), conf=table)

    def _take(self, table: str) -> Any:
        """The table as it was when its token was read, so that a poll loads it once; else as it is."""
        return self._loaded[table] if table in self._loaded else self._load(table)

    def _load(self, table: str) -> Any:
        """The table's metadata; None where there is no such table."""
        exceptions = optional("pyiceberg.exceptions", needed_for="reading Iceberg tables")
        identifier = tuple(table.split("."))
        if len(identifier) < 2:
            problem = "the table is named without a namespace, which every Iceberg table has"
            raise CatalogError(Fault("C16", "table", problem, "write namespace.table"), conf=table)
        with said_of("Iceberg", table):
            try:
                return self._catalog().load_table(identifier)
            except (exceptions.NoSuchTableError, exceptions.NoSuchNamespaceError):
                return None

    def _catalog(self) -> Any:
        """The catalog, opened on first use, so that building one touches nothing; where that fails it is tried again."""
        if self._opened is None:
            pyiceberg = optional("pyiceberg.catalog", needed_for="reading Iceberg tables")
            given = _properties(self.connect()) if self.connect is not None else {}
            self._opened = pyiceberg.load_catalog(self.name, **{**given, **self.properties})
        return self._opened

    def _fields(self, found: Any, spec: Any) -> list[tuple[str, Callable[[Any], Mapping[str, str]]]]:
        """By the name of a field in a partition, what its value means."""
        read = []
        for each in spec.fields:
            source = found.schema().find_column_name(each.source_id) or each.name
            kind = str(each.transform)
            names = tuple(dict.fromkeys((each.name, source) if kind in _FORMATS else (each.name,)))
            read.append((each.name, self._labels(kind, names)))
        return read

    def _labels(self, kind: str, names: tuple[str, ...]) -> Callable[[Any], Mapping[str, str]]:
        written = self._format(kind) if kind in _FORMATS else None

        def labels(value: Any) -> Mapping[str, str]:
            text = text_of(value) if written is None else written(value)
            return dict.fromkeys(names, text)

        return labels

    def _format(self, kind: str) -> Callable[[Any], str]:
        pattern = self.label_format or _FORMATS[kind]
        if kind in ("month", "year"):  # no grid is so long; people may still see what there is
            return lambda value: _of_months(value if kind == "month" else value * 12)[: len(_FORMATS[kind])]
        try:
            found: PartitionFormat = partition_format(pattern)
        except IllegalFormat as error:
            raise CatalogError(error.fault) from error
        if kind == "hour":
            return lambda value: found.encode(value * HOUR)
        return lambda value: found.encode(_days(value) * DAY)


def _leaf(partition: Mapping[str, Any], read: list[tuple[str, Callable[[Any], Mapping[str, str]]]]) -> dict[str, str]:
    """A partition as labels by column; empty where one of its values is null."""
    leaf: dict[str, str] = {}
    for name, labels in read:
        if partition[name] is None:
            return {}
        leaf |= labels(partition[name])
    return leaf


def _days(value: Any) -> int:
    """Days since the epoch: the transform ``day`` gives a date or its number, as the version has it."""
    return (value - _EPOCH.date()).days if isinstance(value, date) else int(value)


def _of_months(months: int) -> str:
    """A count of months since the epoch as a label."""
    year, month = divmod(1970 * 12 + months, 12)
    return f"{year:04}-{month + 1:02}"


def _properties(connection: StoreConnection) -> dict[str, Any]:
    """What pyiceberg is told of a connection, as Airflow's own Iceberg provider reads one."""
    given: dict[str, Any] = dict(connection.extra)
    if connection.host:
        address = connection.host.rstrip("/")
        given.setdefault("uri", address if connection.port is None else f"{address}:{connection.port}")
    if connection.login and connection.password:
        given.setdefault("credential", f"{connection.login}:{connection.password}")
    if connection.schema:
        given.setdefault("warehouse", connection.schema)
    return given
