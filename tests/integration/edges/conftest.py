"""One Airflow that is not as most are: its default time zone is Tokyo's, and it sends mail; ended when the last test is done."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from local_airflow import HOST

from tests.support.integration.mail_sink import MailSink, run_mail_sink
from tests.support.integration.real_airflow import RealAirflow
from tests.support.integration.reconcile_lab import Deployment, run_reconcile_airflow


@pytest.fixture(scope="package")
def mails() -> Iterator[MailSink]:
    """What Airflow has sent so far."""
    with run_mail_sink() as sink:
        yield sink


@pytest.fixture(scope="package")
def airflow(mails: MailSink, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAirflow]:
    """Each test deploys a branch of its own there."""
    connection = {"conn_type": "smtp", "host": HOST, "port": mails.port}
    settings = {
        "AIRFLOW__CORE__DEFAULT_TIMEZONE": "Asia/Tokyo",
        "AIRFLOW_CONN_SMTP_DEFAULT": json.dumps({**connection, "extra": {"disable_ssl": True, "disable_tls": True}}),
    }
    with run_reconcile_airflow(tmp_path_factory.mktemp("edges"), settings=settings) as running:
        yield running


@pytest.fixture
def deploy(airflow: RealAirflow) -> Iterator[Callable[[str], Deployment]]:
    """Makes deployments of confs, each of a branch of its own."""
    made: list[Deployment] = []

    def make(branch: str) -> Deployment:
        made.append(Deployment.beside(airflow, branch=branch))
        return made[-1]

    yield make
    for each in made:
        each.loader.unlink(missing_ok=True)
