"""What a look at a table of many partitions costs, by kind of catalog: a first listing, and a poll while nothing has changed.

Local disk, one process. The Iceberg table has metadata alone: no row is read by a listing either. It needs the top of the repository on
PYTHONPATH, and the extra ``iceberg``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record

from airflow_chronon.catalogs.filesystem import FilesystemCatalog
from airflow_chronon.catalogs.iceberg import IcebergCatalog
from airflow_chronon.core.waits.catalog import PartitionCatalog
from airflow_chronon.core.waits.poll import Observation, Query, observe
from tests.support.iceberg import IcebergLake

TABLE, LABELS = "data.orders", Query("labels")


def folders(base: Path, count: int) -> PartitionCatalog:
    for number in range(count):
        folder = base / TABLE / f"ds=l{number:07}"
        folder.mkdir(parents=True)
        (folder / "part-0.parquet").touch()
    return FilesystemCatalog(str(base))


def iceberg(base: Path, count: int) -> PartitionCatalog:
    base.mkdir()
    lake = IcebergLake(base)
    lake.create(TABLE, pa.schema({"ds": pa.string()}), {"ds": "identity"})
    table = lake.catalog.load_table(TABLE)
    with table.transaction() as change, change.update_snapshot().fast_append() as append:
        for number in range(count):
            append.append_data_file(
                DataFile.from_args(
                    content=DataFileContent.DATA,
                    file_path=f"file://{base}/{number}.parquet",
                    file_format=FileFormat.PARQUET,
                    partition=Record(f"l{number:07}"),
                    record_count=1,
                    file_size_in_bytes=1,
                    spec_id=table.spec().spec_id,
                )
            )
    return IcebergCatalog(lake.properties)


def timed(look: Callable[[], Observation]) -> tuple[float, Observation]:
    began = time.perf_counter()
    seen = look()
    return time.perf_counter() - began, seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--polls", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="catalogs-") as base:
        for make in (folders, iceberg):
            catalog = make(Path(base) / make.__name__, options.partitions)
            first, seen = timed(lambda: observe(catalog, TABLE, [LABELS]))  # noqa: B023
            assert len(seen.answers[LABELS].partitions) == options.partitions  # type: ignore[union-attr]
            again = min(timed(lambda: observe(catalog, TABLE, [LABELS], seen))[0] for _ in range(options.polls))  # noqa: B023
            tracemalloc.start()
            kept = observe(catalog, TABLE, [LABELS])
            memory = tracemalloc.get_traced_memory()[0] / 1e6
            tracemalloc.stop()
            print(
                f"{make.__name__}: {len(kept.answers[LABELS].partitions)} partitions listed in {first:.2f} s, {memory:.1f} MB kept; "  # type: ignore[union-attr]
                f"a poll while nothing changed {again * 1000:.1f} ms ({first / again:.0f} times faster)"
            )


if __name__ == "__main__":
    main()
