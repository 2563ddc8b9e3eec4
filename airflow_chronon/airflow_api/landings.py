"""Saying of partitions that they are there, or never will be, through Airflow's API and with the caller's own rights."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from airflow_chronon.airflow_api.errors import AirflowError
from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.core.confs.conf import asset_uri
from airflow_chronon.core.waits.said import SAID_ASSET, Said, Word, partition_key, table_key
from airflow_chronon.errors import ChrononError, Fault

MOST = 500  #: partitions at once


class NotKept(AirflowError):
    """Airflow keeps nothing of the kind: no DAG of this package has been loaded there."""


def say(server: AirflowServer, table: str, labels: Sequence[str], word: Word, *, namespace_prefix: str = "") -> bool:
    """Keep a word of each partition; of those that are there, the table's asset gets an event, as from a run.

    Returns whether events were added: a table that no DAG there reads or writes has no asset. Raises ``ChrononError``.
    """
    _check(table, labels)
    for label in labels:
        if not server.keep_asset_state(SAID_ASSET, partition_key(table, label), word.to_json()):
            problem = f"Airflow does not know the asset {SAID_ASSET}, which keeps what is said of partitions"
            raise NotKept(Fault("C16", "", problem, "is a loader file with a good conf in its dags folder?"))
    server.keep_asset_state(SAID_ASSET, table_key(table), secrets.token_hex(8))
    if word.said is not Said.LANDED:
        return False
    uri = asset_uri(table, namespace_prefix=namespace_prefix)
    return all(server.add_asset_event(uri, label, {"said": "landed"}) for label in labels)


def take_back(server: AirflowServer, table: str, labels: Sequence[str]) -> None:
    """Forget what was said of partitions. Events that were added stay. Raises ``ChrononError``."""
    _check(table, labels)
    for label in labels:
        server.drop_asset_state(SAID_ASSET, partition_key(table, label))
    server.keep_asset_state(SAID_ASSET, table_key(table), secrets.token_hex(8))


def _check(table: str, labels: Sequence[str]) -> None:
    if not table or not table.isprintable() or any(sign in table for sign in " /\\"):
        raise ChrononError(Fault("input", "TABLE", f"{table!r} is not the name of a table", "write namespace.table"))
    bad = [label for label in labels if not label.strip() or not label.isprintable() or len(label) > 200]
    if bad or not labels:
        problem = f"{bad[0]!r} is not a label" if bad else "no label is given"
        raise ChrononError(Fault("input", "LABEL", problem, "write it as the table's partition has it, 2026-06-01"))
    if len(labels) > MOST:
        problem = f"these are {len(labels)} partitions, and at most {MOST} are said at once"
        raise ChrononError(Fault("S7", "LABEL", problem, "say them in pieces"))
