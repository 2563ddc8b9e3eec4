"""``run``: one run of a job, by hand (H7)."""

from __future__ import annotations

import argparse

from airflow_chronon.airflow_api.job_runs import start_run
from airflow_chronon.cli.options import FORMAT, ROOT, Command, instant, option
from airflow_chronon.cli.output import GOOD, show
from airflow_chronon.cli.server import AIRFLOW, need_server
from airflow_chronon.cli.target import open_root
from airflow_chronon.conf_root.selection import select_job
from airflow_chronon.core.schedules.request import asked_window


def run(options: argparse.Namespace) -> int:
    """Start the run through Airflow's API; a window is checked before anything is asked."""
    window = asked_window(options.start, options.end)
    plan = select_job(open_root(options.root), options.job)
    server = need_server(options.airflow)
    started = start_run(server, plan.dag_id, start=options.start, end=options.end)
    over = "without a window" if window is None else f"over {window}"
    show(
        options,
        text=lambda: f"{plan.key}: {started.run_id} created, {over}",
        value=lambda: {"dag_id": started.dag_id, "run_id": started.run_id, "state": started.state},
    )
    return GOOD


RUN = Command(
    "run",
    "start one run of a job, over a window or without one",
    (
        option("job", metavar="JOB", help="team.name, a name that only one team has, a DAG id or a file"),
        ROOT,
        option("--start", type=instant, metavar="T", help="start of the data window, inclusive, UTC"),
        option("--end", type=instant, metavar="T", help="end of the data window, exclusive, UTC"),
        AIRFLOW,
        FORMAT,
    ),
    run,
)
