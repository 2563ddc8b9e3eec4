"""The command runner: runs a process given as an argument list, never a shell string.

Its output goes to the task's log, and its exit code decides whether the run succeeded.
"""

from __future__ import annotations

import codecs
import os
import selectors
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from airflow_chronon.core.calendar.instants import duration_text
from airflow_chronon.core.settings.environment import passed_on
from airflow_chronon.core.settings.variables import Secrets
from airflow_chronon.engine.argv import build_argv, check_template, kept_from_driver
from airflow_chronon.engine.protocol import JobRequest, Log
from airflow_chronon.engine.watchdog import watchdog
from airflow_chronon.errors import Fault, JobFailed, JobRefused

_POLL_SECONDS = 0.2
_QUIET_SECONDS = 1.0  # after this much silence a line that has no end yet is shown
_LONGEST_LINE = 8_192
_LAST_LINES = 5
_SHOWN_OF_A_LINE = 300


class LineSplitter:
    """Splits the output of a command into lines.

    Broken UTF-8 is replaced, long lines are cut, carriage returns end a line as newlines do.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def feed(self, data: bytes, *, final: bool = False) -> Iterator[str]:
        """The lines that are complete now; with ``final`` also the last, unfinished one."""
        text = self._rest + self._decoder.decode(data, final)
        held = "\r" if text.endswith("\r") and not final else ""  # the newline after it may be on its way
        text = text.removesuffix(held) if held else text
        *lines, self._rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in lines:
            yield from self._cut(line)
        while len(self._rest) > _LONGEST_LINE:
            yield self._rest[:_LONGEST_LINE]
            self._rest = self._rest[_LONGEST_LINE:]
        self._rest += held
        if final:
            yield from self.flush()

    def flush(self) -> Iterator[str]:
        """The unfinished line, if there is one."""
        if self._rest:
            yield self._rest.removesuffix("\r")
            self._rest = ""

    @staticmethod
    def _cut(line: str) -> Iterator[str]:
        for start in range(0, len(line) or 1, _LONGEST_LINE):
            yield line[start : start + _LONGEST_LINE]


@dataclass(frozen=True)
class Command:
    """A process to be started: its argument list and the variables of its run."""

    conf: str  #: the conf or job that it is for, as people write it
    argv: Sequence[str] = field(repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)  #: the run's variables (H5)
    #: The arguments as the settings have them, without what the environment holds (S4); by default as they are.
    unfilled_argv: Sequence[str] | None = None

    @property
    def shown(self) -> Sequence[str]:
        """The arguments for messages."""
        return self.argv if self.unfilled_argv is None else self.unfilled_argv


@dataclass
class CommandRunner:
    """Runs one command at a time, in a session of its own, so that all it starts can be ended together.

    The command's environment is the process's without the variables of a window and without Airflow's own secrets, save
    those that ``pass_env`` names (S5); then ``env``, then the run's (H5). A runner that was stopped runs nothing more. Raises
    :class:`airflow_chronon.errors.Rejected` when built with an unknown placeholder.
    """

    #: A template that replaces the driver's command line.
    argv: Sequence[str] | None = field(default=None, repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    pass_env: Sequence[str] = ()
    cwd: str | None = field(default=None, repr=False)
    grace_seconds: float = 4.0  #: from SIGTERM to SIGKILL; Airflow kills a stopped worker after 5
    timeout: int | None = None  #: seconds until a command is given up
    unfilled_argv: Sequence[str] | None = None  #: ``argv`` as the settings have it, for messages; by default itself
    secrets: Secrets = field(default=Secrets(), kw_only=True)  #: what no message may hold (S4)
    _stopped: threading.Event = field(default_factory=threading.Event, init=False, repr=False)
    _is_late: bool = field(default=False, init=False, repr=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False, repr=False)
    _asked: float | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.unfilled_argv is None:
            self.unfilled_argv = self.argv
        if self.argv is not None:
            check_template(self.argv, field="runner.argv")

    def run(self, job: JobRequest, log: Log) -> None:
        """Run the command of a conf to its end; see :class:`airflow_chronon.engine.protocol.Runner`."""
        self.run_command(self.command_of(job), log)

    def command_of(self, job: JobRequest) -> Command:
        """The command that does the work of a conf."""
        argv, shown = (build_argv(job, template=each) for each in (self.argv, self.unfilled_argv))
        variables = job.environment if self.argv is not None else self.variables_for_driver(job)
        return Command(job.conf, argv, variables, shown)

    def variables_for_driver(self, job: JobRequest) -> dict[str, str]:
        """The run's variables, and what keeps the driver from being loaded by a conf's."""
        kept = kept_from_driver(job, environment=self.environment_of(job.environment))
        return {**kept, **job.environment}

    def run_command(self, command: Command, log: Log) -> None:
        """Run a command to its end; ends and raises as :meth:`run` does."""
        argv = command.shown
        log(f"command: {list(argv)}")
        last: deque[str] = deque(maxlen=_LAST_LINES)

        def tell(line: str) -> None:
            last.append(self.secrets.hidden(line)[:_SHOWN_OF_A_LINE])
            log(line)

        if self._stopped.is_set():
            raise _failed(command, f"{argv[0]} was stopped before it was started", last, remedy="run it again")
        with self._started(command) as process, self._in_time():
            assert process.stdout is not None
            self._follow(process, process.stdout, tell)
        code = process.returncode
        if self._is_late:
            problem = (
                f"{argv[0]} was not done in {duration_text(self.timeout or 0)}, which is all that runner.timeout allows"
            )
            raise _failed(command, problem, last, remedy="see what it waits for, or give it more time")
        if self._stopped.is_set():
            raise _failed(command, f"{argv[0]} was stopped before it was done", last, remedy="run it again")
        if code:
            how = f"exit code {code}" if code > 0 else f"signal {_signal_name(-code)}"
            raise _failed(command, f"{argv[0]} ended with {how}", last, remedy="see the log above")

    def stop(self) -> None:
        """SIGTERM to the command and all it started; SIGKILL follows after the grace. Returns at once."""
        self._stopped.set()
        process = self._process
        if process is not None:
            self._ask(process)

    @property
    def was_stopped(self) -> bool:
        """Whether somebody told it to stop: it starts nothing more."""
        return self._stopped.is_set() and not self._is_late

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        """Stop the command that takes longer than it may."""
        if self.timeout is None:
            yield
            return
        timer = threading.Timer(self.timeout, self._give_up)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _give_up(self) -> None:
        self._is_late = not self._stopped.is_set()
        self.stop()

    @contextmanager
    def _started(self, command: Command) -> Iterator[subprocess.Popen[bytes]]:
        with watchdog(grace_seconds=self.grace_seconds, environment=passed_on(os.environ)) as watch:
            process = self._start(command)
            watch(process.pid)  # the leader of a session of its own, so its group's id too
            self._asked = None
            self._process = process
            try:
                yield process
            finally:
                self._end(process)
                self._process = None

    def environment_of(self, given: Mapping[str, str]) -> dict[str, str]:
        """The whole environment of a command, with the variables of its run (S5)."""
        return {**passed_on(os.environ, pass_env=self.pass_env), **self.env, **given}

    def _start(self, command: Command) -> subprocess.Popen[bytes]:
        environment, shown = self.environment_of(command.environment), command.shown
        try:
            return subprocess.Popen(
                command.argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=self.cwd,
                env=environment,
                start_new_session=True,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            is_place = isinstance(error, NotADirectoryError) or (self.cwd and not os.path.isdir(self.cwd))
            place = self.secrets.hidden(str(self.cwd)) if is_place else shown[0]
            text = f"cannot start {shown[0]!r}: {place}: {getattr(error, 'strerror', None) or error}"
            remedy = "install it on the worker, or set the runner's argv and cwd"
            raise JobRefused(Fault("runner", "argv", text, remedy), conf=command.conf) from None

    def _follow(self, process: subprocess.Popen[bytes], output: IO[bytes], tell: Log) -> None:
        """Tell every line until the command has ended, or has closed its output and is to stop."""
        splitter, spoke = LineSplitter(), time.monotonic()
        for data in self._chunks(process, output):
            if data:
                spoke = time.monotonic()
                lines = splitter.feed(data)
            else:
                lines = splitter.flush() if time.monotonic() - spoke > _QUIET_SECONDS else iter(())
            for line in lines:
                tell(line)
        for line in splitter.feed(b"", final=True):
            tell(line)
        while process.poll() is None:  # it closed its output and works on
            if self._stopped.wait(_POLL_SECONDS):
                return  # _end() asks, waits and kills

    def _chunks(self, process: subprocess.Popen[bytes], output: IO[bytes]) -> Iterator[bytes]:
        """The output as it comes, and an empty chunk now and then while there is none.

        Ends when the output does, or the command: what it leaves running may hold the output open for ever.
        """
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            while True:
                ended = process.poll() is not None
                if selector.select(0 if ended else _POLL_SECONDS):
                    data = os.read(output.fileno(), 65_536)
                    if not data:
                        return
                    yield data
                elif ended:
                    return
                else:
                    yield b""
                if self._stopped.is_set() and self._ask(process) + self.grace_seconds < time.monotonic():
                    _signal_group(process, signal.SIGKILL)

    def _ask(self, process: subprocess.Popen[bytes]) -> float:
        """SIGTERM, once: a second one would break into the tidying up that the first one started. Says when it went."""
        if self._asked is None:
            self._asked = time.monotonic()
            _signal_group(process, signal.SIGTERM)
        return self._asked

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Leave nothing of the command's session running, whatever ended the run."""
        deadline = self._ask(process) + self.grace_seconds
        while _group_alive(process) and time.monotonic() < deadline:
            process.poll()
            time.sleep(_POLL_SECONDS / 10)
        _signal_group(process, signal.SIGKILL)
        process.wait()
        while _group_alive(process):  # a killed process takes a moment to go
            time.sleep(_POLL_SECONDS / 10)
        if process.stdout is not None:
            process.stdout.close()


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)  # the session's leader is the group's too


def _group_alive(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process of the group still runs; one that has ended and that nobody has asked after does not."""
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    members = [stat for stat in map(_stat, Path("/proc").glob("[0-9]*")) if stat and stat[2] == str(process.pid)]
    return not Path("/proc/self").exists() or any(state not in "ZX" for state, *_ in members)


def _stat(folder: Path) -> list[str]:
    """State, parent, group and more of one process; empty when it has gone."""
    try:
        return (folder / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def _failed(command: Command, message: str, last: Sequence[str], *, remedy: str) -> JobFailed:
    shown = (
        f"; its last lines: {' | '.join(line for line in last if line.strip())}" if any(map(str.strip, last)) else ""
    )
    return JobFailed(Fault("runner", "", message + shown, remedy), conf=command.conf)
