"""From the setting ``catalog`` to a catalog; strict about every key."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from airflow_chronon.catalogs.filesystem import FilesystemCatalog
from airflow_chronon.core.waits.catalog import PartitionCatalog
from airflow_chronon.errors import Fault, Rejected
from airflow_chronon.storage.layout import LandedWhen


def _filesystem(settings: Mapping[str, object]) -> PartitionCatalog:
    faults = _unknown_keys(settings, allowed=("root", "landed", "storage_options"))
    root = settings.get("root")
    if not isinstance(root, str) or not root.strip():
        faults.append(_fault("root", f"{root!r} is no root", "give a path, or a URL such as s3://bucket/warehouse"))
    landed = settings.get("landed", LandedWhen.ANY_FILE.value)
    names = [member.value for member in LandedWhen]
    if landed not in names:
        faults.append(_fault("landed", f"{landed!r} is not known", f"use {' or '.join(names)}"))
    options = settings.get("storage_options")
    if options is not None and not isinstance(options, Mapping):
        faults.append(
            _fault("storage_options", f"{options!r} is no mapping", "give the options of the fsspec filesystem by name")
        )
    if faults:
        raise Rejected(faults)
    return FilesystemCatalog(
        str(root), landed=LandedWhen(landed), storage_options=options if isinstance(options, Mapping) else {}
    )


#: Every kind of catalog and what builds it from its settings.
_KINDS: dict[str, Callable[[Mapping[str, object]], PartitionCatalog]] = {"filesystem": _filesystem}


def build_catalog(settings: Mapping[str, object]) -> PartitionCatalog:
    """The catalog that the settings describe; nothing is opened yet.

    Raises :class:`airflow_chronon.errors.Rejected` with every unknown kind, key or value and what is allowed.
    """
    kind = settings.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise Rejected([_fault("kind", f"the catalog kind {kind!r} is not known", f"use {' or '.join(_KINDS)}")])
    return _KINDS[kind](settings)


def _unknown_keys(settings: Mapping[str, object], *, allowed: tuple[str, ...]) -> list[Fault]:
    unknown = [key for key in settings if key not in ("kind", *allowed)]
    return [
        _fault(str(key), f"the key {key!r} is not known", f"allowed are kind, {', '.join(allowed)}") for key in unknown
    ]


def _fault(key: str, message: str, remedy: str) -> Fault:
    return Fault("settings", f"catalog.{key}", message, remedy)
