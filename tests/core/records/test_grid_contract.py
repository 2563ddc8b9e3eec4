"""How a table was partitioned at its first write (C22)."""

from __future__ import annotations

import pytest

from airflow_chronon.core.calendar.instants import HOUR
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionSpec, partition_format
from airflow_chronon.core.records.grid_contract import contract_fault, contract_key

USUAL = "yyyy-MM-dd-HH-mm"


def spec(pattern: str = USUAL, column: str = "ds") -> PartitionSpec:
    return PartitionSpec(PartitionGrid(3 * HOUR, HOUR), partition_format(pattern), column)


def test_a_table_without_a_first_write_takes_any_grid() -> None:
    assert contract_fault(None, spec(), table="ns.x") is None


@pytest.mark.parametrize("same", [spec(), spec("yyyyMMddHH"), spec(column="hr")])
def test_the_same_partitioning_is_no_change(same: PartitionSpec) -> None:
    assert contract_fault(same.contract, same, table="ns.x") is None


@pytest.mark.parametrize("kept", ["1d", "3h", "3h@2h"])
def test_another_interval_or_offset_is_refused_with_both_grids_and_the_remedy(kept: str) -> None:
    fault = contract_fault(kept, spec(), table="ns.x")
    assert fault is not None
    assert fault.rule == "C22"
    text = str(fault)
    assert f"on the grid {kept}," in text
    assert "3h@1h" in text
    assert "Bump its version" in text


@pytest.mark.parametrize(
    ("now", "named"),
    [
        pytest.param(spec("yyyyMMddHH"), "3h@1h, format yyyyMMddHH", id="another format"),
        pytest.param(spec(column="hr"), "3h@1h, column hr", id="another column"),
    ],
)
def test_another_format_or_column_is_a_change_in_both_directions(now: PartitionSpec, named: str) -> None:
    for kept, later in ((spec(), now), (now, spec())):
        fault = contract_fault(kept.contract, later, table="ns.x")
        assert fault is not None and named in fault.message


def test_every_dag_has_a_contract_of_its_own() -> None:
    assert contract_key("main.x") != contract_key("branch--main.x")
