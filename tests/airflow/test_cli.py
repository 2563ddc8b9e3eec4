"""``airflow chronon …`` offers the commands of ``airflow-chronon``."""

from __future__ import annotations

from airflow.cli.cli_config import GroupCommand

from airflow_chronon.airflow.cli import get_chronon_commands
from airflow_chronon.cli.main import COMMANDS


def test_airflow_can_build_every_command_and_option() -> None:
    (group,) = get_chronon_commands()  # an option that Airflow cannot build costs all of them
    assert isinstance(group, GroupCommand)
    assert [each.name for each in group.subcommands] == [command.name for command in COMMANDS]
