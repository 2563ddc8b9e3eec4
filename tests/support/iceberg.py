"""Iceberg tables of a few rows, in a catalog of pyiceberg's own kind ``sql`` on SQLite: files in a folder, no server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog


@dataclass(frozen=True)
class IcebergLake:
    """A catalog below a folder, and what is told of it in settings."""

    folder: Path

    @property
    def properties(self) -> dict[str, Any]:
        return {"type": "sql", "uri": f"sqlite:///{self.folder}/catalog.db", "warehouse": f"file://{self.folder}/lake"}

    @property
    def catalog(self) -> Catalog:
        return load_catalog("default", **self.properties)

    def create(self, table: str, schema: pa.Schema, partitioned_by: Mapping[str, str]) -> None:
        """A table without rows; ``partitioned_by`` has a transform per column, such as ``{"ts": "hour"}``."""
        catalog = self.catalog
        catalog.create_namespace_if_not_exists(table.rpartition(".")[0])
        made = catalog.create_table(table, schema)
        with made.update_spec() as spec:
            for column, transform in partitioned_by.items():
                name = column if transform == "identity" else f"{column}_{transform}"
                spec.add_field(column, transform, name)

    def append(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        found = self.catalog.load_table(table)
        found.append(pa.Table.from_pylist(list(rows), schema=found.schema().as_arrow()))
