"""Optional packages, imported only when they are needed: one error that names the extra when one is missing."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from airflow_chronon.errors import CatalogError, Fault

#: The extra that brings each module.
_EXTRAS = {
    "duckdb": "local",
    "sqlglot": "local",
    "sqlglot.optimizer.scope": "local",
    "fsspec": "filesystem",
    "pyarrow": "filesystem",
    "pyarrow.parquet": "filesystem",
    "pyarrow.compute": "filesystem",
    "deltalake": "delta",
    "deltalake.exceptions": "delta",
    "pyiceberg.catalog": "iceberg",
    "pyiceberg.exceptions": "iceberg",
}


class MissingExtra(CatalogError):
    """A package that an optional extra brings is not installed."""


def missing_extra(*, package: str, extra: str, needed_for: str, rule: str = "catalog") -> MissingExtra:
    """The error for a package that is not there, naming the extra that brings it."""
    message = f"{needed_for} needs the package {package!r}, which is not installed"
    return MissingExtra(Fault(rule, "", message, f"run: pip install 'airflow-chronon[{extra}]'"))


def optional(module: str, *, needed_for: str, extra: str | None = None) -> ModuleType:
    """Import a module of an optional extra. Raises :class:`MissingExtra` when it is not installed.

    ``extra`` is the one to name then, where another brings more of what is needed than the module alone.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise missing_extra(package=package, extra=extra or _EXTRAS[module], needed_for=needed_for) from error
