"""What the filesystem catalog sees of a table's folders (C7, C20)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given
from hypothesis import strategies as st

from airflow_chronon.catalogs.filesystem import FilesystemCatalog
from airflow_chronon.core.partitions.labels import escape_label
from airflow_chronon.core.partitions.listing import LandedWhen, TableState
from airflow_chronon.errors import CatalogError
from airflow_chronon.storage.layout import listing_of


def labels(catalog: FilesystemCatalog, table: str, column: str = "ds", sub: tuple[str, ...] = ()) -> set[str]:
    return set(catalog.list_partitions(table).labels(column, sub))


@pytest.mark.parametrize(
    ("root", "place"),
    [
        ("/data/warehouse/", "/data/warehouse/t"),
        ("file:///data/warehouse", "/data/warehouse/t"),
        ("s3://me:hu/sh@bucket/a/", "s3://bucket/a/t"),  # S4
    ],
)
def test_a_table_has_a_place_that_people_may_read(root: str, place: str) -> None:
    assert FilesystemCatalog(root).place_of("t") == place


def test_a_place_is_a_whole_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert FilesystemCatalog("warehouse").place_of("t") == str(tmp_path / "warehouse" / "t")


class TestWhatCountsAsLanded:
    def test_a_data_file_lands_a_partition_by_default(self, root, touch):
        touch("data.checkouts/ds=2026-01-01/part-0.parquet", "data.checkouts/ds=2026-01-02/000000_0")
        assert labels(FilesystemCatalog(root), "data.checkouts") == {"2026-01-01", "2026-01-02"}

    def test_a_success_file_alone_lands_a_partition_too(self, root, touch):
        touch("t/ds=2026-01-01/_SUCCESS", content=b"")
        assert labels(FilesystemCatalog(root), "t") == {"2026-01-01"}

    def test_only_a_success_file_counts_when_asked(self, root, touch):
        touch("t/ds=2026-01-01/part-0.parquet", "t/ds=2026-01-02/part-0.parquet", "t/ds=2026-01-02/_SUCCESS")
        assert labels(FilesystemCatalog(root, landed=LandedWhen.SUCCESS_FILE), "t") == {"2026-01-02"}

    @pytest.mark.parametrize(
        "path",
        [
            "t/ds=2026-01-01/_temporary/0/part-0.parquet",
            "t/ds=2026-01-01/.part-0.parquet.crc",
            "t/ds=2026-01-01/_committed_1",
            "t/_chronon-1-abc/ds=2026-01-01/part-0.parquet",
            "t/.hive-staging/ds=2026-01-01/part-0.parquet",
            "t/ds=2026-01-01_$folder$",
        ],
    )
    def test_hidden_files_and_folders_hold_no_data(self, root, touch, path):
        touch(path, "t/ds=2026-01-05/part-0.parquet")
        assert labels(FilesystemCatalog(root), "t") == {"2026-01-05"}

    def test_a_new_partition_is_seen_by_the_next_listing(self, root, touch):
        catalog = FilesystemCatalog(root)
        touch("t/ds=2026-01-01/part-0.parquet")
        assert labels(catalog, "t") == {"2026-01-01"}
        touch("t/ds=2026-01-02/part-0.parquet")
        assert labels(catalog, "t") == {"2026-01-01", "2026-01-02"}


class TestStates:
    def test_a_table_that_is_not_there_is_missing(self, root):
        assert FilesystemCatalog(root).list_partitions("no.table").state is TableState.MISSING

    def test_files_without_partition_folders_make_an_unpartitioned_table(self, root, touch):
        touch("vendor.regions/part-0.parquet", "vendor.regions/_SUCCESS")
        assert FilesystemCatalog(root).list_partitions("vendor.regions").state is TableState.UNPARTITIONED

    def test_an_empty_table_is_there_and_has_no_partitions(self, tmp_path: Path):
        (tmp_path / "t" / "ds=2026-01-01").mkdir(parents=True)
        listing = FilesystemCatalog(str(tmp_path)).list_partitions("t")
        assert (listing.state, listing.partitions) == (TableState.PARTITIONED, ())


class TestNestedPartitions:
    def test_columns_may_stand_in_any_order(self, root, touch):  # C20
        touch("t/system=mobile/ds=2026-01-01/hr=23%3A00/part-0.parquet", "t/ds=2026-01-02/_HR=01%3A00/part-0.parquet")
        listing = FilesystemCatalog(root).list_partitions("t")
        assert sorted(map(dict, listing.partitions), key=str) == sorted(
            [{"system": "mobile", "ds": "2026-01-01", "hr": "23:00"}, {"ds": "2026-01-02", "_HR": "01:00"}], key=str
        )
        assert listing.labels("ds", ("system=mobile/hr=23:00",)) == {"2026-01-01"}
        assert listing.labels("ds", ("_HR=01:00",)) == {"2026-01-02"}

    def test_a_success_file_above_the_leaves_is_no_partition_of_its_own(self, root, touch):
        touch("t/ds=2026-01-01/_SUCCESS", "t/ds=2026-01-01/system=web/part-0.parquet")
        assert FilesystemCatalog(root).list_partitions("t").partitions == ({"ds": "2026-01-01", "system": "web"},)

    def test_a_success_file_above_the_leaves_lands_them_all(self, root, touch):
        touch("t/ds=1/_SUCCESS", "t/ds=1/system=web/a.parquet", "t/ds=2/system=web/a.parquet", "t/_SUCCESS")
        catalog = FilesystemCatalog(root, landed=LandedWhen.SUCCESS_FILE)
        assert catalog.list_partitions("t").partitions == ({"ds": "1", "system": "web"},)

    @given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20))
    def test_every_label_comes_back_from_its_folder(self, label):  # C7
        listing = listing_of([f"ds={escape_label(label)}/part-0.parquet"], landed=LandedWhen.ANY_FILE)
        assert listing.labels("ds") == {label}


class Forbidden(MemoryFileSystem):  # type: ignore[misc]
    """A store that answers every listing with a refusal."""

    protocol: ClassVar[Any] = "forbidden"
    cachable = False

    def find(self, path: str, *args: Any, **kwargs: Any) -> Any:
        raise PermissionError(13, "Access Denied", path)


class TestFaults:
    def test_a_file_where_the_table_should_be_is_one_sentence(self, root, touch):
        touch("t")
        with pytest.raises(CatalogError, match="t is a file where the folder of a table should be"):
            FilesystemCatalog(root).list_partitions("t")

    def test_a_file_where_a_partition_should_be_is_one_sentence(self, root, touch):
        touch("t/ds=2026-01-01")
        with pytest.raises(CatalogError, match="t: 'ds=2026-01-01' is a file where a partition folder should be"):
            FilesystemCatalog(root).list_partitions("t")

    @pytest.mark.parametrize("table", ["", "..", "../secrets", "a/b", "a\\b", ".hidden"])
    def test_a_table_name_never_leaves_the_root(self, root, table):
        with pytest.raises(CatalogError, match="cannot be a folder's name"):
            FilesystemCatalog(root).list_partitions(table)

    def test_no_permission_on_disk_is_one_sentence(self, tmp_path: Path):
        (tmp_path / "t" / "ds=1").mkdir(parents=True)
        tmp_path.chmod(0o755)
        (tmp_path / "t").chmod(0)
        was = os.geteuid()
        try:
            if was == 0:
                for parent in tmp_path.parents:
                    if parent != Path("/") and parent.stat().st_uid == 0 and not parent.stat().st_mode & 0o001:
                        parent.chmod(parent.stat().st_mode | 0o001)
                os.seteuid(65534)
            with pytest.raises(CatalogError, match=r"cannot list .*Permission denied.*right to read"):
                FilesystemCatalog(str(tmp_path)).list_partitions("t")
        finally:
            os.seteuid(was)
            (tmp_path / "t").chmod(0o755)

    def test_no_permission_in_a_store_is_one_sentence(self):
        fsspec.register_implementation("forbidden", Forbidden, clobber=True)
        with pytest.raises(CatalogError, match=r"cannot list .*Access Denied"):
            FilesystemCatalog("forbidden://x").list_partitions("t")

    def test_a_missing_driver_names_the_extra(self, mocker):
        mocker.patch("fsspec.core.url_to_fs", side_effect=ImportError("Install s3fs to access S3"))
        with pytest.raises(CatalogError, match=r"pip install 'airflow-chronon\[s3\]'"):
            FilesystemCatalog("s3://bucket/warehouse").list_partitions("t")

    def test_an_unknown_protocol_is_one_sentence(self):
        with pytest.raises(CatalogError, match="cannot open nowhere://x: Protocol not known: nowhere"):
            FilesystemCatalog("nowhere://x").list_partitions("t")

    def test_building_and_listing_on_disk_imports_no_heavy_package(self, tmp_path: Path):
        import subprocess
        import sys

        code = (
            "import sys; from airflow_chronon.catalogs.build import build_catalog\n"
            "from airflow_chronon.engine.build import build_runner\n"
            "build_runner({'kind': 'local'}, default_root=sys.argv[1])\n"
            "build_catalog({'kind': 'filesystem', 'root': sys.argv[1]}).list_partitions('t')\n"
            "heavy = {'fsspec', 'pyarrow', 'duckdb', 'sqlglot', 'airflow'} & set(sys.modules); assert not heavy, heavy"
        )
        subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
