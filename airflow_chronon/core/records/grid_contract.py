"""The grid contract: the table of a conf version stays on the grid that it was first written on (C22)."""

from __future__ import annotations

from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.errors import Fault

#: The asset whose state holds every contract. Airflow drops the state of an asset that no DAG refers to any more, so
#: it cannot be the table's own: that one is orphaned when its DAG is deleted, and the contract has to outlive it. No
#: table can have this name.
CONTRACTS_ASSET = "chronon://airflow-chronon/grid-contracts"


def contract_key(dag_id: str) -> str:
    """The key of a DAG's grid in the state of :data:`CONTRACTS_ASSET`."""
    return f"grid:{dag_id}"


def contract_fault(kept: object, grid: PartitionGrid, *, table: str) -> Fault | None:
    """A fault if ``kept``, the text of the grid that a table was first written on, differs from ``grid``; else None.

    Without ``kept`` there is no contract yet. Deleting and re-creating the conf does not lift it, since the table is still
    there.
    """
    if kept is None or kept == str(grid):
        return None
    problem = f"{table} was begun on the grid {kept}, and the conf is now on {grid}: nothing is written"
    return Fault("C22", "outputTableInfo", problem, "bump its version, or bring the old grid back")
