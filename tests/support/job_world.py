"""One hourly job in the world of the reconciler: its record, its runs, time that passes."""

from __future__ import annotations

from airflow_chronon.airflow_api.records import RunRecord
from airflow_chronon.core.calendar.instants import HOUR, iso
from airflow_chronon.core.records.record import DeploymentRecord
from tests.support.world import World, job

ID = "job.etl.hourly"


def entry(world: World, dag_id: str = ID) -> DeploymentRecord:
    return world.records()[dag_id]


def ran(world: World, fire: int, *, dag_id: str = ID, kind: str = "scheduled", state: str = "success") -> None:
    """The run of an hourly fire."""
    start = fire - HOUR
    world.airflow.run_records.append(
        RunRecord(dag_id, f"{kind}__{iso(start)}", kind, state, iso(start), start, run_after=fire)
    )


def later(world: World, seconds: int, *confs: object, **settings: object) -> None:
    """Time passes, and the tree changes."""
    world.now += seconds
    if confs:
        world.deploy(*confs, **settings)  # type: ignore[arg-type]
    world.parse()
    world.reconcile()


def deployed(**schedule: object) -> World:
    world = World()
    world.deploy(job(**schedule))  # type: ignore[arg-type]
    world.converge()
    return world
