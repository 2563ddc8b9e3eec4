"""``land``: say of partitions that they are there, or never will be, so that nobody waits for them."""

from __future__ import annotations

import argparse
import getpass
import time

from airflow_chronon.airflow_api.landings import say, take_back
from airflow_chronon.cli.options import FORMAT, Command, option
from airflow_chronon.cli.output import GOOD, show
from airflow_chronon.cli.server import AIRFLOW, need_server
from airflow_chronon.core.calendar.instants import iso
from airflow_chronon.core.describe.format import counted
from airflow_chronon.core.waits.said import Said, Word
from airflow_chronon.errors import ChrononError, Fault


def land(options: argparse.Namespace) -> int:
    """Keep it in Airflow, with the rights of the connection's user; waits hear of it at their next poll."""
    if options.never and options.undo:
        problem = "one says something of the partitions, and the other takes it back"
        raise ChrononError(Fault("input", "--never and --undo", problem, "give one of them"))
    server, table, labels = need_server(options), options.table, list(dict.fromkeys(options.labels))
    has_events = False
    if options.undo:
        take_back(server, table, labels)
        done = "nothing is said any more of"
    else:
        said = Said.NEVER if options.never else Said.LANDED
        word = Word(said, iso(int(time.time())), options.by or _user())
        has_events = say(server, table, labels, word)
        done = "absent on purpose" if options.never else "there, by your word"
    event = ", with an event of its asset for each" if has_events else ""
    show(
        options,
        text=lambda: f"{table}: {done}: {counted(len(labels), 'partition')}{event}: {', '.join(labels)}",
        value=lambda: {
            "table": table,
            "labels": labels,
            "said": None if options.undo else said.value,
            "events": has_events,
        },
    )
    return GOOD


LAND = Command(
    "land",
    "say of partitions of a table that they are there, or with --never that they never will be: waits on them end",
    (
        option("table", metavar="TABLE", help="its full name, such as vendor.prices"),
        option("labels", nargs="+", metavar="LABEL", help="a partition as the table names it, such as 2026-06-01"),
        option("--never", action="store_true", help="they are absent on purpose: waits pass, and say so"),
        option("--undo", action="store_true", help="take back what was said of them"),
        option("--by", metavar="NAME", help="who says so; your user name when left out"),
        AIRFLOW,
        FORMAT,
    ),
    land,
)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may have users without a name
        return "somebody"
