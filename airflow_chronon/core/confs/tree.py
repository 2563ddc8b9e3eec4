"""The confs of one deployed tree, and which of them writes a table (C15)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from airflow_chronon.core.confs.conf import Conf, ConfKey, output_spec
from airflow_chronon.core.confs.documents import ConfType, GroupBy, MetaData
from airflow_chronon.core.partitions.labels import PartitionSpec
from airflow_chronon.core.settings.model import Environment

_ORDER = {ConfType.GROUP_BY: 0, ConfType.JOIN: 1, ConfType.STAGING_QUERY: 2}
_VERSION = re.compile(r"__[0-9]+$")


@dataclass(frozen=True)
class Producer:
    """The conf that writes a table."""

    conf: Conf
    table: str  #: the table's real full name
    by_placeholder: bool = False  #: linked by bare name, since the reference carries the consumer's own namespace


class ProducerIndex:
    """Every table that the tree writes, ``__derived`` and upload tables included."""

    def __init__(self, confs: Iterable[Conf]) -> None:
        self._by_table: dict[str, list[Conf]] = defaultdict(list)
        self._by_bare_name: dict[str, list[tuple[Conf, str]]] = defaultdict(list)
        self._written: dict[str, set[str]] = defaultdict(set)
        for conf in confs:
            own = conf.table
            self._written[own.removesuffix(f"__{conf.version}")].add(own)
            for table in (own, f"{own}__derived", conf.upload_table):
                self._by_table[table].append(conf)
                self._by_bare_name[table.rpartition(".")[2]].append((conf, table))

    def writers(self, table: str) -> tuple[Conf, ...]:
        """Every conf that writes this very table."""
        return tuple(self._by_table.get(table, ()))

    def lookalikes(self, table: str) -> tuple[str, ...]:
        """The written tables from which one that nobody writes differs only in its version or in ``__derived``; else none.

        A Join writes ``__derived`` only where it derives something, and no other conf does.
        """
        main = table.removesuffix("__derived")
        writers = self._by_table.get(main, ())
        if writers:
            is_written = main == table or any(conf.derives for conf in writers)
            return () if is_written else (main,)
        if table in self._by_table:
            return ()
        return tuple(sorted(self._written.get(_VERSION.sub("", main), ())))

    def find(self, table: str, *, consumer: ConfKey, owner: MetaData) -> Producer | None:
        """The producer of a referenced table, without its sub-partitions.

        By full name; else, when the namespace is ``owner``'s own (the compiler's placeholder for another team's table), by
        bare name if exactly one conf other than ``consumer`` has it.
        """
        if writers := self._by_table.get(table):
            return Producer(writers[0], table)
        namespace, _, bare = table.rpartition(".")
        if not namespace or namespace != owner.output_namespace:
            return None
        hits = [(conf, real) for conf, real in self._by_bare_name.get(bare, ()) if conf.key != consumer]
        return Producer(hits[0][0], hits[0][1], by_placeholder=True) if len(hits) == 1 else None


class ConfTree:
    """Every readable conf, in an order that does not depend on the disk."""

    def __init__(self, confs: Iterable[Conf], *, environment: Environment = Environment.PROD) -> None:
        ordered = sorted(confs, key=lambda conf: (_ORDER[conf.key.conf_type], conf.file))
        self.confs: Mapping[ConfKey, Conf] = {conf.key: conf for conf in ordered}
        self.environment = environment

    @cached_property
    def producers(self) -> ProducerIndex:
        return ProducerIndex(self.confs.values())

    def part_spec(self, group_by: GroupBy) -> PartitionSpec:
        """The output of a join's right part: the tree's own GroupBy, else the copy inside the join. Raises ``ChrononError``."""
        conf = self.confs.get(ConfKey(ConfType.GROUP_BY, group_by.meta_data.name))
        return conf.spec if conf is not None else output_spec(group_by.meta_data)
