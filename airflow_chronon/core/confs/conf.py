"""A compiled conf: its document, where it came from, and what its output table looks like (C3 to C11, C26)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from airflow_chronon.core.bounds import quoted
from airflow_chronon.core.calendar.instants import DAY
from airflow_chronon.core.confs.documents import (
    ConfType,
    DependencySpec,
    Dialect,
    Document,
    GroupBy,
    Join,
    MetaData,
    TableInfo,
    seconds,
)
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionSpec, default_pattern, partition_format
from airflow_chronon.core.schedules.chronon import CronSchedule, check_over_grid, normalised, parse_schedule
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.settings.model import Environment
from airflow_chronon.errors import ChrononError, Fault, Rejected

PARTITION_COLUMN, PARTITION_FORMAT = "spark.chronon.partition.column", "spark.chronon.partition.format"

_Built = TypeVar("_Built")

_NOT_IN_TABLE_NAMES = re.compile(r"[^a-zA-Z0-9_]")


class ConfKey(NamedTuple):
    """What a conf is known by within one branch: names are not unique across types (C26)."""

    conf_type: ConfType
    name: str

    def __str__(self) -> str:
        return f"{self.conf_type.value}/{self.name}"


def table_of(meta: MetaData) -> str:
    """The full name of the table that a conf writes."""
    return f"{meta.output_namespace}.{_NOT_IN_TABLE_NAMES.sub('_', meta.name)}"


@dataclass(frozen=True)
class Conf:
    """One compiled conf of the tree."""

    key: ConfKey
    document: Document = field(repr=False)
    raw: Mapping[str, Any] = field(repr=False, compare=False)
    file: str
    dialect: Dialect = Dialect.CURRENT
    specs: tuple[DependencySpec, ...] = field(default=(), repr=False)  #: what it waits for as it is written (D4)

    @property
    def meta(self) -> MetaData:
        return self.document.meta_data

    @property
    def version(self) -> str | None:
        """``metaData.version``, never guessed from the name's tail (C26)."""
        return self.meta.version

    @property
    def name_without_version(self) -> str:
        """The name as the author wrote it: without the ``__version`` that the compiler appended."""
        return self.key.name.removesuffix(f"__{self.version}") if self.version else self.key.name

    @cached_property
    def table(self) -> str:
        return table_of(self.meta)

    @property
    def upload_table(self) -> str:
        """The table that the upload mode of a GroupBy writes (D3)."""
        return self.table + ("_upload" if self.dialect is Dialect.OLDER else "__upload")

    @property
    def derives(self) -> bool:
        """Whether it is a Join with derivations, whose results go to ``__derived``."""
        return isinstance(self.document, Join) and bool(self.document.derivations)

    @property
    def is_online(self) -> bool:
        return self.meta.online and self.key.conf_type is not ConfType.STAGING_QUERY

    @property
    def writes_only_newest(self) -> bool:
        """Whether history is off: the compiler stores the flag of a GroupBy negated (C9)."""
        flag = self.meta.execution_info.historical_backfill
        if flag is None:
            return False
        return flag if isinstance(self.document, GroupBy) else not flag and isinstance(self.document, Join)

    @cached_property
    def own_words(self) -> Mapping[str, Any]:
        """The author's own words under ``customJson``; empty where there are none or they are no JSON object."""
        try:
            custom: Any = json.loads(self.meta.custom_json or "{}")
        except (ValueError, RecursionError):
            return {}
        return custom if isinstance(custom, dict) else {}

    def runs_in(self, environment: Environment) -> bool:
        """Whether the conf is deployed there; without a list, in production only (C12)."""
        return environment in (self.meta.environments or (Environment.PROD,))

    @cached_property
    def spec(self) -> PartitionSpec:
        """The grid, format and column of the output table (C3, C4, C5, C7). Raises ``ChrononError``."""
        return output_spec(self.meta)

    @property
    def online_schedule_text(self) -> str | None:
        """The online schedule, normalised; None when the conf is not online, or says nothing: then it is off (C10)."""
        return normalised(self.meta.execution_info.online_schedule) if self.is_online else None


def output_spec(meta: MetaData) -> PartitionSpec:
    """The partitioning that a conf's metadata asks for. Raises ``ChrononError`` by the rule that it breaks."""
    execution = meta.execution_info
    info = execution.output_table_info or TableInfo()
    declared, offset = seconds(info.partition_interval), seconds(info.partition_offset)
    interval = declared
    if interval is None:
        schedule = _at("metaData.executionInfo.offlineSchedule", lambda: parse_schedule(execution.offline_schedule))
        interval = schedule.interval if schedule else None
    where = "metaData.executionInfo.outputTableInfo"
    grid = _at(where, lambda: PartitionGrid(DAY if interval is None else interval, offset or 0))
    team_format = meta.common(PARTITION_FORMAT) if interval is None and not offset else None
    pattern = info.partition_format or team_format or default_pattern(grid)
    column = info.partition_column or meta.common(PARTITION_COLUMN) or "ds"
    return _at(where, lambda: PartitionSpec(grid, partition_format(pattern), column))


def schedules_of(conf: Conf) -> dict[Mode, CronSchedule]:
    """The enabled modes of a conf and their schedules (C6, C10, C11). Raises ``Rejected`` with every fault."""
    texts = _schedule_texts(conf)
    enabled, faults = _parse_schedules(texts)
    offline, online = enabled.get("offlineSchedule"), enabled.get("onlineSchedule")
    grid = conf.spec.grid
    for name, schedule in enabled.items():
        by_compiler = name == "onlineSchedule" and offline is None and texts[name] == "@daily"
        fault = check_over_grid(schedule, grid, written_by_compiler=by_compiler)
        if fault is not None:
            faults.append(fault.under(f"metaData.executionInfo.{name}"))
    if grid.interval < DAY and offline and online and normalised(texts["offlineSchedule"]) != texts["onlineSchedule"]:
        problem = f"the online schedule {online.as_written!r} differs from the offline one {offline.as_written!r} on a grid of {grid}"
        remedy = "leave online_schedule unset, so that it follows the offline one"
        faults.append(Fault("C10", "metaData.executionInfo.onlineSchedule", problem, remedy))
    if faults:
        raise Rejected(faults, conf=str(conf.key))
    modes = {Mode.BACKFILL: offline} if offline else {}
    if online:
        modes[Mode.UPLOAD if conf.key.conf_type is ConfType.GROUP_BY else Mode.METADATA_UPLOAD] = online
    return modes


def schedule_faults(conf: Conf) -> list[Fault]:
    """What C1 and C2 have against the schedules, whatever the grid."""
    return _parse_schedules(_schedule_texts(conf))[1]


def unread_schedules(conf: Conf) -> Iterator[Fault]:
    """Schedules that stand where this dialect does not look for them: never silently off."""
    execution = conf.meta.execution_info
    if conf.dialect is Dialect.OLDER:
        yield from _unread_upload_schedule(conf)
    if execution.offline_schedule is not None:
        return
    elsewhere = {
        "metaData.executionInfo.scheduleCron": execution.schedule_cron,
        "metaData.offlineSchedule": conf.meta.offline_schedule,
    }
    for where, text in elsewhere.items():
        if normalised(text) is not None:
            problem = f"the schedule {text!r} is not read from there, so the conf has no offline schedule"
            remedy = "set offline_schedule and compile it with zipline-ai 1.28 or later"
            yield Fault("C10", where, problem, remedy)


def _unread_upload_schedule(conf: Conf) -> Iterator[Fault]:
    """A schedule of uploads alone, which newer compilers of the older dialect put among the author's own words."""
    text = conf.own_words.get("uploadSchedule")
    if conf.is_online and isinstance(text, str) and normalised(text) != normalised(conf.meta.offline_schedule):
        problem = f"the upload schedule {quoted(text)} is not read: uploads follow offlineSchedule"
        yield Fault("D3", "metaData.customJson", problem, "set offline_schedule, or leave upload_schedule out")


def _schedule_texts(conf: Conf) -> dict[str, str | None]:
    return {"offlineSchedule": conf.meta.execution_info.offline_schedule, "onlineSchedule": conf.online_schedule_text}


def _parse_schedules(texts: Mapping[str, str | None]) -> tuple[dict[str, CronSchedule], list[Fault]]:
    """The enabled schedules by field, and the faults of those that cannot be read."""
    enabled: dict[str, CronSchedule] = {}
    faults: list[Fault] = []
    for name, text in texts.items():
        try:
            schedule = parse_schedule(text)
        except ChrononError as error:
            faults.append(error.fault.under(f"metaData.executionInfo.{name}"))
            continue
        if schedule is not None:
            enabled[name] = schedule
    return enabled, faults


def _at(where: str, build: Callable[[], _Built]) -> _Built:
    """Run ``build``; what it raises is placed below the field ``where``."""
    try:
        return build()
    except ChrononError as error:
        raise type(error)(error.fault.under(where)) from None


def output_table(conf: Conf, mode: Mode) -> str | None:
    """The table that a mode writes; None for a mode that writes none."""
    if mode is Mode.METADATA_UPLOAD:
        return None
    return conf.upload_table if mode is Mode.UPLOAD else conf.table


def asset_uri(table: str, *, namespace_prefix: str = "") -> str:
    """The URI of a table's asset; one per table and branch (C24)."""
    namespace, _, name = table.rpartition(".")
    return f"chronon://{namespace_prefix}{namespace}/{name}"
