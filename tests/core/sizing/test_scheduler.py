"""The simulated scheduler against what can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_chronon.core.sizing.figures import FIGURES
from airflow_chronon.core.sizing.scheduler import Scheduler, simulate

#: Ten milliseconds a look, a tenth of a second a loop: easy to reckon with.
PLAIN = replace(FIGURES, loop=0.1, look_at_known=0.01, look_at_forgotten=0.02, look_at_versioned=0.005, cache=512)


def scheduler(runs_per_loop: int, **more: object) -> Scheduler:
    return Scheduler(runs_per_loop=runs_per_loop, **{"passes_over": False, **more})  # type: ignore[arg-type]


def test_without_runs_a_loop_costs_what_it_costs() -> None:
    found = simulate(scheduler(20), waiting=0, figures=PLAIN)
    assert found.cores == pytest.approx(0.1 / 1.1, rel=0.01)
    assert (found.middle, found.longest, found.replays_starve) == (0.0, 0.0, False)


def test_runs_that_wait_cost_a_look_each_loop() -> None:
    found = simulate(scheduler(50), waiting=200, ends_a_minute=0.01, figures=PLAIN)
    assert found.cores == pytest.approx(0.6 / 1.6, rel=0.01)


def test_a_run_that_is_ready_waits_for_its_turn_and_no_longer() -> None:
    found = simulate(scheduler(50), waiting=200, ends_a_minute=4, figures=PLAIN)
    turns = 200 / 50
    assert found.longest <= (turns + 1) * 1.6
    assert 0.3 * turns * 1.6 <= found.middle <= turns * 1.6


def test_processor_and_patience_can_only_be_exchanged() -> None:
    """Half the runs a loop: half the looks a second, twice the wait."""
    few, many = (simulate(scheduler(count), waiting=400, ends_a_minute=2, figures=PLAIN) for count in (50, 200))
    assert few.cores < many.cores and few.longest > many.longest


def test_a_cache_that_is_too_small_makes_each_look_dearer_and_a_versioned_bundle_cheaper() -> None:
    within, beyond = (
        simulate(scheduler(100), waiting=count, ends_a_minute=0.01, figures=PLAIN) for count in (512, 513)
    )
    assert within.cores == pytest.approx(1.1 / 2.1, rel=0.01) and beyond.cores == pytest.approx(2.1 / 3.1, rel=0.01)
    versioned = simulate(scheduler(100, is_versioned=True), waiting=500, ends_a_minute=0.01, figures=PLAIN)
    assert versioned.cores == pytest.approx(0.6 / 1.6, rel=0.01)


def test_passing_over_makes_the_next_loop_see_what_is_ready() -> None:
    found = simulate(scheduler(100, passes_over=True), waiting=1000, ends_a_minute=10, figures=PLAIN)
    assert found.longest <= 1.5 and not found.replays_starve
    assert found.cores < simulate(scheduler(1200), waiting=1000, ends_a_minute=10, figures=PLAIN).cores / 2


@pytest.mark.parametrize(("runs_per_loop", "starve"), [(20, True), (100, True), (101, False)])
def test_replays_starve_while_as_many_runs_wait_as_a_loop_takes(runs_per_loop: int, starve: bool) -> None:
    assert simulate(scheduler(runs_per_loop), waiting=100, figures=PLAIN).replays_starve is starve
