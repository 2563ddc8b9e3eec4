"""Sensors: tasks that start deferred and end in the triggerer. No worker ever holds one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, ClassVar

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException
from airflow.triggers.base import StartTriggerArgs

from airflow_chronon.airflow.operators.run_request import REQUEST_TEMPLATES
from airflow_chronon.airflow.sensors.triggers import BACKSTOP_SECONDS, FAILURE, GateTrigger, PartitionTrigger
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.partitioned import PartitionedSchedule
from airflow_chronon.core.schedules.serialization import schedule_to_json
from airflow_chronon.core.settings.model import SensorSettings
from airflow_chronon.core.waits.dependencies import TableDependency
from airflow_chronon.core.waits.outlook import TableWriter
from airflow_chronon.core.waits.serialization import dependency_to_json, writer_to_json

_TRIGGERS = "airflow_chronon.airflow.sensors.triggers"


class _StartsDeferred(BaseOperator):
    """An operator whose whole life is one trigger; the trigger's request fields are its templates.

    ``conf`` and ``output`` are whose run it is and the table that the run writes, None when there is none (C22).
    """

    template_fields = tuple(REQUEST_TEMPLATES)
    trigger_class: ClassVar[type[PartitionTrigger] | type[GateTrigger]]

    def __init__(
        self,
        *,
        trigger_kwargs: dict[str, Any],
        trigger_timeout: timedelta | None = None,
        conf: str = "",
        output: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(retries=0, **kwargs)
        for name, template in REQUEST_TEMPLATES.items():
            setattr(self, name, template)
        self._trigger_kwargs = trigger_kwargs | {"conf": conf, "output": output or ""}
        self._trigger_timeout = trigger_timeout
        self.start_from_trigger = True
        self.start_trigger_args = StartTriggerArgs(
            trigger_cls=f"{_TRIGGERS}.{self.trigger_class.__name__}",
            trigger_kwargs=self._trigger_kwargs | REQUEST_TEMPLATES,
            next_method="execute_complete",
            timeout=trigger_timeout,
        )

    def execute(self, context: Any) -> None:
        """Only where nobody starts tasks in a triggerer, as in ``dag.test()``."""
        rendered = {name: getattr(self, name) for name in REQUEST_TEMPLATES}
        self.defer(
            trigger=self.trigger_class(**self._trigger_kwargs, **rendered),
            method_name="execute_complete",
            timeout=self._trigger_timeout,
        )

    def execute_complete(self, context: Any, event: Any = None) -> None:
        """Reached only by a task that fails, with the reason: the trigger ends all others itself."""
        raise AirflowFailException(event[FAILURE] if isinstance(event, dict) and FAILURE in event else str(event))


class PartitionSensor(_StartsDeferred):
    """Waits for what a run needs of one table; one task per table, however many modes need it.

    ``dependencies`` holds, per mode, how the mode reads the table. ``settings.timeout`` counts from the moment the wait
    began, restarts of the triggerer included. ``writers`` are the modes of this tree's confs that write the table (C30);
    ``snapshot`` is where the reconciler keeps what is known of their deployment.
    """

    trigger_class = PartitionTrigger
    ui_color = "#e6f1f2"

    def __init__(
        self,
        *,
        table: str,
        schedule: PartitionedSchedule,
        dependencies: Mapping[Mode, tuple[TableDependency, ...]],
        catalog: dict[str, Any],
        settings: SensorSettings,
        writers: Iterable[TableWriter] = (),
        snapshot: str = "",
        **kwargs: Any,
    ) -> None:
        by_mode = {mode.value: [dependency_to_json(each) for each in found] for mode, found in dependencies.items()}
        trigger_kwargs = {
            "schedule": schedule_to_json(schedule),
            "dependencies": by_mode,
            "table": table,
            "catalog": catalog,
            "poll_seconds": settings.poll_seconds,
            "on_timeout": settings.on_timeout.value,
            "on_never": settings.on_never.value,
            "writers": json.dumps([writer_to_json(writer) for writer in writers]),
        }
        if any(each.max_lag is not None for found in dependencies.values() for each in found):
            trigger_kwargs["timeout"] = settings.timeout
        if trigger_kwargs["writers"] != "[]" and snapshot:
            trigger_kwargs["snapshot"] = snapshot
        timeout = timedelta(seconds=settings.timeout + BACKSTOP_SECONDS)
        super().__init__(trigger_kwargs=trigger_kwargs, trigger_timeout=timeout, **kwargs)


class GateSensor(_StartsDeferred):
    """Holds one mode back until its own fire, or skips it (C10)."""

    trigger_class = GateTrigger
    ui_color = "#f2efe6"

    def __init__(self, *, mode: Mode, schedule: PartitionedSchedule, **kwargs: Any) -> None:
        super().__init__(trigger_kwargs={"schedule": schedule_to_json(schedule), "mode": mode.value}, **kwargs)
