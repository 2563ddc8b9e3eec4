"""The modes of a conf: the jobs that are scheduled on their own (C11)."""

from __future__ import annotations

from enum import Enum


class Mode(Enum):
    """A job of a conf that is scheduled on its own (C11); the value is its task id and its key in JSON."""

    BACKFILL = "backfill"
    UPLOAD = "upload"
    METADATA_UPLOAD = "metadata_upload"
