"""What a deployment of a conf root still needs: a connection, packages, and the tables that others land."""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec

from airflow_chronon.airflow_api.login import CONNECTION_ID, ENVIRONMENT_VARIABLE, find_login, no_connection
from airflow_chronon.catalogs.build import build_catalog
from airflow_chronon.core.confs.plan import Plan
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.partitions.listing import TableState
from airflow_chronon.core.settings.variables import filled
from airflow_chronon.errors import ChrononError, Fault
from airflow_chronon.storage.files import driver_of

_LOCAL_ADDRESS = "http://127.0.0.1:8080"  #: where Airflow's API is unless its configuration says otherwise
_ENGINE = ("duckdb", "sqlglot")  #: what the embedded engine imports
_CATALOGS = {
    "iceberg": ("pyiceberg", "iceberg"),
    "delta": ("deltalake", "delta"),
}  #: by the kind of a catalog: what it imports, and the extra that brings it
_SHOWN = 3  #: confs that a message names


def what_is_missing(plans: Iterable[Plan], options: argparse.Namespace) -> list[Fault]:
    """What keeps plans from running, as far as it can be told from here, without asking an Airflow or an object store."""
    found = list(plans)
    return [*_connection(options), *_connections(found), *_packages(found), *_tables(found)]


def _connection(options: argparse.Namespace) -> Iterator[Fault]:
    if find_login(os.environ, or_ask=options.ask_airflow) is not None:
        return
    missing = no_connection(options.api_address or _LOCAL_ADDRESS).fault
    problem = missing.message
    if options.ask_airflow is None:
        problem = f"{ENVIRONMENT_VARIABLE} is not set, and nobody asked Airflow whether it has this connection"
    yield Fault("connection", CONNECTION_ID, problem, missing.remedy)


def _connections(plans: Sequence[Plan]) -> Iterator[Fault]:
    """The connections that catalogs name and that are not in the environment, each once."""
    named = {str(section["connection"]) for plan in plans for section in _catalogs(plan) if section.get("connection")}
    for connection_id in sorted(named):
        if not os.environ.get(variable := f"AIRFLOW_CONN_{connection_id.upper()}"):
            problem = (
                f"a catalog names it, {variable} is not set, and nobody asked Airflow whether it has this connection"
            )
            yield Fault("connection", connection_id, problem, "make it in Airflow, where nobody has")


def _packages(plans: Sequence[Plan]) -> Iterator[Fault]:
    """The packages that the settings of plans want and that are not installed here, each once."""
    wanted: dict[tuple[str, str], str] = {}
    for plan in plans:
        if plan.settings.runner.model_dump().get("kind") == "local":
            wanted |= {(module, "local"): "the embedded engine" for module in _ENGINE}
        for section in _catalogs(plan):
            needed = _CATALOGS.get(str(section.get("kind"))) or driver_of(_root_of(section))
            if needed is not None:
                wanted[needed] = "the catalog"
    for (module, extra), needed_for in wanted.items():
        if find_spec(module) is None:
            problem = f"{needed_for} needs the package {module!r}, which is not installed here"
            yield Fault("extra", extra, problem, f"run: pip install 'airflow-chronon[{extra}]'")


def _catalogs(plan: Plan) -> Iterator[Mapping[str, object]]:
    """The sections of all catalogs of a plan."""
    catalog = plan.settings.catalog
    yield from (catalog.default, *map(catalog.of_entry, catalog.tables))


def _tables(plans: Sequence[Plan]) -> Iterator[Fault]:
    """The tables that no conf of the tree writes and of which their catalog has nothing."""
    readers: dict[str, dict[str, ConfPlan]] = defaultdict(dict)
    for plan in plans:
        if isinstance(plan, ConfPlan):
            read = {each.table for found in plan.dependencies.values() for each in found}
            for table in read - set(plan.writers):
                readers[table][plan.key] = plan
    for table, by_key in sorted(readers.items()):
        if (lacking := _lacking(table, next(iter(by_key.values())))) is not None:
            more = f" and {len(by_key) - _SHOWN} more" if len(by_key) > _SHOWN else ""
            problem = f"no conf here writes it, {lacking}, and it is read by {', '.join([*by_key][:_SHOWN])}{more}"
            yield Fault("catalog", table, problem, f"see that somebody lands it; airflow-chronon catalog {table} looks")


def _lacking(table: str, plan: ConfPlan) -> str | None:
    """What is lacking of a table; None where there is nothing to say. Only folders of this machine are looked into."""
    section = plan.settings.catalog.of_table(table)
    if section.get("kind") != "filesystem" or driver_of(_root_of(section)) is not None:
        return "its catalog was not asked"
    try:
        catalog = build_catalog(section, os.environ)
        place, listing = catalog.place_of(table), catalog.list_partitions(table)
    except ChrononError as error:
        return f"its catalog cannot tell what is there ({error.fault.message})"
    return f"there is no {place}" if listing.state is TableState.MISSING else None


def _root_of(section: Mapping[str, object]) -> str:
    """The root of a catalog, filled in; empty where it has none."""
    return str(filled(section.get("root"), os.environ) or "")
