"""Who writes the tables that a conf reads: the modes of this tree's confs, each with its DAG and its schedule (C30)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from airflow_chronon.core.confs.conf import Conf, ConfKey
from airflow_chronon.core.confs.cycles import cyclic_part
from airflow_chronon.core.confs.tree import ConfTree
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.partitioned import PartitionedSchedule
from airflow_chronon.core.waits.outlook import TableWriter

Writers = Mapping[str, tuple[TableWriter, ...]]


class WriterIndex:
    """The writers of every table of a tree.

    ``schedules`` are those of the confs that are good to run; another conf that writes a table is one of which nobody can
    tell what it will write. ``reads`` holds whom each conf reads.
    """

    def __init__(
        self,
        tree: ConfTree,
        schedules: Mapping[ConfKey, PartitionedSchedule],
        reads: Mapping[ConfKey, Iterable[ConfKey]],
        *,
        dag_id_of: Callable[[Conf], str],
    ) -> None:
        self._tree, self._schedules, self._dag_id_of = tree, schedules, dag_id_of
        self._reads = cyclic_part(reads)

    def of_tables(self, tables: Iterable[str], *, reader: ConfKey) -> Writers:
        """The writers of those of the tables that the tree writes."""
        found = {table: self._of_table(table, reader) for table in dict.fromkeys(tables)}
        return {table: writers for table, writers in found.items() if writers}

    def _of_table(self, table: str, reader: ConfKey) -> tuple[TableWriter, ...]:
        return tuple(
            TableWriter(
                self._dag_id_of(conf),
                Mode.UPLOAD if table == conf.upload_table else Mode.BACKFILL,
                self._schedules.get(conf.key),
                is_in_a_cycle=self._reaches(conf.key, reader),
            )
            for conf in self._tree.producers.writers(table)
        )

    def _reaches(self, start: ConfKey, goal: ConfKey) -> bool:
        """Whether a conf reads, at first hand or through others, what one of its readers writes; each reads itself."""
        seen, waiting = {start}, [start]
        while waiting:
            key = waiting.pop()
            if key == goal:
                return True
            for producer in self._reads.get(key, ()):
                if producer not in seen:
                    seen.add(producer)
                    waiting.append(producer)
        return False
