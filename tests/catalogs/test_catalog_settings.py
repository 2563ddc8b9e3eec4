"""The setting ``catalog``."""

from __future__ import annotations

import pytest

from airflow_chronon.catalogs.build import CLASSES, build_catalog
from airflow_chronon.catalogs.filesystem import FilesystemCatalog
from airflow_chronon.core.partitions.listing import LandedWhen
from airflow_chronon.core.settings.catalogs import CATALOGS
from airflow_chronon.errors import Rejected


def test_a_filesystem_catalog_is_built_from_its_settings():
    settings = {"kind": "filesystem", "root": "s3://b/w", "landed": "success_file", "storage_options": {"anon": True}}
    assert build_catalog(settings) == FilesystemCatalog(
        "s3://b/w", landed=LandedWhen.SUCCESS_FILE, storage_options={"anon": True}
    )


def test_any_file_is_the_default():
    assert build_catalog({"kind": "filesystem", "root": "w"}) == FilesystemCatalog("w", landed=LandedWhen.ANY_FILE)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "catalog.kind: the catalog kind None is not known .settings.. Use filesystem"),
        ({"kind": "hive"}, "catalog.kind: the catalog kind 'hive' is not known .settings.. Use filesystem"),
        (
            {"kind": "filesystem", "root": "w", "lnded": 1},
            r"catalog.lnded: unknown key 'lnded' .* Did you mean landed\? "
            "Allowed are expression_memory, expression_timeout, kind, landed, root, storage_options",
        ),
        (
            {"kind": "filesystem", "root": "w", "landed": "maybe"},
            "catalog.landed: 'maybe' is not allowed .* Write 'any_file' or 'success_file'",
        ),
        ({"kind": "filesystem"}, "catalog.root: the key 'root' is missing"),
        ({"kind": "filesystem", "root": " "}, "catalog.root: ' ' is not a root .* s3://bucket/warehouse"),
        (
            {"kind": "filesystem", "root": "w", "storage_options": 3},
            "catalog.storage_options: this value is not allowed .* keys and values",
        ),
    ],
)
def test_what_is_not_known_is_refused_with_what_is_allowed(settings, message):
    with pytest.raises(Rejected, match=message):
        build_catalog(settings)


@pytest.mark.parametrize(
    ("root", "filled", "place"),
    [
        ("${LAKE}/warehouse", "/secret/lake", "${LAKE}/warehouse/t"),
        ("s3://${KEY}@bucket/a", "me:hush-hush", "s3://bucket/a/t"),
    ],
)
def test_a_table_s_place_holds_nothing_that_was_filled_in(root: str, filled: str, place: str) -> None:  # S4
    name = root.partition("{")[2].partition("}")[0]
    assert build_catalog({"kind": "filesystem", "root": root}, {name: filled}).place_of("t") == place


def test_an_address_that_was_filled_in_is_not_told() -> None:  # S4
    catalog = build_catalog({"kind": "filesystem", "root": "${ROOT}"}, {"ROOT": "s3://me:hush@hidden-bucket/a"})
    assert "hidden-bucket" not in catalog.place_of("t") and "${ROOT}" in catalog.place_of("t")


def test_every_fault_is_said_at_once():
    with pytest.raises(Rejected) as caught:
        build_catalog({"kind": "filesystem", "landed": 1, "x": 2})
    assert [fault.field for fault in caught.value.faults] == ["catalog.root", "catalog.landed", "catalog.x"]


def test_every_kind_of_settings_has_its_catalog():
    assert set(CLASSES) == set(CATALOGS)
