"""What the jobs of the kill test tell: a second writer is seen, whoever was killed."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.integration.airflow_client import wait_until
from tests.support.integration.witnessed_jobs import BEAT_SECONDS, Life, Witness, beside_each_other

TABLE = "lab.a"


def works(label: str) -> float:
    """How long the job of a label works, in seconds: as the job itself draws it."""
    return random.Random(f"1 {TABLE} {[label]}").triangular(2, 90, 4)


SHORTEST, *_, OTHER, LONGEST = sorted((f"2026-01-01-00-{minute:02}" for minute in range(60)), key=works)


@pytest.fixture
def witness(tmp_path: Path) -> Witness:
    return Witness(tmp_path / "lab", seed=1)


@pytest.fixture
def start(witness: Witness, tmp_path: Path) -> Callable[[str], subprocess.Popen[bytes]]:
    def begin(label: str) -> subprocess.Popen[bytes]:
        argv = [word.replace("{table}", TABLE) for word in witness.runner["argv"]]
        environment = {**os.environ, "CHRONON_PARTITIONS": label, "CHRONON_WAREHOUSE": str(tmp_path)}
        before = len(witness.lives())
        job = subprocess.Popen(argv, env=environment, stdout=subprocess.DEVNULL)
        wait_until(lambda: len(beats(witness)) > before, timeout=30, why="the job beats", every=0.1)
        return job

    return begin


def beats(witness: Witness) -> list[Life]:
    return [life for life in witness.lives() if life.last - life.began >= BEAT_SECONDS]


def end(job: subprocess.Popen[bytes]) -> None:
    job.kill()
    job.wait()


def test_two_at_one_time_on_one_partition_are_seen(witness: Witness, start: Callable) -> None:  # C28
    first = start(LONGEST)
    second = start(LONGEST)
    end(first)
    end(second)
    [(before, after)] = beside_each_other(witness.lives())
    assert (before.pid, after.pid) == (first.pid, second.pid)
    assert (before.found_another, after.found_another) == (False, True)


def test_one_after_the_other_is_no_fault_and_neither_is_another_partition(witness: Witness, start: Callable) -> None:
    end(start(LONGEST))
    other = start(OTHER)
    again = start(LONGEST)
    end(other)
    end(again)
    lives = witness.lives()
    assert beside_each_other(lives) == []
    assert [(life.found_another, life.ended) for life in lives] == [(False, False)] * 3


def test_a_job_that_comes_to_its_end_has_written_its_partition(
    witness: Witness, start: Callable, tmp_path: Path
) -> None:
    job = start(SHORTEST)
    assert job.wait(timeout=60) == 0
    [life] = witness.lives()
    assert life.ended and life.labels == (SHORTEST,)
    assert (tmp_path / TABLE / f"ds={SHORTEST}" / "_SUCCESS").exists()
