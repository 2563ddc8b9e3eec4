"""The settings of a deployment and of each conf: what ``chronon.yaml`` may say (C12, C17, C25, C29, H8 to H14)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, IntEnum
from fnmatch import fnmatchcase
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema, model_validator

from airflow_chronon.core.bounds import MAX_INTEGER, MAX_NAME
from airflow_chronon.core.calendar.instants import DAY
from airflow_chronon.core.settings.catalogs import CatalogSection
from airflow_chronon.core.settings.kinds import over
from airflow_chronon.core.settings.max_lag import MaxLagSettings
from airflow_chronon.core.settings.runners import RunnerSection
from airflow_chronon.core.settings.values import (
    Bound,
    Branch,
    Duration,
    Emails,
    Owner,
    Pool,
    Retries,
    Strict,
    Text,
    Weight,
)
from airflow_chronon.core.settings.variables import REFERENCE_SCHEMA
from airflow_chronon.core.waits.dependencies import Lookback


class Environment(IntEnum):
    """Where a conf may be deployed (C12); absent means PROD only."""

    PROD = 0
    CANARY = 1


class Pause(Enum):
    """Whether someone may pause a DAG by hand (C25)."""

    FORBID = "forbid"
    ALLOW = "allow"


class Covers(Enum):
    """Which daily partitions a coarse fire writes (C9)."""

    ELAPSED = "elapsed"
    NEWEST = "newest"


class Unscheduled(Enum):
    """What becomes of a conf without an enabled schedule (C12)."""

    KEEP = "keep"
    OMIT = "omit"


class OnRetire(Enum):
    """What becomes of the runs in progress of a conf that is gone (C23)."""

    FINISH = "finish"
    STOP = "stop"


class OnTimeout(Enum):
    """How a wait ends when its time is up."""

    FAIL = "fail"
    SKIP = "skip"


class OnNever(Enum):
    """How a wait ends for partitions that no run will ever write (C30)."""

    FAIL = "fail"
    SKIP = "skip"
    WAIT = "wait"


class Guarded(Enum):
    """What a conf may set of itself only where the deployment allows it (S6)."""

    RUNNER = "runner"
    CATALOG = "catalog"
    CALLBACKS = "callbacks"


def _environment(value: Any) -> Any:
    name = value.strip().upper() if isinstance(value, str) else value.name if isinstance(value, Environment) else ""
    if name in Environment.__members__:
        return Environment[name]
    raise ValueError(f"an environment is {' or '.join(e.name.lower() for e in Environment)}")


class SensorSettings(Strict):
    """How waits poll and how long they last, in seconds."""

    poll_seconds: int = Field(default=60, ge=1, le=MAX_INTEGER, description="Seconds between two looks at a table.")
    timeout: Duration = Field(default=2 * DAY, description="How long a wait lasts, such as 90s, 15m, 6h or 2d.")
    on_timeout: OnTimeout = Field(default=OnTimeout.FAIL, description="What becomes of the run when that time is up.")
    on_never: OnNever = Field(
        default=OnNever.FAIL, description="What becomes of a run that waits for partitions which no run will write."
    )


class TaskDefaults(Strict):
    """Given to every task as they are; a pool only to those that do the work."""

    pool: Pool | None = Field(default=None, description="Of the tasks that do the work.")
    queue: Pool | None = Field(default=None, description="Of every task.")
    priority_weight: Weight | None = Field(default=None, description="Of every task.")
    email: Emails | None = Field(default=None, description="Who hears of a failure.")
    on_failure_callback: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_][\w.]*\.\w+$",
        max_length=MAX_NAME,
        description="Called when a task fails: a dotted path such as package.module.function.",
    )
    on_late_callback: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_][\w.]*\.\w+$",
        max_length=MAX_NAME,
        description="Called once for each partition that is late by freshness: a dotted path.",
    )


class ConfSettings(Strict):
    """What may be set for all confs, for those that match an override, and in a conf's own ``customJson``."""

    start_date: Bound | None = Field(
        default=None, description="The earliest partition: a partition, a day, or an instant with Z."
    )
    end_date: Bound | None = Field(
        default=None, description="The last partition, inclusive; an instant: no partition ends after it."
    )
    catchup: bool = Field(
        default=False, description="true: one run per missed interval, oldest first; needs start_date."
    )
    max_catchup_runs: int | None = Field(
        default=None, ge=1, le=MAX_INTEGER, description="Keeps only the newest so many of what was missed."
    )
    skip_to_date: Bound | None = Field(default=None, description="Drops what was missed before it.")
    max_active_runs: int = Field(
        default=4,
        ge=1,
        le=MAX_INTEGER,
        description="How many runs may be in one and the same work task; a due run waits.",
    )
    max_pending_runs: int = Field(default=64, ge=1, le=MAX_INTEGER, description="Unfinished runs of one DAG.")
    enabled: bool = Field(default=True, description="false: no fires; replays go on.")
    pause: Pause = Field(default=Pause.FORBID, description="forbid: a DAG that was paused by hand is unpaused.")
    unscheduled: Unscheduled = Field(
        default=Unscheduled.KEEP, description="Whether confs without a schedule have a DAG."
    )
    on_retire: OnRetire = Field(
        default=OnRetire.FINISH, description="What becomes of the work in progress of a conf that is gone."
    )
    lookback: Lookback | None = Field(
        default=None,
        description="What a hole in the older part of a range does; by default require for tables of this tree, warn for others.",
    )
    covers: Covers = Field(default=Covers.ELAPSED, description="What a weekly or monthly fire writes.")
    freshness: Duration | None = Field(
        default=None, description="How long after its end a partition that has not landed is late, such as 2h."
    )
    max_lag: MaxLagSettings | None = Field(
        default=None, description="After how long a run goes on without the newest partitions of a table, and how many."
    )
    retries: Retries = Field(default=2, description="Of the tasks that do the work.")
    owner: Owner | None = Field(default=None, description="By default the team.")
    task_defaults: TaskDefaults = Field(default=TaskDefaults(), description="What Airflow's tasks get.")
    sensor: SensorSettings = Field(default=SensorSettings(), description="How waits poll and end.")
    catalog: CatalogSection = Field(default=CatalogSection(), description="Where partitions are seen.")
    runner: RunnerSection = Field(default=RunnerSection(), description="Who does the work.")


class Override(ConfSettings):
    """Settings for the confs that match: a ``type/name`` glob, or a tag such as ``team:checkout``."""

    match: str = Field(description="A glob over type/name such as group_by/checkout.*, or a tag such as team:checkout.")

    def applies_to(self, key: str, tags: tuple[str, ...]) -> bool:
        return any(fnmatchcase(text, self.match) for text in (key, *tags))


class TeamSettings(Strict):
    """What belongs to one team (S6)."""

    output_namespaces: tuple[Text, ...] = Field(
        description="Globs: where alone it may write, and where nobody else may."
    )

    def owns(self, namespace: str) -> bool:
        return any(fnmatchcase(namespace, pattern) for pattern in self.output_namespaces)


class Settings(ConfSettings):
    """One deployment."""

    branch: Branch | None = Field(
        default=None,
        description="By default [chronon] branch of Airflow, else the branch of the DAG bundle, else default_branch.",
    )
    default_branch: Branch = Field(default="main", description="DAG ids of other branches begin with their name.")
    environment: Annotated[
        Environment,
        BeforeValidator(_environment),
        WithJsonSchema({"anyOf": [{"enum": ["prod", "canary", "PROD", "CANARY"]}, REFERENCE_SCHEMA]}),
    ] = Field(default=Environment.PROD, description="Confs of other environments are not deployed.")
    base_root: Text | None = Field(
        default=None,
        description="A checkout of the default branch: another branch then deploys only the confs that differ.",
    )
    confs_may_set: tuple[Guarded, ...] = Field(
        default=(), description="What confs may set of themselves, in their customJson: programs and places."
    )
    teams: dict[Text, TeamSettings] = Field(
        default_factory=dict, description="The namespaces of a team: it writes in no other, and nobody else in them."
    )
    overrides: tuple[Override, ...] = Field(default=(), description="Settings for some confs; the first match wins.")

    @model_validator(mode="before")
    @classmethod
    def _empty_file(cls, value: Any) -> Any:
        return {} if value is None else value

    def for_conf(self, key: str, tags: tuple[str, ...], own: ConfSettings | None = None) -> ConfSettings:
        """What holds for one conf: the file's first matching override, then the conf's own, then the file's defaults."""
        layers: list[ConfSettings] = [self]
        if own is not None:
            layers.append(own)
        layers.extend([override for override in self.overrides if override.applies_to(key, tags)][:1])
        if len(layers) == 1:
            return self
        return _merged(layers)

    def with_override(self, override: Override) -> ConfSettings:
        """What one override makes of the file's defaults."""
        return _merged([self, override])


def _merged(layers: Sequence[ConfSettings]) -> ConfSettings:
    merged: dict[str, Any] = {}
    for layer in layers:
        for name in layer.model_fields_set & set(ConfSettings.model_fields):
            merged[name] = _laid_over(merged.get(name), getattr(layer, name))
    return ConfSettings.model_construct(**{**_defaults(), **merged})


def _laid_over(earlier: Any, later: Any) -> Any:
    """A later value over an earlier one; sections key by key."""
    if not (isinstance(earlier, BaseModel) and isinstance(later, BaseModel)):
        return later
    given = [each.model_dump(exclude_unset=True) for each in (earlier, later)]
    return type(later).model_validate(over(*given))


def _defaults() -> dict[str, Any]:
    return {name: field.get_default(call_default_factory=True) for name, field in ConfSettings.model_fields.items()}
