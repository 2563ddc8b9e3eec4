"""What was filled into settings, told to Airflow's masker: it stands as ``***`` in every log from then on (S4).

Airflow masks nothing that is shorter than its ``[logging] min_length_masked_secret``.
"""

from __future__ import annotations

import os
from typing import Any

from airflow.sdk.log import amask_secret, mask_secret

from airflow_chronon.core.settings.variables import Secrets


def mask_filled(*written: Any) -> None:
    """For a task: what the environment puts into settings, which are given as they are written."""
    mask(Secrets.of(written, environ=os.environ))


def mask(secrets: Secrets) -> None:
    """The same for what is known to have been filled in."""
    for each in secrets.spellings():
        mask_secret(each)


async def amask_filled(*written: Any) -> None:
    """The same for a trigger."""
    for each in Secrets.of(written, environ=os.environ).spellings():
        await amask_secret(each)
