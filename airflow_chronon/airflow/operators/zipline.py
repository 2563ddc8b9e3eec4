"""Tasks whose job Chronon's driver submits to a cloud: the driver prints its id and returns, and the task follows the job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from airflow.triggers.base import BaseTrigger

from airflow_chronon.airflow.operators.clusters import Clusters
from airflow_chronon.airflow.operators.remote import RemoteTask
from airflow_chronon.engine.command import Command
from airflow_chronon.engine.job_commands import run_for_id
from airflow_chronon.engine.protocol import Log
from airflow_chronon.engine.remote import Answer, RemoteJobs
from airflow_chronon.engine.zipline import PRINTED_ID, Cloud, Place, ZiplineRunner, driver_variables, place_of


@dataclass
class ZiplineJobs:
    """Jobs that the driver submits; they are found by the token that it hands on as their name."""

    runner: ZiplineRunner
    clusters: Clusters
    find_place: Callable[[], Place]  #: where they run; may raise ``JobRefused``
    submitting: Callable[[str], Command]  #: the command that submits a job with a token

    is_idempotent = False  #: a second submission is refused at best
    found_with = ""  #: the service decides whether its jobs have a name

    @property
    def can_find(self) -> bool:
        return self.find_place().cloud is not Cloud.AZURE

    @property
    def was_stopped(self) -> bool:
        return self.runner.was_stopped

    def submit(self, token: str, log: Log, on_id: Callable[[str], None]) -> None:
        place = self.find_place()
        command = self.submitting(token)
        run_for_id(self.runner, command, PRINTED_ID, log, lambda printed: on_id(place.job_id(printed)))

    def find(self, token: str) -> str | None:
        return self.clusters.find(self.find_place(), token)

    def status(self, job_id: str) -> Answer:
        return self.clusters.status(job_id)

    def cancel(self, job_id: str) -> str:
        return self.clusters.cancel(job_id)


@dataclass
class ZiplineTask(RemoteTask):
    """The job of one try of one task, submitted by the driver."""

    document: Mapping[str, Any] = field(default_factory=dict, repr=False)  #: the compiled conf

    def advance(
        self, context: Mapping[str, Any], log: Callable[[str], None], *, before_submitting: Callable[[], None]
    ) -> BaseTrigger | None:
        def prepare() -> None:
            before_submitting()
            self._clusters.check(self._place)  # a job that nobody can ask after would be waited for in vain

        return super().advance(context, log, before_submitting=prepare)

    def _jobs(self) -> RemoteJobs:
        assert isinstance(self.runner, ZiplineRunner)
        return ZiplineJobs(self.runner, self._clusters, lambda: self._place, self.submitting)

    @property
    def _clusters(self) -> Clusters:
        assert isinstance(self.commands, Clusters)
        return self.commands

    @cached_property
    def _place(self) -> Place:
        environment = self.runner.environment_of(self.variables)
        mode = self.placeholders["mode"]
        variables = driver_variables(self.document, mode=mode, environment=environment)
        return place_of(variables, conf=self.attempt.conf)
