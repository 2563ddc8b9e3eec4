"""Whether a DAG has its schedule."""

from __future__ import annotations

from enum import Enum


class Fires(Enum):
    """Whether a DAG has the schedule of its conf or job."""

    AS_PLANNED = "as planned"
    NEVER = "never"
