"""The gauges of a deployment, through Airflow's own metrics: StatsD, with tags or without, Datadog or OpenTelemetry."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from hashlib import sha256

from airflow.sdk.configuration import conf
from airflow.sdk.observability.stats import gauge, normalize_name_for_stats

LONGEST_TAG = 100  #: Airflow drops a StatsD metric of more than 250 characters, its tags included


class Gauge(Enum):
    """What is measured of each DAG; the value is the metric's name."""

    LAG = "chronon.partition_lag_seconds"  #: since the end of the newest partition that has landed
    MISSING = "chronon.partitions_missing"
    LATE = "chronon.partitions_late"
    WAIT = "chronon.wait_seconds"  #: of the run that has waited longest, of those that wait now


def tell(found: Gauge, value: float, *, dag_id: str, team: str) -> None:
    """Give the value of one DAG.

    It is told apart by the tags ``dag_id`` and ``team``. StatsD without tags would keep only the last DAG's value under one
    name, so there both are the end of the name instead, as in Airflow's own names: dots in them are two underscores.
    """
    tags = {"dag_id": _tag(dag_id), "team": _tag(team)}
    if _has_tags():
        gauge(found.value, value, tags=tags)
    else:
        gauge(f"{found.value}.{_level(tags, 'team')}.{_level(tags, 'dag_id')}", value)


def _level(tags: Mapping[str, str], name: str) -> str:
    return tags[name].replace(".", "__")


def _tag(text: str) -> str:
    """The text in the characters that Airflow lets into a metric; it drops a metric with others. Long ones are shortened."""
    legal = normalize_name_for_stats(text or "none", log_warning=False)
    if len(legal) <= LONGEST_TAG:
        return legal
    return f"{legal[: LONGEST_TAG - 9]}_{sha256(text.encode()).hexdigest()[:8]}"


def _has_tags() -> bool:
    """Whether the backend that Airflow picks sends tags; asked in the order in which it picks."""

    def is_on(option: str, *, fallback: bool = False) -> bool:
        return bool(conf.getboolean("metrics", option, fallback=fallback))

    if is_on("statsd_datadog_enabled"):
        return is_on("statsd_datadog_metrics_tags", fallback=True)
    return not is_on("statsd_on") or is_on("statsd_influxdb_enabled")
