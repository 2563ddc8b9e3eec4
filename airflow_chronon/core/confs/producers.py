"""Which conf writes a table (C15)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from airflow_chronon.core.confs.conf import Conf, ConfKey
from airflow_chronon.core.confs.documents import MetaData

_SUFFIXES = ("", "__derived", "__upload")
_VERSION = re.compile(r"__[0-9]+$")
_QUOTES = str.maketrans("", "", "`\"'")


def unquoted(table: str) -> str:
    """The name of a table, which may be written in backticks or other quotes."""
    return table.translate(_QUOTES)


@dataclass(frozen=True)
class Producer:
    """The conf that writes a table."""

    conf: Conf
    table: str  #: the table's real full name
    by_placeholder: bool = False  #: linked by bare name, since the reference carries the consumer's own namespace


class ProducerIndex:
    """Every table that the tree writes, ``__derived`` and ``__upload`` included."""

    def __init__(self, confs: Iterable[Conf]) -> None:
        self._by_table: dict[str, list[Conf]] = defaultdict(list)
        self._by_bare_name: dict[str, list[tuple[Conf, str]]] = defaultdict(list)
        self._written: dict[str, set[str]] = defaultdict(set)
        for conf in confs:
            own = conf.table
            self._written[own.removesuffix(f"__{conf.version}")].add(own)
            for suffix in _SUFFIXES:
                table = own + suffix
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
