"""The worst files beside a victim on a real Airflow: its next run succeeds, every process stays healthy (S1, S2)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.support.checkout import ROOT
from tests.support.integration.airflow_client import wait_until
from tests.support.integration.compiled_confs import staging_query
from tests.support.integration.deployment import Deployment, day_label
from tests.support.integration.worst_files import SAID, drop_worst_files

pytestmark = pytest.mark.soak

VICTIM = staging_query("hostile.victim", schedule="0 0 * * *")
LATER = staging_query("hostile.later")


@pytest.fixture
def dropped(deployment: Deployment) -> Iterator[None]:
    """The worst files, in the folder, while a test looks at them."""
    shutil.copy(ROOT / "dags" / ".airflowignore", deployment.real.dags)
    paths = drop_worst_files(deployment.real.conf_root, dags=deployment.real.dags)
    deployment.real.parse_soon()
    yield
    for path in paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    deployment.real.parse_soon()


def test_the_worst_files_stop_nobody(deployment: Deployment, dropped: None) -> None:  # S1 S2
    deployment.deploy(VICTIM)

    def all_named() -> list[str]:
        said = deployment.import_errors()
        return said if all(any(line.startswith(each) for line in said) for each in SAID) else []

    lines = wait_until(all_named, timeout=90, why="every hostile file is named among the import errors")
    assert len([line for line in lines if "hostile." in line]) == len(SAID)
    assert deployment.end_of(deployment.run_of(VICTIM, day_label(days_ago=1))).state == "success"
    deployment.deploy(LATER)  # the loader still takes what is new
    deployment.real.server.check_alive()
    deployment.real.server.wait_until_healthy()
    assert not (deployment.real.conf_root / "executed").exists()
    deployment.withdraw(VICTIM, LATER)
