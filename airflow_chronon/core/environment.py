"""The variables that a job gets (H5)."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_chronon.core.instants import Instant, TimeWindow, iso
from airflow_chronon.core.labels import PartitionKey

#: Set only when the run has a window (H7).
WINDOW_VARIABLES = (
    "HOPS_START_TIME",
    "HOPS_END_TIME",
    "HOPS_LOGICAL_DATE",
    "CHRONON_START_TIME",
    "CHRONON_END_TIME",
    "CHRONON_LOGICAL_DATE",
    "CHRONON_PARTITION",
    "CHRONON_PARTITIONS",
)


def job_environment(
    *,
    conf: str,
    mode: str,
    run_id: str,
    window: TimeWindow | None,
    logical_date: Instant | None = None,
    partitions: tuple[PartitionKey, ...] = (),
    own: Mapping[str, str] | None = None,
    given: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The environment of one job: what is worked out, then the job's ``own``, then what was ``given`` on the run.

    Instants are ISO-8601 UTC in whole seconds with ``Z``; ``CHRONON_PARTITIONS`` is every label, oldest first, joined by
    commas, and ``CHRONON_PARTITION`` the newest.
    """
    computed = {"CHRONON_CONF": conf, "CHRONON_MODE": mode, "CHRONON_RUN_ID": run_id}
    if window is not None:
        times = {
            "START_TIME": iso(window.start),
            "END_TIME": iso(window.end),
            "LOGICAL_DATE": iso(window.start if logical_date is None else logical_date),
        }
        computed |= {f"{prefix}_{name}": value for prefix in ("HOPS", "CHRONON") for name, value in times.items()}
        if partitions:
            computed |= {"CHRONON_PARTITION": partitions[-1], "CHRONON_PARTITIONS": ",".join(partitions)}
    return computed | dict(own or {}) | dict(given or {})
