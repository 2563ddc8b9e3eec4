"""What the work tasks of confs and of jobs share: arguments, a runner that can be stopped, how its end reads in Airflow."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from airflow.sdk.bases.operator import TRIGGER_FAIL_REPR
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException, AirflowTaskTimeout

from airflow_chronon.airflow.operators.remote import RemoteTask
from airflow_chronon.airflow.operators.supervisor_watch import ends_with_supervisor
from airflow_chronon.core.settings.environment import given_texts
from airflow_chronon.core.settings.model import TaskDefaults
from airflow_chronon.engine.protocol import NothingToWrite
from airflow_chronon.errors import ChrononError, Fault, JobFailed, JobRefused

#: Priorities above any that settings may give. What ends runs goes before what begins them, else a backlog of work keeps
#: partitions that are there from being told of; the reconciler goes before all.
BEFORE_ANY_WORK, BEFORE_ALL = 1_500_000_000, 2_000_000_000
NO_WORK = frozenset({"pool"})  #: what a wait, a gate or the check at the end leaves out: a pool limits work


class WorkMixin:
    """For operators that work through a runner."""

    _stop: Callable[[], None] | None = None  #: ends the work that is under way
    _cancel: Callable[[], None] | None = None  #: ends the job elsewhere that it waits for
    _is_killed = False  #: a task goes on for the seconds until its worker is ended, and starts nothing more

    def follow(
        self, remote: RemoteTask, context: Mapping[str, Any], *, before_submitting: Callable[[], None] = lambda: None
    ) -> None:
        """Submit the job of this task, or go on with the one that is there; returns when it has ended well, and defers as long
        as it has not. ``before_submitting`` may raise, so that nothing is submitted yet."""
        self._cancel = remote.cancel
        with self.stops_by(remote.stop):
            trigger = remote.advance(context, self.log.info, before_submitting=before_submitting)  # type: ignore[attr-defined]
        if trigger is not None:
            self.defer(trigger=trigger, method_name="execute")  # type: ignore[attr-defined]

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Any) -> Any:
        """Airflow calls it when a wait is over. A trigger that failed, such as one that its triggerer cannot import, tells nothing
        of what was waited for: the task asks itself, and spends no try."""
        if next_method != TRIGGER_FAIL_REPR:
            return super().resume_execution(next_method, next_kwargs, context)  # type: ignore[misc]
        why = (next_kwargs or {}).get("error", "unknown")
        self.log.warning("the trigger of this task failed (%s): asking without it", why)  # type: ignore[attr-defined]
        return self.execute(context)  # type: ignore[attr-defined]

    @contextmanager
    def stops_by(self, stop: Callable[[], None]) -> Iterator[None]:
        """While work is under way: it ends when Airflow stops the task, and when the task's supervisor is gone."""
        self._stop = stop
        if self._is_killed:
            stop()
        with ends_with_supervisor(stop):
            yield

    def on_kill(self) -> None:
        self._is_killed = True
        if self._stop is not None:
            self._stop()
        if self._cancel is not None:
            self._cancel()


@contextmanager
def ends_as_airflow_task() -> Iterator[None]:
    """A job that failed may be tried again; one that was refused fails for good, in one sentence; one that has nothing to
    write is skipped."""
    try:
        yield
    except NothingToWrite as error:
        raise AirflowSkipException(str(error)) from None
    except JobFailed as error:
        kind = AirflowFailException if isinstance(error, JobRefused) else AirflowException
        raise kind(str(error)) from None
    except ChrononError as error:
        raise AirflowFailException(str(error)) from None


def given_variables(context: Mapping[str, Any]) -> dict[str, str]:
    """The variables that were set on the run itself: they win over all others (H5). Bad ones fail the task for good."""
    try:
        return given_texts((context["dag_run"].conf or {}).get("env"))
    except ChrononError as error:
        raise AirflowFailException(str(error)) from None


def texts(given: object) -> dict[str, str]:
    """Variables as they were written, as text; anything but a mapping is none."""
    return {str(name): str(value) for name, value in given.items()} if isinstance(given, Mapping) else {}


def task_arguments(defaults: TaskDefaults, *, leave_out: Collection[str] = ()) -> Mapping[str, Any]:
    """The arguments for a task, without those to ``leave_out``.

    Raises ``ChrononError`` for a callback that cannot be imported.
    """
    left_out = {*leave_out, "on_late_callback"}  # the reconciler's, and no task's
    arguments = {name: value for name, value in defaults.model_dump(exclude_none=True).items() if name not in left_out}
    callback = arguments.get("on_failure_callback")
    if callback is not None:
        arguments["on_failure_callback"] = imported_function(callback, field="task_defaults.on_failure_callback")
    return arguments


def imported_function(path: str, *, field: str) -> Callable[..., Any]:
    """The function of a dotted path. Raises ``ChrononError`` as :func:`imported`, and for what is none."""
    remedy = "give the dotted path of a function that the workers can import"
    found = imported(path, field=field, remedy=remedy)
    if not callable(found):
        raise ChrononError(Fault("settings", field, f"{path!r} is not a function", remedy))
    function: Callable[..., Any] = found
    return function


def imported(path: str, *, field: str, remedy: str) -> Any:
    """What a dotted path names. Raises ``ChrononError`` whatever its module does on import: one that ends its process
    or is interrupted would take the DAGs of every team away (S1)."""
    try:
        return pkgutil.resolve_name(path)
    except AirflowTaskTimeout:
        raise  # Airflow's own, for the whole file
    except BaseException as error:
        problem = f"{path!r} cannot be imported: {_said(error)}"
        raise ChrononError(Fault("settings", field, problem, remedy)) from None


def _said(error: BaseException) -> str:
    """What an error says; that of a module which somebody else wrote may fail to."""
    try:
        text = str(error)
    except Exception:
        text = ""
    return text if isinstance(error, ImportError | AttributeError | ValueError) else f"{type(error).__name__} {text}"
