"""The ceiling of memory while the engine works (S3)."""

from __future__ import annotations

import resource

from airflow_chronon.engine.local.memory import memory_ceiling

GIGABYTE = 1 << 30


def limit() -> int:
    return resource.getrlimit(resource.RLIMIT_DATA)[0]


def test_two_that_work_at_a_time_leave_no_ceiling_behind() -> None:
    before = limit()
    first, second = memory_ceiling(2 * GIGABYTE), memory_ceiling(GIGABYTE)
    first.__enter__()
    held = limit()
    second.__enter__()
    assert held != before and limit() == held  # the highest holds
    first.__exit__(None, None, None)
    assert limit() == held
    second.__exit__(None, None, None)
    assert limit() == before
