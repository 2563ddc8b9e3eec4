"""Tasks whose work an operator of somebody else's does: the runner ``operator``.

The operator is made in the worker, when its task begins and again when it goes on, so that its arguments are filled in there:
neither they nor its class stand in a serialised DAG. It works in the place of the task: with its context, its state and its
XComs. It defers on its own triggers, and goes on in its own methods; it finds a job that it has submitted before by its own
means, by the state of the task or by the token of the job. So a worker that is lost ends what runs on its machine, and nothing
else; what runs elsewhere is ended when somebody stops the task.
"""

from __future__ import annotations

import contextvars
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

from airflow.sdk import DAG, BaseOperator, BaseOperatorLink
from airflow.sdk.bases.operator import TRIGGER_FAIL_REPR, ExecutorSafeguard
from airflow.sdk.exceptions import AirflowException, AirflowTaskTimeout, TaskDeferred

from airflow_chronon.airflow.masking import mask
from airflow_chronon.airflow.operators.supervisor_watch import ends_with_supervisor
from airflow_chronon.airflow.operators.work import ends_as_airflow_task, imported
from airflow_chronon.core.settings.environment import passed_on
from airflow_chronon.engine.confined import confined
from airflow_chronon.engine.operator_arguments import GivenOperator
from airflow_chronon.engine.withheld import withheld
from airflow_chronon.errors import ChrononError, Fault

_OWN = "operator."  #: before the names of methods in which an operator goes on
#: What a task takes whatever its class: the settings say it, and our own task has it.
_OF_TASKS = frozenset(inspect.signature(BaseOperator.__init__).parameters) - {"self", "kwargs", "do_xcom_push"}
_MISSING = "install the package that has it where DAGs are parsed and where tasks run, or correct runner.class"
_GRACE_SECONDS = 4.0  #: as a command has, and for the same reason: Airflow kills a stopped task after 5


class JobLink(BaseOperatorLink):
    """The page of the job: the first link that the operator itself has."""

    name = "Job"

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
        inner = getattr(operator, "inner", None)
        for link in () if inner is None else inner.operator_extra_links:
            with suppress(Exception):  # before there is a job many have none, each in a way of its own
                if found := link.get_link(inner, ti_key=ti_key):
                    return str(found)
        return ""


@dataclass(frozen=True)
class StateSinceClear:
    """Airflow's store of a task's state, as an operator sees it: what it kept before the task was cleared is not there.

    Airflow keeps it for ever. An operator that finds the job of then, ended well, would write nothing and be green. As with
    :meth:`airflow_chronon.engine.remote.Attempt.token`, a clear of a task that was running is none.
    """

    store: Any
    most_tries: int  #: of the task: it grows when the task is cleared

    def get(self, key: str, default: Any = None) -> Any:
        return self.store.get(self._own(key), default)

    def set(self, key: str, value: Any, **how: Any) -> None:
        self.store.set(self._own(key), value, **how)

    def delete(self, key: str) -> None:
        self.store.delete(self._own(key))

    def clear(self) -> None:
        self.store.clear()

    def _own(self, key: str) -> str:
        return f"{key}.{self.most_tries}"


class Delegates(BaseOperator):
    """For operators that let another one work in their place, of the class that the settings name.

    It goes before the operator's own class, which says what the other one is given for a run: :meth:`_given`.
    """

    operator_extra_links = (JobLink(),)
    inner: BaseOperator | None = None  #: the operator, once it is at work

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.template_fields = (*self.template_fields, "arguments")
        renderers = self.template_fields_renderers
        self.template_fields_renderers = {**renderers, "arguments": "json"}  # type: ignore[misc]
        self.arguments: Mapping[str, Any] = {}  # filled in when the task starts: they stand in no serialised DAG

    def render_template_fields(self, context: Any, jinja_env: Any = None) -> None:
        """Show the arguments too, ``${NAME}`` as it is written; :meth:`execute` says what is wrong with them."""
        super().render_template_fields(context, jinja_env)
        with suppress(ChrononError, AirflowException):
            self.arguments = self._given(context).shown

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Any) -> Any:
        """Let the operator go on where it deferred, or the task where it waited."""
        if next_method == TRIGGER_FAIL_REPR:  # that of the operator, as a rule: its job may have failed so
            return BaseOperator.resume_execution(self, next_method, next_kwargs, context)
        if not next_method.startswith(_OWN):
            return super().resume_execution(next_method, next_kwargs, context)
        inner, given = self._made(context)
        goes_on = partial(inner.resume_execution, next_method.removeprefix(_OWN), next_kwargs)
        return self._works(inner, given, goes_on, context)

    def on_kill(self) -> None:
        if self.inner is not None:
            self.inner.on_kill()

    def _given(self, context: Mapping[str, Any]) -> GivenOperator:
        """Raises ``ChrononError`` for settings that are wrong once filled in, and where there is nothing to write."""
        raise NotImplementedError

    def _made(self, context: Mapping[str, Any]) -> tuple[BaseOperator, GivenOperator]:
        """The operator, ready to work; whatever stands against it fails the task for good, in one sentence."""
        with ends_as_airflow_task():
            given = self._given(context)
            mask(given.secrets)
            kind = imported(given.class_path, field="runner.class", remedy=_MISSING)
            inner = _instance(kind, given, task_id=self.task_id, dag_id=self.dag_id)
        return inner.prepare_for_execution(), given

    def _works(self, inner: BaseOperator, given: GivenOperator, work: Callable[[Any], Any], context: Any) -> Any:
        self.inner = inner
        state = StateSinceClear(context["task_state_store"], context["ti"].max_tries)
        context = {**context, "task": inner, "task_state_store": state}
        here = contextvars.copy_context()
        here.run(ExecutorSafeguard.tracker.set, inner)  # it is at work as a task is, not called by one
        with _as_task_of(given.pass_env):
            try:
                inner.pre_execute(context)
                result = here.run(work, context)
                inner.post_execute(context, result)
            except TaskDeferred as deferred:
                deferred.method_name = f"{_OWN}{deferred.method_name}"
                raise
        return result if inner.do_xcom_push else None


def check_operator(settings: Mapping[str, Any]) -> None:
    """Raises ``ChrononError`` for a class that is not there, as far as that shows without its import, and for arguments that
    belong to the task.

    Its import is left to the worker: that of a provider takes seconds, and the DAGs of a deployment are parsed all the time.
    """
    for name in sorted(_OF_TASKS & (settings.get("arguments") or {}).keys()):
        problem, remedy = f"{name} is an argument of the task itself", "set it in chronon.yaml, or under task_defaults"
        raise ChrononError(Fault("settings", f"runner.arguments.{name}", problem, remedy))
    path = str(settings.get("class"))
    module, _, name = path.rpartition(".")
    try:
        spec = find_spec(module)
        source = "" if spec is None else getattr(spec.loader, "get_source", lambda _: None)(module)
    except AirflowTaskTimeout:
        raise  # Airflow's own, for the whole file
    except BaseException as error:  # a package above it may do anything on import (S1)
        raise _no_class(path, f"{type(error).__name__} {error}") from None
    if spec is None:
        raise _no_class(path, f"there is no module {module}")
    if source is not None and name not in source:
        raise _no_class(path, f"{module} has no {name}")


def _no_class(path: str, why: str) -> ChrononError:
    return ChrononError(Fault("settings", "runner.class", f"{path!r} cannot be imported: {why}", _MISSING))


def _instance(kind: Any, given: GivenOperator, *, task_id: str, dag_id: str) -> BaseOperator:
    """An operator of a class, in a DAG of its own that is called as the task's is."""
    if not (isinstance(kind, type) and issubclass(kind, BaseOperator)):
        problem = f"{given.class_path!r} is not the class of an operator"
        raise ChrononError(
            Fault("settings", "runner.class", problem, "give one that derives from Airflow's BaseOperator")
        )
    dag = DAG(dag_id, schedule=None, auto_register=False)
    try:
        return kind(task_id=task_id, dag=dag, **given.arguments)
    except AirflowTaskTimeout:
        raise
    except Exception as error:
        said = " ".join(str(error).split())  # Airflow says it in two lines
        problem = f"{given.class_path} does not take these arguments: {given.secrets.hidden(said)}"
        raise ChrononError(
            Fault("settings", "runner.arguments", problem, "see the documentation of the class")
        ) from None


@contextmanager
def _as_task_of(pass_env: tuple[str, ...]) -> Iterator[None]:
    """What holds while an operator works: its processes end with it, and with the supervisor; they get no secrets of
    Airflow's own (S5, C28).

    Where the supervisor is gone, only this process ends and those beside it: Airflow starts the task anew within seconds, and
    then the operator finds its job elsewhere.
    """
    with (
        ends_with_supervisor(lambda: os._exit(1)),
        confined(grace_seconds=_GRACE_SECONDS, environment=passed_on(os.environ)),
        withheld(pass_env=pass_env),
    ):
        yield
