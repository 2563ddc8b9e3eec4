"""``run``: one run of a job, by hand (H7)."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from airflow_chronon.airflow_api.errors import NotThere
from airflow_chronon.airflow_api.job_runs import start_run
from airflow_chronon.airflow_api.protocol import AirflowServer
from airflow_chronon.airflow_api.records import RunRecord
from airflow_chronon.cli.completion import complete_jobs
from airflow_chronon.cli.options import FORMAT, ROOT, Command, instant, option
from airflow_chronon.cli.output import GOOD, show, tell
from airflow_chronon.cli.server import AIRFLOW, need_server
from airflow_chronon.cli.target import open_root
from airflow_chronon.conf_root.selection import select_job
from airflow_chronon.core.confs.plan import Plan
from airflow_chronon.core.plan.facts import CHRONON_TAG
from airflow_chronon.core.schedules.request import asked_window
from airflow_chronon.errors import ChrononError, Fault

APPEARS_WITHIN = 120.0  #: seconds: a dag processor looks at each file every 30 by default
POLL_SECONDS = 2.0  #: seconds between two tries


def run(options: argparse.Namespace) -> int:
    """Start the run through Airflow's API; a window is checked before anything is asked."""
    window = asked_window(options.start, options.end)
    plan = select_job(open_root(options.root), options.job)
    server = need_server(options)
    started = _once_there(server, plan, lambda: start_run(server, plan.dag_id, start=options.start, end=options.end))
    over = "without a window" if window is None else f"over {window}"
    show(
        options,
        text=lambda: f"{plan.key}: {started.run_id} created, {over}",
        value=lambda: {"dag_id": started.dag_id, "run_id": started.run_id, "state": started.state},
    )
    return GOOD


def _once_there(server: AirflowServer, plan: Plan, start: Callable[[], RunRecord]) -> RunRecord:
    """Start a run as soon as Airflow knows the job: it reads a file that was just dropped within seconds, not at once.

    Raises ``ChrononError`` when it is not there in time.
    """
    ends = time.monotonic() + APPEARS_WITHIN
    is_told = False
    while True:
        try:
            return start()
        except NotThere:
            if time.monotonic() >= ends:
                raise ChrononError(_not_there(plan)) from None
        if not is_told:
            server.dags(tags=(CHRONON_TAG,))  # an address where no Airflow is says so at once
            tell(
                f"Airflow does not know {plan.dag_id} yet: waiting up to {APPEARS_WITHIN:g} s for it to read {plan.file}"
            )
            is_told = True
        time.sleep(POLL_SECONDS)


def _not_there(plan: Plan) -> Fault:
    problem = f"Airflow does not know the DAG {plan.dag_id} of {plan.file} after {APPEARS_WITHIN:g} s"
    remedy = "see airflow dags list-import-errors, and whether this conf root is the one that Airflow reads"
    return Fault("input", "JOB", problem, remedy)


RUN = Command(
    "run",
    "start one run of a job, over a window or without one",
    (
        option(
            "job",
            metavar="JOB",
            completer=complete_jobs,
            help="team.name, a name that only one team has, a DAG id or a file",
        ),
        ROOT,
        option("--start", type=instant, metavar="T", help="start of the data window, inclusive, UTC"),
        option("--end", type=instant, metavar="T", help="end of the data window, exclusive, UTC"),
        AIRFLOW,
        FORMAT,
    ),
    run,
)
