"""Whether a DAG is built with its schedule, or off since it is only kept for its last runs."""

from __future__ import annotations

from enum import Enum


class Fires(Enum):
    """Whether a DAG has the schedule of its conf or job."""

    AS_PLANNED = "as planned"
    NEVER = "never"
