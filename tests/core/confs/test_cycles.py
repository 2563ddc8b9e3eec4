"""Cycles among confs, found in one walk however long a chain is (C15, S2)."""

from __future__ import annotations

from airflow_chronon.core.confs.conf import ConfKey
from airflow_chronon.core.confs.cycles import cyclic_part, find_cycles
from airflow_chronon.core.confs.documents import ConfType


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
