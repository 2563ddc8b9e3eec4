"""The section ``catalog``: where the partitions of tables are seen, one model per kind of catalog."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from airflow_chronon.core.partitions.labels import IllegalFormat, partition_format
from airflow_chronon.core.partitions.listing import LandedWhen
from airflow_chronon.core.settings.kinds import Kinds, KindSettings, Section, over
from airflow_chronon.core.settings.values import Amount, Duration, is_filled_text, judged


def _is_format(value: Any) -> bool:
    try:
        partition_format(str(value))
    except IllegalFormat:
        return False
    return True


class FilesystemCatalogSettings(KindSettings):
    """Hive-style folders below one root."""

    kind: Literal["filesystem"] = "filesystem"
    root: Annotated[str, judged(is_filled_text, "is not a root", "give a path, or a URL such as s3://bucket/warehouse")]
    landed: LandedWhen = LandedWhen.ANY_FILE
    storage_options: dict[str, Any] | None = Field(default=None, repr=False)
    expression_memory: Amount | None = None
    expression_timeout: Duration | None = None


class IcebergCatalogSettings(KindSettings):
    """An Iceberg catalog: REST, SQL, Glue, Hive or BigQuery metastore."""

    kind: Literal["iceberg"] = "iceberg"
    connection: Annotated[
        str | None, judged(is_filled_text, "is not the id of a connection", "give that of an Airflow connection")
    ] = None
    name: str | None = None
    properties: dict[str, Any] | None = Field(default=None, repr=False)
    label_format: Annotated[
        str | None, judged(_is_format, "is not a format of labels", "write it like yyyy-MM-dd-HH-mm")
    ] = None


class DeltaCatalogSettings(KindSettings):
    """Delta tables below one root."""

    kind: Literal["delta"] = "delta"
    root: Annotated[str, judged(is_filled_text, "is not a root", "give a path, or a URL such as s3://bucket/lake")]
    storage_options: dict[str, str] | None = Field(default=None, repr=False)


CATALOGS = Kinds("catalog", FilesystemCatalogSettings, IcebergCatalogSettings, DeltaCatalogSettings)


class TableCatalogSection(Section):
    """A catalog for the tables that match."""

    kinds: ClassVar[Kinds[Any]] = CATALOGS

    match: str


class CatalogSection(Section):
    """The default catalog, and others per table."""

    kinds: ClassVar[Kinds[Any]] = CATALOGS

    kind: str = "filesystem"
    tables: tuple[TableCatalogSection, ...] = ()

    @property
    def default(self) -> dict[str, Any]:
        """The catalog of the tables that match no entry."""
        return self.model_dump(exclude={"tables"})

    def of_table(self, table: str) -> dict[str, Any]:
        """What to build the catalog of ``table`` from: the first match over the default, else the default."""
        entry = next((entry for entry in self.tables if fnmatchcase(table, entry.match)), None)
        return self.default if entry is None else self.of_entry(entry)

    def of_entry(self, entry: TableCatalogSection) -> dict[str, Any]:
        """The catalog of the tables that match ``entry``."""
        return over(self.default, entry.model_dump(exclude={"match"}))

    def with_root(self, root: str) -> CatalogSection:
        """The same, below ``root`` where it names none."""
        given = self.model_dump()
        if given.get("root") or not CATALOGS.takes(given, "root"):
            return self
        return CatalogSection.model_validate({**given, "root": root})
