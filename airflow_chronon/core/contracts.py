"""The grid that a conf version's table was first written on: it holds for ever (C22)."""

from __future__ import annotations

from airflow_chronon.core.grid import PartitionGrid
from airflow_chronon.errors import Fault


def contract_key(dag_id: str) -> str:
    """The key of a DAG's grid in the asset state store: state is per asset, and two DAGs may share an asset."""
    return f"grid:{dag_id}"


def contract_fault(kept: object, grid: PartitionGrid, *, table: str) -> Fault | None:
    """What C22 has against writing a table on ``grid`` that was begun on ``kept``, a grid's text; None: they agree.

    Nothing kept is no contract yet. Deleting and re-creating the conf does not lift it, since the table is still there.
    """
    if kept is None or kept == str(grid):
        return None
    problem = f"{table} was begun on the grid {kept}, and the conf is now on {grid}: nothing is written"
    return Fault("C22", "outputTableInfo", problem, "bump its version, or bring the old grid back")
