"""Cycles among confs, found in one walk however long a chain is (C15, S2)."""

from __future__ import annotations

import pytest

from airflow_chronon.core.confs.conf import ConfKey
from airflow_chronon.core.confs.cycles import cyclic_part, find_cycles
from airflow_chronon.core.confs.documents import ConfType
from airflow_chronon.core.confs.plan import RejectedConf
from tests.support.confs import Document, dependency, entities, events, faults_of, group_by, join, judge, staging_query


def key(name: object) -> ConfKey:
    return ConfKey(ConfType.STAGING_QUERY, str(name))


def test_what_only_leads_to_or_from_a_cycle_is_on_none() -> None:  # C15
    reads = {key("before"): [key("a")], key("a"): [key("b")], key("b"): [key("a"), key("after")], key("after"): []}
    assert find_cycles(reads) == {key("a"): (key("a"), key("b")), key("b"): (key("b"), key("a"))}


def test_a_conf_that_reads_itself_is_a_cycle_and_one_that_nobody_knows_is_none() -> None:  # C15
    assert find_cycles({key("a"): [key("a")], key("b"): [key("elsewhere")]}) == {key("a"): (key("a"),)}


def test_a_chain_has_no_part_that_must_be_searched() -> None:  # S2
    chain = {key(number): [key(number + 1), key(number + 2)] for number in range(5_000)}
    assert cyclic_part(chain) == {}


def test_between_two_cycles_only_those_on_one_are_named() -> None:  # C15
    reads = {key("a"): [key("a"), key("between")], key("between"): [key("b")], key("b"): [key("b")]}
    assert set(find_cycles(reads)) == {key("a"), key("b")}


class TestCycles:  # C15
    @staticmethod
    def chain(*edges: tuple[str, str, str]) -> list[Document]:
        """Daily staging queries: (reader, producer, endOffset)."""
        names = sorted({name for reader, producer, _ in edges for name in (reader, producer)})
        return [
            staging_query(
                f"t.s.{name}",
                dependencies=[dependency(f"ns.t_s_{p}", end=end, start=end) for r, p, end in edges if r == name],
            )
            for name in names
        ]

    @staticmethod
    def on_a_cycle(*documents: Document) -> set[str]:
        verdicts = judge(*documents)
        return {
            key for key, v in verdicts.items() if isinstance(v, RejectedConf) and {f.rule for f in v.faults} == {"C15"}
        }

    def test_a_cycle_is_named_from_every_conf_on_it(self) -> None:
        confs = self.chain(("a", "b", "0d"), ("b", "c", "0d"), ("c", "a", "0d"), ("d", "a", "0d"))
        assert self.on_a_cycle(*confs) == {"staging_query/t.s.a", "staging_query/t.s.b", "staging_query/t.s.c"}
        (fault,) = faults_of(confs[1], confs[0], *confs[2:])
        path = " reads ".join(f"staging_query/t.s.{name}" for name in "bcab")
        assert path in fault.message

    def test_a_wait_that_looks_back_opens_the_cycle(self) -> None:
        assert self.on_a_cycle(*self.chain(("a", "b", "0d"), ("b", "a", "1d"))) == set()

    def test_a_conf_that_reads_its_own_earlier_partitions_is_fine(self) -> None:
        assert self.on_a_cycle(*self.chain(("a", "a", "1d"))) == set()

    @pytest.mark.parametrize("lag", ["0d", "6h", "-1d"])
    def test_a_conf_that_reads_its_own_partition_is_a_cycle(self, lag: str) -> None:
        # a lag of less than one partition still touches the partition that is being written
        assert self.on_a_cycle(*self.chain(("a", "a", lag))) == {"staging_query/t.s.a"}

    def test_mutation_tables_are_edges(self) -> None:
        reader = group_by("t.g.a", sources=[entities(mutations="ns.t_s_b")])
        assert self.on_a_cycle(reader, staging_query("t.s.b", dependencies=[dependency("ns.t_g_a")])) == {
            "group_by/t.g.a",
            "staging_query/t.s.b",
        }

    @pytest.mark.parametrize("lag", ["0d", "1d"])
    def test_bootstrap_tables_are_edges(self, lag: str) -> None:
        bootstrap = {"table": "ns.t_s_b", "query": {"partitionLag": {"length": int(lag[0]), "timeUnit": 1}}}
        reader = join("t.j.a", bootstraps=[bootstrap])
        found = self.on_a_cycle(reader, staging_query("t.s.b", dependencies=[dependency("ns.t_j_a")]))
        assert found == ({"join/t.j.a", "staging_query/t.s.b"} if lag == "0d" else set())

    def test_join_sources_are_edges(self) -> None:
        inner = join("t.j.inner", parts=[group_by("t.g.outer", sources=[events(topic="kafka://t")], accuracy=0)])
        outer = group_by("t.g.outer", sources=[{"joinSource": {"join": inner}}])
        inner_reads_outer = join("t.j.inner", left=events("ns.t_g_outer"))
        assert self.on_a_cycle(outer, inner_reads_outer) == {"group_by/t.g.outer", "join/t.j.inner"}

    def test_a_snapshot_part_looks_back_by_its_own_length(self) -> None:
        def part(of: Document) -> list[Document]:
            return [group_by("t.g.part", sources=[events("ns.t_j_a")], accuracy=1, **of)]

        assert self.on_a_cycle(join("t.j.a", parts=part({"schedule": "@daily"}))) == set()
        # an hourly snapshot taken during the day would need the day that is being written
        assert self.on_a_cycle(join("t.j.a", parts=part({"schedule": "0 * * * *"}))) == {"join/t.j.a"}

    def test_a_temporal_part_does_not_look_back(self) -> None:
        part = group_by("t.g.part", sources=[events("ns.t_j_a", topic="kafka://t")])
        assert self.on_a_cycle(join("t.j.a", parts=[part])) == {"join/t.j.a"}
