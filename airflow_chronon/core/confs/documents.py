"""The shape of compiled confs, as far as scheduling reads them (the zipline dialect).

Booleans are 0 or 1, enums are integers, unset fields are absent, windows are a length and a unit. Unknown fields are
ignored: the compiler owns them.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from functools import cached_property
from typing import Annotated, Any, NamedTuple, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from airflow_chronon.core.bounds import (
    MAX_CRON,
    MAX_EXPRESSION,
    MAX_NAME,
    MAX_NAMESPACE,
    MAX_TABLES,
    KeyPath,
    name_problem,
    path_text,
    quoted,
    unstorable,
)
from airflow_chronon.core.calendar.instants import DAY, HOUR, LONGEST_WINDOW, MINUTE
from airflow_chronon.errors import Fault, Rejected


class ConfType(Enum):
    """What a conf defines; the value is how people write it."""

    STAGING_QUERY = "staging_query"
    GROUP_BY = "group_by"
    JOIN = "join"


class Dialect(Enum):
    """How a compiled conf is written, and which driver runs it."""

    CURRENT = "current"
    OLDER = "older"  #: that of ``production/``, translated when it is read


class DependencySpec(NamedTuple):
    """A partition that is waited for as it is written down: ``table/column={{ ds }}/sub=…``."""

    text: str
    start: str | None = None  #: the first label of the table that is read
    end: str | None = None  #: the last one
    fits_no_source: bool = False


def unquoted(table: str) -> str:
    """The name of a table, which may be written in backticks or other quotes."""
    return table.translate(_QUOTES)


_QUOTES = str.maketrans("", "", "`\"'")


class Accuracy(IntEnum):
    TEMPORAL = 0
    SNAPSHOT = 1


class _Document(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, extra="ignore", frozen=True, protected_namespaces=(), defer_build=True
    )


class TimeUnit(IntEnum):
    HOURS = 0
    DAYS = 1
    MINUTES = 2


_SECONDS = {TimeUnit.HOURS: HOUR, TimeUnit.DAYS: DAY, TimeUnit.MINUTES: MINUTE}


class Window(_Document):
    length: int = 0  #: compilers of early 2026 leave a zero out
    time_unit: TimeUnit

    def model_post_init(self, _context: Any) -> None:
        if abs(self.seconds) > LONGEST_WINDOW:
            raise ValueError(f"a window of {self.length} {self.time_unit.name.lower()} is longer than 500 years")

    @property
    def seconds(self) -> int:
        return self.length * _SECONDS[self.time_unit]


def _flag(value: Any) -> Any:
    return value not in (None, 0, "0", "", False) if isinstance(value, int | str | None) else value


#: 0 and 1 as the compiler writes them; absent is false.
Flag: TypeAlias = Annotated[bool, BeforeValidator(_flag)]


_BOUND = "bound"  #: the type of an error that brings its whole message


def _name(most: int) -> AfterValidator:
    """Refuses a text that Airflow's lists and addresses do not take (S1)."""

    def judge(value: str) -> str:
        problem = name_problem(value, most=most)
        if problem is not None:
            raise PydanticCustomError(_BOUND, "{problem}", {"problem": f"{quoted(value)} {problem}"})
        return value

    return AfterValidator(judge)


def _expression(value: str) -> str:
    if len(value) > MAX_EXPRESSION:
        problem = f"the expression has {len(value)} characters, and no more than {MAX_EXPRESSION} are taken"
        raise PydanticCustomError(_BOUND, "{problem}", {"problem": problem})
    return value


#: What DAGs, tasks, tags, assets and pages show: tables, columns, teams, labels.
Name: TypeAlias = Annotated[str, _name(MAX_NAME)]
Namespace: TypeAlias = Annotated[str, _name(MAX_NAMESPACE)]
#: A schedule, as it stands in the description of a timetable.
ScheduleText: TypeAlias = Annotated[str, _name(MAX_CRON)]
#: What is asked of a catalog.
Expression: TypeAlias = Annotated[str, AfterValidator(_expression)]


def seconds(window: Window | None) -> int | None:
    """The length of a window, or None when it is absent."""
    return None if window is None else window.seconds


class TableInfo(_Document):
    table: Name = ""
    partition_column: Name | None = None
    partition_format: Name | None = None
    partition_interval: Window | None = None
    partition_offset: Window | None = None
    time_partitioned: Flag = False
    is_cumulative: Flag = False
    trigger_expr: Expression | None = None


class _CommonConf(_Document):
    common: dict[str, str] = Field(default_factory=dict)


class ExecutionInfo(_Document):
    offline_schedule: ScheduleText | None = None
    online_schedule: ScheduleText | None = None
    schedule_cron: ScheduleText | None = None  #: what compilers of early 2026 wrote in place of an offline schedule
    output_table_info: TableInfo | None = None
    historical_backfill: Flag | None = None
    conf: _CommonConf | None = None
    env: _CommonConf | None = None


class MetaData(_Document):
    name: Name
    output_namespace: Namespace
    team: Name = ""
    version: Name | None = None
    online: Flag = False
    environments: tuple[int, ...] | None = None
    custom_json: str | None = None
    offline_schedule: ScheduleText | None = None  #: where the older dialect has it
    execution_info: ExecutionInfo = Field(default_factory=ExecutionInfo)

    def common(self, key: str) -> str | None:
        """A merged team or conf property such as ``spark.chronon.partition.column``."""
        conf = self.execution_info.conf
        return (conf.common.get(key) or None) if conf else None


class PartMetaData(MetaData):
    """The metadata of a Join's right part: compilers of early 2026 name no namespace there, and nothing needs it."""

    output_namespace: Namespace = ""


class Query(_Document):
    partition_column: Name | None = None
    partition_format: Name | None = None
    partition_interval: Window | None = None
    partition_offset: Window | None = None
    partition_lag: Window | None = None
    time_partitioned: Flag = False
    sub_partitions_to_wait_for: tuple[Name, ...] | None = None
    start_partition: Name | None = None
    end_partition: Name | None = None
    trigger_expr: Expression | None = None


class EventSource(_Document):
    table: Name
    topic: Name | None = None
    query: Query = Field(default_factory=Query)
    is_cumulative: Flag = False


class EntitySource(_Document):
    snapshot_table: Name
    mutation_table: Name | None = None
    mutation_topic: Name | None = None
    query: Query = Field(default_factory=Query)


class JoinSource(_Document):
    join: Join
    query: Query = Field(default_factory=Query)


class ModelTransforms(_Document):
    meta_data: MetaData


class Source(_Document):
    """Exactly one of the four kinds."""

    events: EventSource | None = None
    entities: EntitySource | None = None
    join_source: JoinSource | None = None
    model_transforms: ModelTransforms | None = None

    def model_post_init(self, _context: Any) -> None:
        present = [kind for kind in type(self).model_fields if getattr(self, kind) is not None]
        if len(present) != 1:
            raise ValueError(
                f"a source is exactly one of events, entities, joinSource and modelTransforms, not {len(present)} of them"
            )

    @property
    def has_topic(self) -> bool:
        """Whether it streams; for a join source, whether its left does (C21)."""
        if self.join_source is not None:
            return self.join_source.join.left.has_topic
        if self.events is not None:
            return bool(self.events.topic)
        return self.entities is not None and bool(self.entities.mutation_topic)


class Aggregation(_Document):
    windows: tuple[Window, ...] | None = None


class GroupBy(_Document):
    meta_data: MetaData
    sources: Annotated[tuple[Source, ...], Field(min_length=1)]
    aggregations: tuple[Aggregation, ...] | None = None
    accuracy: Accuracy | None = None

    @property
    def is_temporal(self) -> bool:
        """Point in time; when nothing is said, if a source has a topic (C21)."""
        if self.accuracy is not None:
            return self.accuracy is Accuracy.TEMPORAL
        return any(source.has_topic for source in self.sources)

    @cached_property
    def longest_window(self) -> int | None:
        """Seconds of the largest aggregation window; None when any is unwindowed or there is none (C16)."""
        aggregations = self.aggregations or ()
        if not aggregations or any(not aggregation.windows for aggregation in aggregations):
            return None
        return max(window.seconds for aggregation in aggregations for window in aggregation.windows or ())


class PartGroupBy(GroupBy):
    """A GroupBy as a Join carries it: what is read are its sources, never its table."""

    meta_data: PartMetaData


class JoinPart(_Document):
    group_by: PartGroupBy


class BootstrapPart(_Document):
    table: Name
    query: Query = Field(default_factory=Query)


class Join(_Document):
    meta_data: MetaData
    left: Source
    join_parts: tuple[JoinPart, ...] = ()
    bootstrap_parts: tuple[BootstrapPart, ...] | None = None
    derivations: tuple[Any, ...] | None = None


class TableDependencyInfo(_Document):
    table_info: TableInfo
    start_offset: Window | None = None
    end_offset: Window | None = None
    start_cut_off: Name | None = None
    end_cut_off: Name | None = None


class StagingQuery(_Document):
    meta_data: MetaData
    query: str
    table_dependencies: tuple[TableDependencyInfo, ...] | None = None


Document: TypeAlias = StagingQuery | GroupBy | Join

_MODELS: dict[ConfType, type[StagingQuery] | type[GroupBy] | type[Join]] = {
    ConfType.STAGING_QUERY: StagingQuery,
    ConfType.GROUP_BY: GroupBy,
    ConfType.JOIN: Join,
}


def read_document(conf_type: ConfType, raw: object) -> Document:
    """Check the shape of a compiled conf. Raises :class:`airflow_chronon.errors.Rejected` with every fault at once."""
    refuse_unstorable(raw)
    try:
        document = _MODELS[conf_type].model_validate(raw)
    except ValidationError as error:
        # a list whose items are all bad is called too short as well: once is enough
        details = [detail for detail in error.errors() if detail["type"] != "too_short" or not detail["input"]]
        raise Rejected(tuple(_shape_fault(conf_type, detail) for detail in details)) from None
    if (count := table_count(document)) > MAX_TABLES:
        problem = f"it reads {count} tables, and one conf reads at most {MAX_TABLES}"
        raise Rejected([Fault("S2", "", problem, "divide it into several confs")])
    return document


def refuse_unstorable(raw: object) -> None:
    """Raise :class:`airflow_chronon.errors.Rejected` for what no database and no page takes (S1)."""
    bad = unstorable(raw)
    if bad is not None:
        raise Rejected([Fault("S1", path_text(bad.path), bad.problem, bad.remedy)])


def table_count(document: Document) -> int:
    """How many references to tables a conf holds; each of them is resolved, and each table is a task."""
    if isinstance(document, StagingQuery):
        return len(document.table_dependencies or ())
    if isinstance(document, GroupBy):
        return len(document.sources)
    parts = sum(len(part.group_by.sources) for part in document.join_parts)
    return 1 + len(document.bootstrap_parts or ()) + parts


def _shape_fault(conf_type: ConfType, detail: Any) -> Fault:
    path: KeyPath = detail["loc"]
    where = path_text(path)
    if detail["type"] == "missing":
        kind = conf_type.value.replace("_", " ")
        return Fault("input", where, f"the {kind} lacks this field", "compile it again with zipline compile")
    if detail["type"] == _BOUND:
        return Fault("S1", where, detail["ctx"]["problem"], "shorten it, or remove the character")
    shown = "null" if detail["input"] is None else quoted(detail["input"])
    if detail["type"] == "value_error":
        problem = str(detail["msg"]).removeprefix("Value error, ")
    elif belongs := _BELONGS.get(detail["type"]):
        problem = f"{belongs.format(**detail.get('ctx', {}))} belongs here, not {shown}"
    else:
        problem = f"{detail['msg'][:1].lower()}{detail['msg'][1:]}, got {shown}"
    remedy = "is this file output of zipline compile?" if not where else "compile it again with zipline compile"
    return Fault("input", where, problem, remedy)


#: What pydantic misses, as people read it.
_BELONGS = {
    "model_type": "a JSON object",
    "dict_type": "a JSON object",
    "tuple_type": "a list",
    "too_short": "a list of at least {min_length}",
    "string_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "0 or 1",
    "bool_parsing": "0 or 1",
    "enum": "one of {expected}",
}
