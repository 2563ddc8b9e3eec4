"""Operators of somebody else's that do the work of a run, for tests: what they were given goes into a file."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import BaseOperator, BaseOperatorLink, ResumableJobMixin
from airflow.triggers.base import BaseTrigger, TriggerEvent


class ReportLink(BaseOperatorLink):
    """The page of a job; there is none before it is submitted."""

    name = "Report"

    def get_link(self, operator: BaseOperator, *, ti_key: Any) -> str:
        return f"https://jobs.example/{operator.submitted}"  # type: ignore[attr-defined]


class WritingOperator(BaseOperator):
    """Appends what it was given to a file, and writes a partition below ``table_folder`` where it has one."""

    template_fields = ("note",)
    operator_extra_links = (ReportLink(),)

    def __init__(
        self, *, seen: str, note: Any = None, table_folder: str = "", fails: bool = False, **more: Any
    ) -> None:
        super().__init__(**more)
        self.seen, self.note, self.table_folder, self.fails = seen, note, table_folder, fails

    def execute(self, context: Any) -> Any:
        self.submitted = "job-1"
        self.tell("execute")
        if self.fails:
            raise ValueError("the cluster says no")
        if self.table_folder:
            folder = Path(self.table_folder)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "_SUCCESS").touch()
        return "written"

    def on_kill(self) -> None:
        self.tell("killed")

    def tell(self, what: str, **more: Any) -> None:
        line = {"what": what, "note": self.note, "task_id": self.task_id, "dag_id": self.dag.dag_id, **more}
        with Path(self.seen).open("a") as file:
            file.write(f"{json.dumps(line)}\n")


class DeferringOperator(WritingOperator):
    """Submits a job, then waits for a file without a worker, then goes on in a method of its own."""

    def __init__(self, *, awaits: str, **more: Any) -> None:
        super().__init__(**more)
        self.awaits = awaits

    def execute(self, context: Any) -> None:
        self.tell("submitted", pid=os.getpid())
        kwargs = {"job": "job-1"}
        timeout = timedelta(hours=1)
        self.defer(trigger=FileTrigger(path=self.awaits), method_name="goes_on", kwargs=kwargs, timeout=timeout)

    def goes_on(self, context: Any, event: Any, job: str = "job-1") -> Any:
        self.submitted = job
        self.tell("went on", job=job, event=event)
        return WritingOperator.execute(self, context)


class FileTrigger(BaseTrigger):
    """Fires when a file is there."""

    def __init__(self, *, path: str) -> None:
        super().__init__()
        self.path = path

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{__name__}.FileTrigger", {"path": self.path}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        while not Path(self.path).exists():
            await asyncio.sleep(0.2)
        yield TriggerEvent("there")


class StartingOperator(WritingOperator):
    """Starts a process and reads its environment, once inherited and once with more."""

    def execute(self, context: Any) -> None:
        show = [sys.executable, "-c", "import json, os; print(json.dumps(dict(os.environ)))"]
        inherited = json.loads(subprocess.run(show, capture_output=True, check=True).stdout)
        given = {**os.environ, "MORE": "1"}
        more = json.loads(subprocess.run(show, capture_output=True, check=True, env=given).stdout)
        os.system(f"env > {self.seen}.shell")
        self.tell("started", inherited=inherited, more=more, own=dict(os.environ))


class ResumableOperator(ResumableJobMixin, WritingOperator):
    """Finds its job again by Airflow's own means; its jobs end well at once."""

    def execute(self, context: Any) -> Any:
        return self.execute_resumable(context)

    def submit_job(self, context: Any) -> str:
        self.tell("submitted")
        return "job-1"

    def get_job_status(self, external_id: Any, context: Any) -> str:
        return "SUCCEEDED"

    def is_job_active(self, status: str) -> bool:
        return status == "RUNNING"

    def is_job_succeeded(self, status: str) -> bool:
        return status == "SUCCEEDED"

    def poll_until_complete(self, external_id: Any, context: Any) -> None:
        pass

    def get_job_result(self, external_id: Any, context: Any) -> None:
        self.tell("result")


def not_an_operator(**arguments: Any) -> None:
    """A function, which no runner can be."""
