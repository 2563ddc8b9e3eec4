"""Real commands, run as a task would run them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from airflow_chronon.engine.command import CommandRunner
from airflow_chronon.errors import JobFailed, JobRefused


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-u", "-c", code.replace("{", "{{").replace("}", "}}"), *arguments]


@pytest.fixture
def run(make_job):
    """Run a piece of Python as the command and give the lines of the log."""

    def run(code: str, *arguments: str, **settings) -> list[str]:
        log: list[str] = []
        CommandRunner(argv=python(code, *arguments), **settings).run(make_job(), log.append)
        return log[1:]

    return run


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def comes_to_its_end(pid: int) -> bool:
    """Wait for a process that need not be ours; false when it is still there after a minute."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with open(descriptor, "rb") as process:
        return bool(select.select([process], [], [], 60)[0])


class TestOutput:
    def test_both_streams_come_line_by_line_in_order(self, run):
        code = "import sys\nprint('one')\nprint('two', file=sys.stderr)\nprint('three', end='')"
        assert run(code) == ["one", "two", "three"]

    def test_a_line_is_logged_while_the_command_still_runs(self, make_job, tmp_path):
        gate, log = tmp_path / "gate", []

        def open_gate(line: str) -> None:
            log.append(line)
            if line == "ready":
                gate.touch()

        code = f"import os\nprint('ready')\nwhile not os.path.exists({str(gate)!r}): os.sched_yield()\nprint('done')"
        CommandRunner(argv=python(code)).run(make_job(), open_gate)
        assert log[1:] == ["ready", "done"]

    def test_output_without_newlines_is_logged_while_the_command_still_runs(self, make_job, tmp_path):
        gate, log = tmp_path / "gate", []

        def open_gate(line: str) -> None:
            log.append(line)
            if line == "....":
                gate.touch()

        code = (
            "import os\nprint('....', end='', flush=True)\n"
            f"while not os.path.exists({str(gate)!r}): os.sched_yield()\nprint('.')"
        )
        CommandRunner(argv=python(code)).run(make_job(), open_gate)
        assert log[1:] == ["....", "."]

    def test_broken_utf8_is_replaced(self, run):
        assert run("import os; os.write(1, b'caf\\xe9 \\xc3\\xa9\\n\\xc3')") == ["caf\ufffd é", "\ufffd"]

    def test_a_very_long_line_comes_in_pieces_and_whole(self, run):
        lines = run("print('x' * 1_000_000)")
        assert "".join(lines) == "x" * 1_000_000 and max(map(len, lines)) <= 8_192

    def test_progress_bars_end_their_lines_with_carriage_returns(self, run):
        assert run("print('10%\\r20%\\r\\n30%')") == ["10%", "20%", "30%"]

    def test_a_command_that_closes_its_output_is_waited_for(self, run, tmp_path):
        run(f"import os, time\nos.close(1); os.close(2)\ntime.sleep(0.5)\nopen({str(tmp_path / 'done')!r}, 'w')")
        assert (tmp_path / "done").exists()


class TestEnd:
    def test_an_exit_code_fails_the_job_with_its_last_lines(self, run):
        with pytest.raises(
            JobFailed, match=r"ended with exit code 3; its last lines: 2 \| 3 \| 4 \| 5 \| oh no"
        ) as caught:
            run("import sys\nfor n in range(6): print(n)\nprint('oh no'); sys.exit(3)")
        assert str(caught.value).startswith("staging_query/team.orders.daily__1: ")

    def test_one_that_takes_too_long_is_ended_with_all_it_started(self, make_job, tmp_path):
        child = tmp_path / "child"
        argv = ["sh", "-c", f"sleep 1000 & echo $! > {child}.new; mv {child}.new {child}; echo hanging; wait"]
        runner = CommandRunner(argv=argv, timeout=2)
        with pytest.raises(
            JobFailed, match=r"sh was not done in 2s, which is all that runner\.timeout allows.* hanging .* more time"
        ):
            runner.run(make_job(), print)
        assert not is_alive(int(child.read_text()))
        assert not runner.was_stopped  # by nobody

    def test_one_that_is_done_in_time_ends_as_ever(self, run):
        assert run("print(1)", timeout=60) == ["1"]

    def test_a_signal_is_named(self, run):
        with pytest.raises(JobFailed, match="ended with signal SIGKILL"):
            run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")

    @pytest.mark.parametrize(
        ("argv", "message"),
        [
            (["no-such-command-here"], "cannot start 'no-such-command-here': .*No such file"),
            (["/etc/hostname"], "cannot start '/etc/hostname': .*(Permission denied|Exec format)"),
        ],
    )
    def test_a_command_that_cannot_start_is_one_sentence(self, make_job, argv, message):
        with pytest.raises(JobRefused, match=message):
            CommandRunner(argv=argv).run(make_job(), print)

    def test_a_missing_folder_is_named(self, run):
        with pytest.raises(JobRefused, match="/no/such/folder: No such file"):
            run("", cwd="/no/such/folder")

    def test_a_grandchild_that_holds_the_output_open_holds_up_nothing_and_is_ended(self, run, tmp_path):
        pid = tmp_path / "pid"
        code = (
            "import subprocess, sys\n"
            "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
            f"open({str(pid)!r}, 'w').write(str(child.pid)); print('leaving')"
        )
        assert run(code) == ["leaving"]
        assert not is_alive(int(pid.read_text()))


class TestStop:
    def stopped_run(self, make_job, code: str, *, grace: float, ready: str = "ready") -> tuple[list[str], JobFailed]:
        runner, log, waiting = CommandRunner(argv=python(code), grace_seconds=grace), [], threading.Event()

        def tell(line: str) -> None:
            log.append(line)
            if line.startswith(ready):
                waiting.set()

        def stop() -> None:
            waiting.wait()
            runner.stop()

        stopper = threading.Thread(target=stop)
        stopper.start()
        with pytest.raises(JobFailed) as caught:
            runner.run(make_job(), tell)
        stopper.join()
        return log, caught.value

    def test_a_command_is_asked_first_and_may_tidy_up(self, make_job):
        code = (
            "import signal, sys, time\n"
            "def tidy(*_): print('tidied'); sys.exit(0)\n"
            "signal.signal(signal.SIGTERM, tidy); print('ready'); time.sleep(600)"
        )
        log, error = self.stopped_run(make_job, code, grace=60)
        assert log[-1] == "tidied" and "was stopped before it was done" in str(error)

    def test_one_that_does_not_listen_is_killed_with_all_it_started(self, make_job):
        deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        child = deaf + "print(0); time.sleep(600)"
        code = (
            deaf + "import os, subprocess, sys\n"
            f"command = [sys.executable, '-u', '-c', {child!r}]\n"
            "child = subprocess.Popen(command, stdout=subprocess.PIPE)\n"
            "child.stdout.readline(); print('ready', os.getpid(), child.pid); time.sleep(600)"
        )
        log, _ = self.stopped_run(make_job, code, grace=0.3)
        pids = [int(pid) for pid in log[-1].split()[1:]]
        assert len(pids) == 2 and not any(map(is_alive, pids))

    def test_an_exception_from_a_signal_handler_leaves_nothing_running(self, make_job):
        pids: list[int] = []

        def interrupt(*_):
            raise KeyboardInterrupt

        def tell(line: str) -> None:
            if line.startswith("ready"):
                pids.append(int(line.split()[1]))
                os.kill(os.getpid(), signal.SIGUSR1)

        before = signal.signal(signal.SIGUSR1, interrupt)
        try:
            with pytest.raises(KeyboardInterrupt):
                code = "import os, time; print('ready', os.getpid()); time.sleep(600)"
                CommandRunner(argv=python(code)).run(make_job(), tell)
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert pids and not is_alive(pids[0])

    def test_a_stop_before_the_start_holds(self, make_job, tmp_path):
        runner = CommandRunner(argv=python(f"open({str(tmp_path / 'ran')!r}, 'w')"))
        runner.stop()
        with pytest.raises(JobFailed, match="stopped before it was started"):
            runner.run(make_job(), print)
        assert not (tmp_path / "ran").exists()


WORKER = """
import sys
from pathlib import Path
from airflow_chronon.engine.command import Command, CommandRunner

def tell(line):
    children = [stat.parent.name for stat in Path("/proc").glob("[0-9]*/stat") if stat.read_text().split()[3] == me]
    print(line, *children, flush=True)

me = Path("/proc/self").readlink().name
CommandRunner(grace_seconds=float(sys.argv[1])).run_command(Command("job/team.deaf", sys.argv[2:]), tell)
"""


class TestKilledWorker:
    def test_the_command_ends_with_its_worker_and_so_does_what_watched_over_it(self):  # C28
        deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        child = deaf + "print(0); time.sleep(600)"
        code = (
            deaf + "import subprocess, sys\n"
            f"child = subprocess.Popen([sys.executable, '-u', '-c', {child!r}], stdout=subprocess.PIPE)\n"
            "child.stdout.readline(); print('ready', child.pid); time.sleep(600)"
        )
        argv = [sys.executable, "-u", "-c", WORKER, "0.3", sys.executable, "-u", "-c", code]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True) as worker:
            line = next(line for line in worker.stdout if line.startswith("ready"))
            os.killpg(worker.pid, signal.SIGKILL)
        pids = [int(pid) for pid in line.split()[1:]]
        assert len(pids) == 3, "what the command started, the command, the watchdog"
        assert all(map(comes_to_its_end, pids))


class TestEnvironment:
    def test_the_runs_variables_win_over_the_settings_and_those_over_the_process(self, make_job, monkeypatch):  # H5
        monkeypatch.setenv("A", "process")
        monkeypatch.setenv("B", "process")
        log: list[str] = []
        runner = CommandRunner(
            argv=python("import os; print(os.environ['A'], os.environ['B'], os.environ['C'])"),
            env={"B": "set", "C": "set"},
        )
        runner.run(make_job(environment={"C": "run"}), log.append)
        assert log[-1] == "process set run"

    def test_a_window_of_the_worker_is_none_of_the_runs(self, run, monkeypatch):  # H7
        monkeypatch.setenv("HOPS_START_TIME", "2020-01-01T00:00:00Z")
        monkeypatch.setenv("CHRONON_PARTITION", "2020-01-01")
        assert run("import os; print([name for name in os.environ if name[:5] in ('HOPS_', 'CHRON')])") == ["[]"]

    def test_airflows_own_secrets_are_withheld_unless_they_are_named(self, run, monkeypatch):  # S5
        for name in ("AIRFLOW__CORE__FERNET_KEY", "AIRFLOW_CONN_MINE", "AIRFLOW_VAR_X", "_AIRFLOW_WWW_USER_PASSWORD"):
            monkeypatch.setenv(name, "secret")
        code = "import os; print(sorted(name for name, text in os.environ.items() if text == 'secret'))"
        assert run(code) == ["[]"]
        assert run(code, pass_env=["AIRFLOW_CONN_*"]) == ["['AIRFLOW_CONN_MINE']"]
        assert run(code, env={"AIRFLOW_VAR_X": "secret"}) == ["['AIRFLOW_VAR_X']"]

    def test_the_watchdog_holds_none_either(self, make_job, monkeypatch):  # S5
        monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", "f3rnet")
        held: list[bytes] = []

        def look(line: str) -> None:
            stats = {stat.parent: stat.read_text().split() for stat in Path("/proc").glob("[0-9]*/stat")}
            mine = [folder for folder, stat in stats.items() if stat[3] == str(os.getpid())]
            held.extend((folder / "environ").read_bytes() for folder in mine)

        runner = CommandRunner(argv=python("print('ready')\nimport time; time.sleep(600)"))

        def tell(line: str) -> None:
            if line == "ready":
                look(line)
                runner.stop()

        with pytest.raises(JobFailed):
            runner.run(make_job(), tell)
        assert len(held) >= 2 and not any(b"f3rnet" in each for each in held)

    def test_the_command_runs_in_the_given_folder(self, run, tmp_path):
        assert run("import os; print(os.getcwd())", cwd=str(tmp_path)) == [str(tmp_path)]

    def test_nothing_is_read_by_a_shell(self, make_job, tmp_path):
        runner, log = CommandRunner(argv=["echo", "{name}; touch x", "$HOME", "`id`"], cwd=str(tmp_path)), []
        runner.run(make_job(), log.append)
        assert log[-1] == "team.orders.daily__1; touch x $HOME `id`" and not (tmp_path / "x").exists()
