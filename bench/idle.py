"""What an Airflow costs in which a thousand runs wait and nothing changes: cores of each component, counted over some minutes.

It starts an Airflow of its own with the settings that `airflow-chronon size` advises, on PostgreSQL where ``CHRONON_TEST_DATABASE`` says
``postgresql``, and drops confs into it that wait for tables nobody fills. Once all their runs wait, processor time is counted per
component. It needs the top of the repository and ``examples`` on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

from tests.support.integration.airflow_client import wait_until
from tests.support.integration.compiled_confs import staging_query
from tests.support.integration.real_airflow import RealAirflow, run_real_airflow

LOADER = "from airflow_chronon.dags import build_dags\n\nglobals().update(build_dags(near=__file__))\n"
SETTINGS = {
    "AIRFLOW__CHRONON__PASS_OVER_WAITING_RUNS": "True",
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",
    "AIRFLOW__SCHEDULER__MAX_DAGRUNS_PER_LOOP_TO_SCHEDULE": "100",
    "AIRFLOW__TRIGGERER__CAPACITY": "2000",
    "PYTHONDONTWRITEBYTECODE": "",
}
COMPONENTS = {"scheduler": "scheduler", "triggerer": "triggerer", "dag-processor": "dag-processor", "api": "api-server"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--confs", type=int, default=1000, help="so many waiting runs (default 1000)")
    parser.add_argument("--minutes", type=float, default=3, help="of counting (default 3)")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="idle-") as folder,
        run_real_airflow(base=Path(folder), settings=SETTINGS) as airflow,
    ):
        started = time.monotonic()
        write(airflow, options.confs)
        wait_until(
            lambda: waiting(airflow) >= options.confs, timeout=1200, every=5, why="every conf has a run that waits"
        )
        print(f"{options.confs} runs wait after {time.monotonic() - started:.0f} s", flush=True)
        time.sleep(60)  # the last of them is looked at for ten seconds yet
        before, began = cpu_seconds(airflow), time.monotonic()
        time.sleep(options.minutes * 60)
        after, took = cpu_seconds(airflow), time.monotonic() - began
        for name in sorted(after):
            print(f"{name}: {(after[name] - before[name]) / took:.3f} of a core")
        print(f"load of the machine after: {os.getloadavg()[0]:.1f}")


def write(airflow: RealAirflow, confs: int) -> None:
    """One conf per table that nobody fills."""
    for number in range(confs):
        conf = staging_query(f"waiting.n{number}", schedule="@daily", reads=f"lake.t{number % 200}")
        path = airflow.conf_root / "compiled" / conf.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(conf.document))
    (airflow.conf_root / "chronon.yaml").write_text(
        "confs_may_set: [runner]\ncatalog: {kind: filesystem, root: warehouse}\n"
    )
    (airflow.dags / "chronon.py").write_text(LOADER)


def waiting(airflow: RealAirflow) -> int:
    answer = airflow.api.request("GET", "/dags/~/dagRuns/~/taskInstances", params={"state": "deferred", "limit": 1})
    return int(answer["total_entries"])


def cpu_seconds(airflow: RealAirflow) -> Counter[str]:
    """What each component's processes have used, those that have ended since included as far as their parents know."""
    used: Counter[str] = Counter()
    for process in psutil.Process().children(recursive=True):
        try:
            times, command = process.cpu_times(), " ".join(process.cmdline())
        except psutil.Error:
            continue
        name = next((shown for word, shown in COMPONENTS.items() if word in command), None)
        name = "PostgreSQL" if name is None and "postgres" in command else name
        if name is not None:
            used[name] += times.user + times.system + times.children_user + times.children_system
    return used


if __name__ == "__main__":
    main()
