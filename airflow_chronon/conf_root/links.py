"""Links in a conf root: followed within it, never out of it, where they would show what its authors may not read (S2)."""

from __future__ import annotations

import os
from pathlib import Path

from airflow_chronon.errors import Fault


def leads_out(path: Path, *homes: Path) -> bool:
    """Whether a path lies, all links followed, in none of the folders: which may be links themselves, as git-sync makes
    the conf root and a mount its ``compiled/``."""
    found = os.path.realpath(path)
    inside = (os.path.realpath(home) for home in homes)
    return not any(found == home or found.startswith(home.rstrip(os.sep) + os.sep) for home in inside)


def outside(what: str) -> Fault:
    """The fault of such a link."""
    problem = f"{what} is a link that leads out of the conf root, and what is behind it is not read"
    return Fault("S2", "", problem, "put a copy into the conf root, or remove the link")
