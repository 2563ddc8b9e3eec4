"""The Airflow layer: thin adapters from the core, the catalogs and the runners to Airflow's own classes.

On an Airflow that is too old it cannot be imported: whatever leads here (plugin, loader file, command) says one sentence
instead of tripping over what that Airflow does not have yet.
"""

from __future__ import annotations

import airflow
from packaging.version import Version

from airflow_chronon.errors import AirflowTooOld

OLDEST = Version("3.3")

if Version(airflow.__version__).release < OLDEST.release:
    raise AirflowTooOld(
        f"airflow_chronon needs Airflow {OLDEST} or newer: waits without a worker do not exist before; this is Airflow"
        f" {airflow.__version__}"
    )
