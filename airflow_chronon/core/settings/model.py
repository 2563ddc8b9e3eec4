"""The settings of a deployment and of each conf: what ``chronon.yaml`` may say (C12, C17, C25, C29, H8 to H14)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, IntEnum
from fnmatch import fnmatchcase
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from airflow_chronon.core.calendar.instants import DAY
from airflow_chronon.core.settings.catalogs import CatalogSection
from airflow_chronon.core.settings.kinds import over
from airflow_chronon.core.settings.runners import RunnerSection
from airflow_chronon.core.settings.values import MAX_INTEGER, Bound, Duration, Strict, Text
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


def _environment(value: Any) -> Any:
    name = value.strip().upper() if isinstance(value, str) else value.name if isinstance(value, Environment) else ""
    if name in Environment.__members__:
        return Environment[name]
    raise ValueError(f"an environment is {' or '.join(e.name.lower() for e in Environment)}")


class SensorSettings(Strict):
    """How waits poll and how long they last, in seconds."""

    poll_seconds: int = Field(default=60, ge=1, le=MAX_INTEGER)
    timeout: Duration = 2 * DAY
    on_timeout: OnTimeout = OnTimeout.FAIL
    on_never: OnNever = OnNever.FAIL


class TaskDefaults(Strict):
    """Given to every task as they are; a pool only to those that do the work."""

    pool: str | None = None
    queue: str | None = None
    priority_weight: int | None = None
    email: str | tuple[str, ...] | None = None
    on_failure_callback: str | None = Field(default=None, pattern=r"^[A-Za-z_][\w.]*\.\w+$")


class ConfSettings(Strict):
    """What may be set for all confs, for those that match an override, and in a conf's own ``customJson``."""

    start_date: Bound | None = None
    end_date: Bound | None = None
    catchup: bool = False
    max_catchup_runs: int | None = Field(default=None, ge=1, le=MAX_INTEGER)
    skip_to_date: Bound | None = None
    max_active_runs: int = Field(default=4, ge=1, le=MAX_INTEGER)
    max_pending_runs: int = Field(default=64, ge=1, le=MAX_INTEGER)
    enabled: bool = True
    pause: Pause = Pause.FORBID
    unscheduled: Unscheduled = Unscheduled.KEEP
    on_retire: OnRetire = OnRetire.FINISH
    lookback: Lookback | None = None
    covers: Covers = Covers.ELAPSED
    retries: int = Field(default=2, ge=0, le=MAX_INTEGER)
    owner: str | None = None
    task_defaults: TaskDefaults = TaskDefaults()
    sensor: SensorSettings = SensorSettings()
    catalog: CatalogSection = CatalogSection()
    runner: RunnerSection = RunnerSection()


class Override(ConfSettings):
    """Settings for the confs that match: a ``type/name`` glob, or a tag such as ``team:checkout``."""

    match: str

    def applies_to(self, key: str, tags: tuple[str, ...]) -> bool:
        return any(fnmatchcase(text, self.match) for text in (key, *tags))


class Settings(ConfSettings):
    """One deployment."""

    branch: Text | None = None
    default_branch: Text = "main"
    environment: Annotated[Environment, BeforeValidator(_environment)] = Environment.PROD
    base_root: Text | None = None
    overrides: tuple[Override, ...] = ()

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
