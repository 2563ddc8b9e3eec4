"""``import airflow-dags``: what an old folder did is read from its text, and none of it is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_chronon.conf_root.settings import parse_settings
from tests.support.command_line import Command

CONSTANTS = """
import os
CHRONON_PATH = "/srv/features"
JOIN_CONCURRENCY = 100  # raise it
UNRELATED = 7
"""
HELPERS = """
from airflow.sensors.named_hive_partition_sensor import NamedHivePartitionSensor
import constants
raise SystemExit("nobody runs this")

def task_default_args(team_conf, team_name, **kwargs):
    if (of_team := team_conf.get(team_name, {})) == {"team_name": None}:
        of_team = {}
    base = {"owner": of_team["team_name"], "task_concurrency": 1, "retries": 3}
    base.update(kwargs)
    return base

def dag_default_args(**kwargs):
    args = {
        "start_date": datetime.strptime("2023-02-01", "%Y-%m-%d"),
        "dagrun_timeout": timedelta(days=4),
        "schedule_interval": "@daily",
        "catchup": False,
    }
    return args

def sensor(dag):
    return NamedHivePartitionSensor(task_id="a")
"""
GROUP_BYS = """
import helpers

def batch(conf, mode, conf_type, team_conf):
    return DAG(
        helpers.dag_names(conf),
        **helpers.dag_default_args(),
        default_args=helpers.task_default_args(team_conf, "t", retries=1, retry_delay=timedelta(minutes=1)),
    )

def streaming(conf, mode, conf_type, team_conf):
    return DAG("s", schedule_interval=timedelta(minutes=15), max_active_runs=1)

all_dags = helpers.walk_and_define_tasks("streaming", "group_bys", CHRONON_PATH, streaming, dags={})
all_dags.update(helpers.walk_and_define_tasks("backfill", "group_bys", CHRONON_PATH, batch, dags=all_dags))
"""
JOINS = """
def build(conf, mode, conf_type, team_conf):
    return DAG(
        "j",
        concurrency=JOIN_CONCURRENCY,
        schedule_interval=helpers.get_offline_schedule(conf),
        **helpers.dag_default_args(),
        default_args=helpers.task_default_args(team_conf, "t", retries=1),
    )

globals().update(helpers.walk_and_define_tasks(mode="backfill", conf_type="joins", repo=PATH, dag_constructor=build))
helpers.walk_and_define_tasks("log-flattener", "joins", PATH, build)
helpers.walk_and_define_tasks("consistency-metrics-compute", "joins", PATH, build)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files as those of Chronon, whose import would end the process."""
    for name, text in {"constants": CONSTANTS, "helpers": HELPERS, "group_bys": GROUP_BYS, "joins": JOINS}.items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


class TestWhatTheFolderDid:
    def test_every_mode_with_how_often_and_what_takes_its_place(self, command: Command, folder: Path) -> None:
        answer = command("import", "airflow-dags", folder, "--format", "json")
        assert answer.code == 0
        dags = {row["what"]: row for row in answer.json["dags"]}
        assert {what: row["value"] for what, row in dags.items()} == {
            "group_bys streaming": "15m",
            "group_bys backfill": '"@daily"',
            "joins backfill": "helpers.get_offline_schedule(conf)",
            "joins log-flattener": "helpers.get_offline_schedule(conf)",
            "joins consistency-metrics-compute": "helpers.get_offline_schedule(conf)",
        }
        assert dags["group_bys backfill"]["place"] == "group_bys.py:15"
        assert "join.NAME" in dags["joins backfill"]["successor"]
        for what in ("group_bys streaming", "joins log-flattener"):  # what is not done is not promised
            assert f"--mode={what.split()[1]}" in dags[what]["successor"]

    def test_constants_with_their_values(self, command: Command, folder: Path) -> None:
        rows = command("import", "airflow-dags", folder, "--format", "json").json["constants"]
        assert [(row["what"], row["value"], row["place"]) for row in rows] == [
            ("CHRONON_PATH", '"/srv/features"', "constants.py:3"),
            ("JOIN_CONCURRENCY", "100", "constants.py:4"),
        ]

    def test_arguments_also_those_of_helpers_and_constants(self, command: Command, folder: Path) -> None:
        rows = command("import", "airflow-dags", folder, "--format", "json").json["arguments"]
        found = {(row["what"], row["value"]) for row in rows}
        assert {
            ("concurrency", "100"),
            ("dagrun_timeout", "4d"),
            ("retry_delay", "1m"),
            ("start_date", "2023-02-01"),
        } <= found
        assert ("retries", "3") not in found  # the call says 1

    def test_sensors(self, command: Command, folder: Path) -> None:
        (row,) = command("import", "airflow-dags", folder, "--format", "json").json["parts"]
        assert row["what"] == "NamedHivePartitionSensor" and "wait.TABLE" in row["successor"]

    def test_what_all_agree_on_may_stand_in_the_settings(self, command: Command, folder: Path) -> None:
        answer = command("import", "airflow-dags", folder)
        text = answer.out.partition("chronon.yaml may say the same:\n")[2]
        settings = parse_settings("\n".join(line.strip() for line in text.splitlines()), environ={})
        assert (settings.retries, settings.catchup, str(settings.start_date)[:4]) == (1, False, "2023")

    def test_what_differs_is_not_settled_for_anybody(self, command: Command, folder: Path) -> None:
        (folder / "joins.py").write_text(JOINS.replace("retries=1", "retries=5"))
        assert "retries" not in command("import", "airflow-dags", folder, "--format", "json").json["settings"]


class TestHostileFiles:
    @pytest.mark.parametrize(
        ("text", "said"),
        [
            pytest.param(b"print 'old'\n", "not Python of today", id="Python 2"),
            pytest.param(b"\x00", "not Python of today", id="NUL"),
            pytest.param(b"\xff\xfe", "not Python of today", id="not UTF-8"),
            pytest.param(b"x = " + b"9" * 10_000, "not Python of today", id="a huge number"),
            pytest.param(b"x = " + b"(" * 10_000, "not Python of today", id="parentheses"),
            pytest.param(b"x = " + b"-" * 100_000 + b"1", "nested too deeply", id="signs"),
            pytest.param(b"x = 1" + b"+1" * 20_000, "nested too deeply", id="a long sum"),
            pytest.param(b"#" * 300_000, "no file of DAGs is larger", id="a huge file"),
        ],
    )
    def test_a_file_that_cannot_be_read_costs_no_other(
        self, text: bytes, said: str, command: Command, folder: Path
    ) -> None:
        (folder / "a.py").write_bytes(text)
        answer = command("import", "airflow-dags", folder, "--format", "json")
        (problem,) = answer.json["problems"]
        assert answer.code == 1 and problem["field"] == "a.py" and said in problem["message"]
        assert len(answer.json["dags"]) == 5

    def test_what_is_deep_but_still_python_is_not_written_out(self, command: Command, folder: Path) -> None:
        deep = "a" + ".b" * 150
        (folder / "joins.py").write_text(
            JOINS.replace("JOIN_CONCURRENCY", deep).replace('"j",', f'"j", owner=f({deep}),')
        )
        answer = command("import", "airflow-dags", folder, "--format", "json")
        assert answer.code == 0
        assert ("owner", "…") in {(row["what"], row["value"]) for row in answer.json["arguments"]}

    def test_links_pipes_and_control_characters(self, command: Command, folder: Path, tmp_path: Path) -> None:
        (folder / "loop.py").symlink_to("loop.py")
        (folder / "out.py").symlink_to("/etc/passwd")
        (folder / "again").symlink_to(folder)
        (folder / "folder.py").mkdir()
        (folder / "bell\x07.py").write_text("JOIN_CONCURRENCY = '\x1b[31m'\n")
        answer = command("import", "airflow-dags", folder)
        assert answer.code == 1 and len(answer.out.splitlines()) < 60
        assert "\x1b" not in answer.out + answer.err and "\x07" not in answer.out + answer.err
        assert "/bin/" not in answer.out + answer.err

    def test_a_constant_that_is_said_a_thousand_times_is_said_once(self, command: Command, folder: Path) -> None:
        (folder / "constants.py").write_text("JOIN_CONCURRENCY = 1\n" * 5_000)
        assert len(command("import", "airflow-dags", folder, "--format", "json").json["constants"]) == 1

    @pytest.mark.parametrize("name", ["nothing", "a\0b", "x" * 5_000])
    def test_no_folder(self, name: str, command: Command, tmp_path: Path) -> None:
        answer = command("import", "airflow-dags", tmp_path / name)
        assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)

    def test_no_python(self, command: Command, tmp_path: Path) -> None:
        (tmp_path / "readme.md").write_text("")
        assert command("import", "airflow-dags", tmp_path).code == 2

    def test_other_dags(self, command: Command, tmp_path: Path) -> None:
        (tmp_path / "dag.py").write_text("from airflow.sdk import DAG\nDAG('a')\n")
        answer = command("import", "airflow-dags", tmp_path)
        assert answer.code == 1 and "walk_and_define_tasks" in answer.err
