"""From the setting ``catalog`` to a catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from airflow_chronon.catalogs.filesystem import FilesystemCatalog
from airflow_chronon.core.settings.catalogs import CATALOGS
from airflow_chronon.core.waits.catalog import PartitionCatalog

#: The class of every kind of catalog in :data:`airflow_chronon.core.settings.catalogs.CATALOGS`.
CLASSES: Mapping[str, Callable[..., PartitionCatalog]] = {"filesystem": FilesystemCatalog}


def build_catalog(settings: Mapping[str, object]) -> PartitionCatalog:
    """The catalog that a section describes, filled in; nothing is opened yet.

    Raises :class:`airflow_chronon.errors.Rejected` with every unknown kind, key or value and what is allowed.
    """
    found = CATALOGS.read(settings)
    return CLASSES[found.kind](**found.arguments)
