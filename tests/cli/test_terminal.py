"""What a person at a terminal meets: lines that fit, the nearest command, names that the shell completes."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.support.checkout import ROOT
from tests.support.command_line import DATA, Command

SPAN = ("--from", "2026-06-01", "--to", "2026-06-01T08:00")
PROGRAM = (sys.executable, "-m", "airflow_chronon")


def on_a_terminal(*arguments: str, columns: int) -> list[str]:
    """The lines that a command prints on a terminal of so many columns."""
    reader, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environ = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    command = [*PROGRAM, *arguments]
    with subprocess.Popen(command, cwd=ROOT, env=environ, stdin=terminal, stdout=terminal, stderr=terminal):
        os.close(terminal)
        text = b""
        try:
            while data := os.read(reader, 65536):
                text += data
        except OSError:  # Linux's way to say that nobody writes any more
            pass
    os.close(reader)
    return text.decode().replace("\r\n", "\n").splitlines()


class TestLines:
    @pytest.mark.parametrize("columns", [80, 100])
    @pytest.mark.parametrize(
        "arguments",
        [
            ("check",),
            ("explain", "commerce.checkout.serving__1", *SPAN),
            ("explain", "growth.visits.weekly__1", "--from", "2026-06-01", "--to", "2026-06-09"),
            ("check", "--help"),
            ("plan", "--root", "dags/chronon"),
            ("check", "--root", str(DATA / "main")),
        ],
        ids=" ".join,
    )
    def test_fit_the_terminal(self, arguments: tuple[str, ...], columns: int) -> None:
        lines = on_a_terminal(*arguments, columns=columns)
        assert lines and not lines[0].startswith("Traceback")
        assert [line for line in lines if len(line) > columns and " " in line.strip()] == []

    def test_lose_no_word_there(self, command: Command) -> None:
        arguments = ("explain", "commerce.checkout.serving__1", "--root", str(ROOT / "dags/chronon"), *SPAN)
        shown = on_a_terminal(*arguments, columns=80)
        assert " ".join(shown).split() == command(*arguments).out.split()

    def test_are_whole_for_files_and_programs(self, command: Command) -> None:
        out = command("explain", "commerce.checkout.serving__1", "--root", ROOT / "dags/chronon", *SPAN).out
        assert max(map(len, out.splitlines())) > 200


class TestAMistypedCommand:
    def test_is_answered_with_the_nearest(self, command: Command) -> None:
        answer = command("explian", "commerce.orders.daily__1")
        assert (answer.code, answer.out) == (2, "")
        assert answer.err.endswith("there is no command 'explian' (input). Did you mean explain?\n")

    def test_that_is_like_none_is_told_where_they_are_listed(self, command: Command) -> None:
        answer = command("xyz")
        assert answer.code == 2 and "listed by airflow-chronon --help" in answer.err

    def test_conf_gets_the_nearest_of_each_conf_once(self, command: Command) -> None:
        answer = command("explain", "commerce.orders.hourly", "--root", ROOT / "dags/chronon")
        (told,) = [line.partition("Did you mean ")[2] for line in answer.err.splitlines()]
        offered = told.rstrip("?").split(" or ")
        assert offered[0] == "commerce.orders.hourly__1" and len(offered) == len(set(offered)) <= 3


class TestCompletion:
    @pytest.mark.parametrize(
        ("line", "offered"),
        [
            ("airflow-chronon exp", ["explain "]),
            ("airflow-chronon explain commerce.orders.t", ["commerce.orders.three_hourly__1 "]),
            ("airflow-chronon explain join/commerce.checkout.s", ["join/commerce.checkout.serving__1 "]),
            ("airflow-chronon backfill growth.visits.w", ["growth.visits.weekly__1 "]),
            ("airflow-chronon backfill x --with", ["--with-upstream "]),
            ("airflow-chronon check --format j", ["json "]),
        ],
    )
    def test_offers_commands_options_and_confs(self, line: str, offered: list[str], tmp_path: Path) -> None:
        answer = tmp_path / "answer"
        environ = {
            **os.environ,
            "_ARGCOMPLETE": "1",
            "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
            "_ARGCOMPLETE_IFS": "\n",
            "COMP_LINE": line,
            "COMP_POINT": str(len(line)),
            "AIRFLOW__CHRONON__CONF_ROOT": str(ROOT / "dags/chronon"),
        }
        subprocess.run([*PROGRAM], cwd=ROOT, env=environ, check=False, capture_output=True)
        assert answer.read_text().splitlines() == offered
