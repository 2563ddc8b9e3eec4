"""The grid of a table's first write (C22)."""

from __future__ import annotations

import pytest

from airflow_chronon.core.calendar.instants import HOUR
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.records.grid_contract import contract_fault, contract_key


def test_a_table_without_a_first_write_takes_any_grid() -> None:
    assert contract_fault(None, PartitionGrid(3 * HOUR, HOUR), table="ns.x") is None


def test_the_same_grid_is_no_change() -> None:
    grid = PartitionGrid(3 * HOUR, HOUR)
    assert contract_fault(str(grid), grid, table="ns.x") is None


@pytest.mark.parametrize("kept", ["1d", "3h", "3h@2h"])
def test_another_interval_or_offset_is_refused_with_both_grids_and_the_remedy(kept: str) -> None:
    fault = contract_fault(kept, PartitionGrid(3 * HOUR, HOUR), table="ns.x")
    assert fault is not None
    assert fault.rule == "C22"
    text = str(fault)
    assert f"on the grid {kept}," in text
    assert "3h@1h" in text
    assert "Bump its version" in text


def test_every_dag_has_a_contract_of_its_own() -> None:
    assert contract_key("main.x") != contract_key("branch--main.x")
