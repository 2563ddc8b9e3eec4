"""Confs of one tree that write one table: their tasks take turns (C28), and a table has one grid (C22).

Names are unique within a type only (C26), and the table's name loses their dots, so that two confs may meet in one table. On
different grids their partitions would mix, and no reader could tell what there is: those of one team are then refused, both.
Those of two teams are warned of alone, since nobody's file may take the DAG of another team away (S1).
"""

from __future__ import annotations

from collections.abc import Iterator

from airflow_chronon.core.confs.conf import Conf, schedules_of
from airflow_chronon.core.confs.tree import ConfTree
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.errors import ChrononError, Fault


def shared_table_faults(conf: Conf, tree: ConfTree) -> Iterator[Fault]:
    """What stands against a conf that fills its table by a schedule: another one of its team does, on another grid."""
    rivals = [other for other in _others(conf, tree) if other.meta.team == conf.meta.team]
    if not rivals or not _fills_its_table(conf, tree):
        return
    for other in rivals:
        if not _fills_its_table(other, tree):
            continue
        mine, its = conf.spec.contract, other.spec.contract
        if mine != its:
            problem = f"{other.key} writes the table {conf.table} too, on the grid {its}, and this conf on {mine}"
            yield Fault("C28", "metaData.name", problem, "a table has one grid: rename one of them")


def shared_table_warnings(conf: Conf, tree: ConfTree) -> Iterator[Fault]:
    """Other confs that write the table, or may by hand."""
    others = [str(other.key) for other in _others(conf, tree)]
    if others:
        problem = f"{' and '.join(others)} writes the table {conf.table} too"
        remedy = "rename one of them: they write one after the other, and the later overwrites the earlier"
        yield Fault("C28", "metaData.name", problem, remedy)


def _others(conf: Conf, tree: ConfTree) -> Iterator[Conf]:
    return (other for other in tree.producers.writers(conf.table) if other.key != conf.key)


def _fills_its_table(conf: Conf, tree: ConfTree) -> bool:
    """Whether a schedule of the conf has it fill its own table in this environment."""
    try:
        return conf.runs_in(tree.environment) and Mode.BACKFILL in schedules_of(conf)
    except ChrononError:  # it is rejected itself
        return False
