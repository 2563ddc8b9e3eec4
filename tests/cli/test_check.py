"""``airflow-chronon check``: a verdict per conf, as text and as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from pytest_mock import MockerFixture

from tests.support.command_line import DATA, Command

REJECTED = {"group_by/checkout.purchases.never_but_online__1": "C6"}


class TestJson:
    def test_a_good_conf_has_its_grid_modes_and_id(self, command: Command) -> None:
        answer = command("check", "--root", DATA / "main", "--format", "json")
        entry = answer.json["group_by/checkout.purchases.three_hour__1"]
        assert entry == {
            "status": "ok",
            "file": "group_bys/checkout/purchases.three_hour__1",
            "dag_id": "group_by.checkout.purchases.three_hour__1",
            "version": "1",
            "grid": {"interval_minutes": 180, "offset_minutes": 60, "format": "yyyy-MM-dd-HH-mm", "column": "ds"},
            "modes": entry["modes"],
            "warnings": [],
        }
        assert "backfill" in entry["modes"]

    def test_a_rejected_conf_has_every_broken_rule_with_its_field_and_remedy(self, command: Command) -> None:
        answer = command("check", "--root", DATA / "main", "--format", "json")
        rejected = {key: entry for key, entry in answer.json.items() if entry["status"] == "rejected"}
        assert len(rejected) == 3 and answer.code == 1
        for entry in rejected.values():
            for error in entry["errors"]:
                assert error.keys() == {"rule", "field", "message", "remedy"} and all(error.values())

    def test_a_conf_of_another_environment_says_so(self, command: Command, root: Path) -> None:
        assert command("check", "--root", root, "--format", "json").json[
            "staging_query/growth.exports.canary_only__1"
        ] == {
            "status": "other environment",
            "file": "compiled/staging_queries/growth/exports.canary_only__1",
        }

    def test_json_stands_alone_on_stdout_and_problems_on_stderr(self, command: Command, tmp_path: Path) -> None:
        answer = command("check", "--root", tmp_path / "nowhere", "--format", "json")
        assert answer.json == {} and "there is no conf root" in answer.err


class TestText:
    def test_a_root_that_is_not_there_is_one_sentence(self, command: Command, tmp_path: Path) -> None:
        answer = command("check", "--root", tmp_path / "nowhere")
        assert answer.code == 1 and answer.out == ""
        assert answer.err == (
            f"there is no conf root {tmp_path / 'nowhere'} (input). "
            "Create it, or name another with --root or [chronon] conf_root.\n"
        )

    @pytest.mark.parametrize("command_name", ["check", "explain"])
    def test_a_root_of_which_nothing_can_be_said_is_not_said_to_be_good(
        self, command: Command, tmp_path: Path, command_name: str
    ) -> None:
        answer = command(command_name, "--root", tmp_path)
        assert answer.code == 1 and answer.out == "" and "holds no compiled confs and no jobs" in answer.err

    def test_every_conf_is_a_line_and_every_fault_a_line_below(self, command: Command) -> None:
        answer = command("check", "--root", DATA / "main")
        lines = answer.out.splitlines()
        heads = [line for line in lines if not line.startswith(" ")]
        summary = "59 good, 6 of them with warnings; 3 rejected; 1 not here, since it is of another environment"  # C12
        assert len(heads) == 63 + 1 and heads[-1].startswith(summary)
        at = next(index for index, line in enumerate(lines) if line.startswith("REJECTED"))
        assert lines[at + 1].startswith("    ") and "(C" in lines[at + 1]

    def test_a_warning_is_shown_below_its_conf(self, command: Command) -> None:
        lines = command("check", "--root", DATA / "main").out.splitlines()
        at = next(index for index, line in enumerate(lines) if "staging_query/growth.exports.cross_team__1" in line)
        assert lines[at].startswith("ok") and lines[at + 1].startswith("    warning: tableDependencies[0]:")


class TestExitCodes:
    def test_all_good_is_0(self, command: Command, root: Path) -> None:
        answer = command("check", "--root", root)
        assert (answer.code, answer.err) == (0, "")
        assert answer.out.splitlines()[-1].startswith("4 good, 0 of them with warnings; 0 rejected; 1 not here")

    def test_a_bad_conf_is_1(self, command: Command, root: Path) -> None:
        (root / "compiled/joins/checkout/bad").write_text("{")
        assert command("check", "--root", root).code == 1

    @pytest.mark.parametrize("arguments", [[], ["chekc"], ["check", "--format", "xml"], ["check", "--rot", "x"]])
    def test_misuse_is_2_with_the_usage_on_stderr(self, command: Command, arguments: list[str]) -> None:
        answer = command(*arguments)
        assert answer.code == 2 and answer.out == "" and "usage: airflow-chronon" in answer.err

    def test_help_is_0(self, command: Command) -> None:
        answer = command("check", "--help")
        assert answer.code == 0 and "--root" in answer.out


class TestRoots:
    def test_a_compiled_tree_may_stand_for_the_root(self, command: Command, root: Path) -> None:
        whole = command("check", "--root", root, "--format", "json").json
        tree = command("check", "--root", root / "compiled", "--format", "json").json
        assert whole.keys() == tree.keys()

    def test_the_canary_deployment_reads_the_canary_tree(self, command: Command, root: Path) -> None:
        (root / "compiled").rename(root / "compiled_canary")
        (root / "chronon.yaml").write_text("environment: canary")
        statuses = {
            key: entry["status"] for key, entry in command("check", "--root", root, "--format", "json").json.items()
        }
        assert statuses.pop("staging_query/growth.exports.canary_only__1") == "ok"
        assert set(statuses.values()) == {"other environment"}

    def test_settings_of_the_root_hold(self, command: Command, root: Path) -> None:
        (root / "chronon.yaml").write_text("branch: try")
        ids = [
            entry.get("dag_id", "try--") for entry in command("check", "--root", root, "--format", "json").json.values()
        ]
        assert all(dag_id.startswith("try--") for dag_id in ids)

    def test_the_branch_may_come_from_airflows_own_setting(
        self, command: Command, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AIRFLOW__CHRONON__BRANCH", "try")
        answer = command("check", "--root", root, "--format", "json")
        assert (
            answer.json["join/checkout.training.daily_join__1"]["dag_id"] == "try--join.checkout.training.daily_join__1"
        )


def test_it_imports_no_airflow(root: Path) -> None:
    code = (
        "import sys\n"
        "from airflow_chronon.cli.main import main\n"
        f"code = main(['check', '--root', {str(root)!r}, '--format', 'json'])\n"
        "heavy = {'airflow', 'sqlalchemy', 'duckdb', 'pyarrow', 'fastapi', 'sqlglot'}\n"
        "loaded = sorted(name for name in sys.modules if name.split('.')[0] in heavy)\n"
        "print(loaded, file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "[]\n")
    assert json.loads(done.stdout)


def test_a_reader_that_goes_away_is_no_error(root: Path) -> None:
    command = f"{sys.executable} -m airflow_chronon.cli.main check --root {DATA / 'main'} --format json"
    script = f"{command} | head -c 10; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) in [(0, ""), (1, "")]


def test_a_terminal_without_the_letters_does_not_end_the_command(root: Path) -> None:
    text = (root / "compiled/staging_queries/checkout/orders.hourly_rollup__1").read_text()
    renamed = root / "compiled/staging_queries/checkout/orders.größe__1"
    renamed.write_text(text.replace("orders.hourly_rollup", "orders.größe"))
    done = subprocess.run(
        [sys.executable, "-m", "airflow_chronon.cli.main", "check", "--root", str(root)],
        capture_output=True,
        env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 0 and b"orders.gr\\xf6\\xdfe__1" in done.stdout, done.stderr


def test_an_override_that_is_for_nothing_is_reported_and_costs_no_conf(command: Command, root: Path) -> None:
    (root / "chronon.yaml").write_text("overrides: [{match: 'staging_query/chekout.*', retries: 1}]\n")
    answer = command("check", "--root", root, "--format", "json")
    assert answer.code == 0 and answer.json
    assert answer.err.startswith(
        "warning: chronon.yaml overrides[0]: 'staging_query/chekout.*' matches no conf and no job"
    )


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (
            "zipline",
            "warning: runner.kind: jobs in dataproc are asked after through apache-airflow-providers-google, which is not installed"
            " here (runner). Where workers and triggerers run: pip install 'airflow-chronon[google]'.\n",
        ),
        (
            "command",
            "warning: runner.kind: the driver submits jobs to dataproc, and a plain command loses sight of them with its worker"
            " (C28). Use kind: zipline.\n",
        ),
    ],
)
def test_how_the_driver_submits_to_a_cloud_is_looked_at(
    command: Command, root: Path, mocker: MockerFixture, kind: str, says: str
) -> None:
    mocker.patch("airflow_chronon.engine.zipline.distribution", side_effect=PackageNotFoundError)
    (root / "chronon.yaml").write_text(f"runner: {{kind: {kind}, env: {{CLOUD_PROVIDER: gcp}}}}\n")
    answer = command("check", "--root", root)
    assert (answer.code, answer.err) == (0, says)


def test_the_root_is_the_one_that_the_environment_names_unless_another_is_given(
    command: Command, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__CHRONON__CONF_ROOT", str(root))
    assert command("check").out.endswith(f"of another environment: {root}\n")
    assert f"there is no conf root {tmp_path / 'other'}" in command("check", "--root", tmp_path / "other").err
