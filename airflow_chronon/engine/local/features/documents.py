"""The fields of compiled GroupBys and Joins that computing needs, beyond what scheduling reads."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from airflow_chronon.core.confs.documents import (
    Aggregation,
    BootstrapPart,
    EntitySource,
    EventSource,
    Flag,
    GroupBy,
    Join,
    JoinPart,
    JoinSource,
    ModelTransforms,
    Query,
    Source,
    Window,
)
from airflow_chronon.engine.local.computation import refused
from airflow_chronon.engine.protocol import JobRequest

_Model = TypeVar("_Model", bound=BaseModel)

#: The kinds of sources as confs spell them, and as attributes.
_KINDS = {
    "events": "events",
    "entities": "entities",
    "joinSource": "join_source",
    "modelTransforms": "model_transforms",
}


class Operation(IntEnum):
    """Chronon's aggregations, as the compiler numbers them."""

    MIN = 0
    MAX = 1
    FIRST = 2
    LAST = 3
    UNIQUE_COUNT = 4
    APPROX_UNIQUE_COUNT = 5
    COUNT = 6
    SUM = 7
    AVERAGE = 8
    VARIANCE = 9
    SKEW = 10
    KURTOSIS = 11
    APPROX_PERCENTILE = 12
    LAST_K = 13
    FIRST_K = 14
    TOP_K = 15
    BOTTOM_K = 16
    HISTOGRAM = 17
    APPROX_FREQUENT_K = 18
    APPROX_HEAVY_HITTERS_K = 19
    UNIQUE_TOP_K = 20


class FeatureQuery(Query):
    """What a source selects: columns, filters, and the columns of time and of mutations."""

    selects: dict[str, str] | None = None
    wheres: tuple[str, ...] | None = None
    time_column: str | None = None
    mutation_time_column: str | None = None
    reversal_column: str | None = None
    setups: tuple[str, ...] | None = None


class FeatureEvents(EventSource):
    query: FeatureQuery = Field(default_factory=FeatureQuery)


class FeatureEntities(EntitySource):
    query: FeatureQuery = Field(default_factory=FeatureQuery)


class FeatureJoinSource(JoinSource):
    query: FeatureQuery = Field(default_factory=FeatureQuery)


class FeatureSource(Source):
    events: FeatureEvents | None = None
    entities: FeatureEntities | None = None
    join_source: FeatureJoinSource | None = None
    model_transforms: ModelTransforms | None = None

    @property
    def query(self) -> FeatureQuery:
        """The query of whichever kind it is; a model's source has none."""
        kind = self.events or self.entities or self.join_source
        return FeatureQuery() if kind is None else kind.query

    @property
    def kind(self) -> str:
        """The field of the conf that holds it."""
        return next(name for name, attribute in _KINDS.items() if getattr(self, attribute) is not None)

    @property
    def is_entities(self) -> bool:
        """Whether it is a snapshot per partition: entities, or a Join whose left is."""
        if self.join_source is not None:
            left = self.join_source.join.left
            return left.entities is not None
        return self.entities is not None


class FeatureAggregation(Aggregation):
    """One operation over a column, in each of its windows and buckets."""

    input_column: str
    operation: Operation = Operation.LAST
    arg_map: dict[str, str] = Field(default_factory=dict)
    windows: tuple[Window, ...] | None = None
    buckets: tuple[str, ...] | None = None


class Derivation(BaseModel):
    """An output column that is an SQL expression over computed ones; ``*`` keeps all of them."""

    name: str
    expression: str


class FeatureGroupBy(GroupBy):
    sources: tuple[FeatureSource, ...] = Field(min_length=1)
    key_columns: tuple[str, ...]
    aggregations: tuple[FeatureAggregation, ...] | None = None
    derivations: tuple[Derivation, ...] | None = None
    key_filter: Any = None


class FeatureJoinPart(JoinPart):
    """A GroupBy within a Join, with its prefix and the left's names of its keys."""

    group_by: FeatureGroupBy
    prefix: str | None = None
    key_mapping: dict[str, str] | None = None

    @property
    def left_keys(self) -> tuple[str, ...]:
        """The left's column for each key column of the GroupBy, in its order."""
        by_right = {right: left for left, right in (self.key_mapping or {}).items()}
        return tuple(by_right.get(key, key) for key in self.group_by.key_columns)


class FeatureBootstrapPart(BootstrapPart):
    """A table that already holds features of a Join."""

    query: FeatureQuery = Field(default_factory=FeatureQuery)
    key_columns: tuple[str, ...] | None = None


class FeatureJoin(Join):
    left: FeatureSource
    join_parts: tuple[FeatureJoinPart, ...] = ()
    bootstrap_parts: tuple[FeatureBootstrapPart, ...] | None = None
    derivations: tuple[Derivation, ...] | None = None
    row_ids: tuple[str, ...] | None = None
    use_long_names: Flag = False
    online_external_parts: Any = None
    skew_keys: Any = None
    label_parts: Any = None


def read_group_by(job: JobRequest) -> FeatureGroupBy:
    """The GroupBy of a job. Raises :class:`airflow_chronon.errors.JobRefused` naming the first field that is wrong."""
    return _read(job, FeatureGroupBy, job.document)


def read_join(job: JobRequest) -> FeatureJoin:
    """The Join of a job. Raises :class:`airflow_chronon.errors.JobRefused` naming the first field that is wrong."""
    return _read(job, FeatureJoin, job.document)


def _read(job: JobRequest, model: type[_Model], document: Mapping[str, Any]) -> _Model:
    try:
        return model.model_validate(document)
    except ValidationError as error:
        detail = error.errors()[0]
        where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in detail["loc"]).lstrip(".")
        raise refused(job, where, detail["msg"].lower(), "compile it again with zipline compile") from None
