"""The variables that a job gets (H5)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from airflow_chronon.core.calendar.instants import Instant, TimeWindow, iso
from airflow_chronon.core.partitions.labels import PartitionKey
from airflow_chronon.errors import ChrononError, Fault

VARIABLE = re.compile(r"[^=\0]+")  #: what a variable's name may be

LONGEST_VALUE = 100_000  #: characters; Linux starts no process with a variable of 128 KiB
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
    commas, and ``CHRONON_PARTITION`` the newest. Where every label would be longer than a variable can be, only the
    newest is there.
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
            computed["CHRONON_PARTITION"] = partitions[-1]
            if len(every := ",".join(partitions)) <= LONGEST_VALUE:
                computed["CHRONON_PARTITIONS"] = every
    return computed | dict(own or {}) | dict(given or {})


def given_texts(given: object) -> dict[str, str]:
    """The variables that were set on a run, as text: numbers and truth values as JSON writes them, null left out.

    Anything but a mapping is none. Raises ``ChrononError`` for a name or a value that no variable can have.
    """
    pairs = given.items() if isinstance(given, Mapping) else ()
    for name, value in pairs:
        if not VARIABLE.fullmatch(str(name)):
            raise _refused(f"{name!r} cannot be the name of a variable", "a name is not empty and has no =")
        if value is not None and not isinstance(value, str | int | float):
            raise _refused(f"the variable {name!r} is a list or an object", "write it as text")
    return {str(n): v if isinstance(v, str) else json.dumps(v) for n, v in pairs if v is not None}


def _refused(problem: str, remedy: str) -> ChrononError:
    return ChrononError(Fault("H5", "env", problem, remedy))
