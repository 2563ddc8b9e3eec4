"""Where a deployment's root, branch, bundle and state come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_chronon.core.plan.facts import Deployment as Owner
from airflow_chronon.core.records.history import record_after
from airflow_chronon.core.records.manifest import manifest_of
from airflow_chronon.deployment import Deployment, find_deployment
from airflow_chronon.errors import ChrononError
from airflow_chronon.state.folder import open_state
from tests.support.confs import plan_of, staging_query

HOME = {"AIRFLOW_HOME": "/home"}


def deployed(state_root: Path, branch: str, bundle: str = "dags-folder") -> None:
    """The state folder of a deployment that a reconcile has seen."""
    state = open_state(str(state_root), deployment=Owner(branch, bundle))
    plan = plan_of(staging_query("t.x__1"))
    state.write_record(record_after(plan, manifest_of(plan), None, now=0))


@pytest.fixture
def gone(tmp_path: Path) -> Deployment:
    """A deployment whose conf root is not there."""
    return find_deployment(environ={}, conf_root=tmp_path / "root", state_root=str(tmp_path / "state"))


class TestWhereItIs:
    def test_when_nobody_says_anything(self) -> None:
        found = find_deployment(environ=HOME)
        assert (found.conf_root, found.branch, found.bundle) == (Path("dags/chronon"), None, "dags-folder")
        assert (found.state_root, found.orphaned_files) == ("/home/chronon_state", Path("/home/chronon_orphaned"))

    def test_the_environment_says_what_airflows_configuration_would(self) -> None:
        environ = {
            **HOME,
            "AIRFLOW__CHRONON__CONF_ROOT": "/r",
            "AIRFLOW__CHRONON__BRANCH": "try",
            "AIRFLOW__CHRONON__STATE_ROOT": "s3://b/s",
        }
        found = find_deployment(environ=environ)
        assert (found.conf_root, found.branch, found.state_root) == (Path("/r"), "try", "s3://b/s")

    def test_a_configuration_that_was_read_stands_in_place_of_the_environment(self) -> None:
        environ = {**HOME, "AIRFLOW__CHRONON__BRANCH": "other"}
        configured = {"conf_root": "", "branch": "try", "state_root": "/s"}
        found = find_deployment(environ=environ, configured=configured, default_root="/dags/chronon")
        assert (found.conf_root, found.branch, found.state_root) == (Path("/dags/chronon"), "try", "/s")

    def test_what_is_given_wins_over_what_is_configured(self) -> None:
        configured = {"conf_root": "/r", "branch": "", "state_root": "/s"}
        found = find_deployment(
            environ=HOME, configured=configured, conf_root="/mine", bundle="b", bundle_branch="try", state_root="/t"
        )
        assert (found.conf_root, found.branch, found.bundle, found.state_root) == (Path("/mine"), "try", "b", "/t")

    def test_a_configured_branch_wins_over_that_of_the_bundle(self) -> None:  # C24
        found = find_deployment(environ=HOME, configured={"branch": "try"}, bundle_branch="main")
        assert found.branch == "try"


class TestItsBranch:
    @pytest.mark.parametrize(
        ("settings", "branch", "expected"),
        [
            ("", None, ("main", "main")),
            ("", "try", ("try", "main")),
            ("branch: own", "try", ("own", "main")),
            ("default_branch: trunk", None, ("trunk", "trunk")),
            ("branch: own\ncatchup: maybe", None, ("own", "main")),
            ("branch: [own]", "try", ("try", "main")),
        ],
    )
    def test_the_settings_win_and_bad_ones_say_what_can_be_read(
        self, tmp_path: Path, settings: str, branch: str | None, expected: tuple[str, str]
    ) -> None:  # C24
        (tmp_path / "chronon.yaml").write_text(settings)
        found = find_deployment(environ={}, configured={"branch": branch or ""}, conf_root=tmp_path)
        assert found.read_branches() == expected

    def test_a_root_that_is_gone_is_of_the_default_branch_before_the_first_reconcile(self, gone: Deployment) -> None:
        root = gone.need_branch(gone.read_root())
        assert root.is_branch_known and root.branch == "main"

    def test_a_root_that_is_gone_is_of_the_only_branch_of_its_bundle(self, gone: Deployment) -> None:  # C24
        deployed(Path(gone.state_root), "try")
        deployed(Path(gone.state_root), "another", bundle="elsewhere")
        root = gone.need_branch(gone.read_root())
        assert root.branch == "try" and gone.owner(root) == Owner("try", "dags-folder")
        assert gone.open_state(root).dag_ids() == {"staging_query.t.x__1"}

    def test_of_several_branches_nobody_knows_and_nothing_may_be_done(self, gone: Deployment) -> None:  # C24
        for branch in ("main", "try"):
            deployed(Path(gone.state_root), branch)
        root = gone.with_branch(gone.read_root())
        assert not root.is_branch_known and "main, try are deployed here" in root.problems[-1].message
        with pytest.raises(ChrononError, match=r"which branch .* belongs to"):
            gone.need_branch(gone.read_root())
