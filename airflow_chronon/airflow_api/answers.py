"""The JSON of Airflow's answers, read field by field: what is missing or of another type is one sentence that names it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, TypeVar

from airflow_chronon.airflow_api.errors import AirflowUnreachable
from airflow_chronon.airflow_api.records import BackfillRecord, DagRecord, ImportErrorRecord, RunRecord, TaskRecord
from airflow_chronon.core.calendar.instants import Instant, TimeWindow, from_datetime

_T = TypeVar("_T")


class Answer:
    """One JSON object of an answer. Every reader raises :class:`AirflowUnreachable` for what it does not find."""

    def __init__(self, raw: object, *, url: str, what: str) -> None:
        self._url, self._what = url, what
        self.raw: dict[str, Any] = self._typed(raw, dict, "an object")

    def has(self, key: str) -> bool:
        return key in self.raw

    def value(self, key: str) -> Any:
        """What stands under a key, of whatever type; it may be null."""
        if key not in self.raw:
            raise self._unknown(f"without {key!r}")
        return self.raw[key]

    def text(self, key: str) -> str:
        return self._typed(self.value(key), str, f"a text under {key!r}")

    def text_or_none(self, key: str) -> str | None:
        return None if self.raw.get(key) is None else self.text(key)

    def flag(self, key: str) -> bool:
        return self._typed(self.value(key), bool, f"true or false under {key!r}")

    def number(self, key: str) -> int:
        return self._typed(self.value(key), int, f"a whole number under {key!r}")

    def time(self, key: str) -> datetime:
        """A time in UTC, which one without a zone is in already."""
        try:
            found = datetime.fromisoformat(self.text(key).replace("Z", "+00:00"))
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):  # no time, or one before the year 1 in UTC
            raise self._unknown(f"without a time under {key!r}") from None

    def instant(self, key: str) -> Instant:
        """A time in whole seconds."""
        return from_datetime(self.time(key))

    def instant_or_none(self, key: str) -> Instant | None:
        return None if self.raw.get(key) is None else self.instant(key)

    def seconds_or_none(self, key: str) -> float | None:
        """A time with its fractions of a second."""
        return None if self.raw.get(key) is None else self.time(key).timestamp()

    def items(self, key: str) -> Iterator[Answer]:
        """The objects of the list under a key."""
        for item in self._typed(self.value(key), list, f"a list under {key!r}"):
            yield Answer(item, url=self._url, what=self._what)

    def _typed(self, value: object, kind: type[_T], wanted: str) -> _T:
        if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
            return value
        raise self._unknown(f"without {wanted}")

    def _unknown(self, problem: str) -> AirflowUnreachable:
        return AirflowUnreachable(self._url, f"answers {problem} ({self._what})", "is it an Airflow 3 api-server?")


def dag_of(answer: Answer) -> DagRecord:
    return DagRecord(
        dag_id=answer.text("dag_id"),
        tags=frozenset(tag.text("name") for tag in answer.items("tags")) if answer.raw.get("tags") else frozenset(),
        bundle=answer.text_or_none("bundle_name"),
        is_paused=answer.flag("is_paused"),
        is_stale=answer.flag("is_stale"),
        has_import_errors=answer.flag("has_import_errors") if answer.has("has_import_errors") else False,
        file=answer.text_or_none("relative_fileloc"),
    )


def run_of(answer: Answer) -> RunRecord:
    start, end = answer.instant_or_none("data_interval_start"), answer.instant_or_none("data_interval_end")
    return RunRecord(
        dag_id=answer.text("dag_id"),
        run_id=answer.text("dag_run_id"),
        run_type=answer.text("run_type"),
        state=answer.text("state"),
        partition_key=answer.text_or_none("partition_key"),
        partition_date=answer.instant_or_none("partition_date"),
        window=TimeWindow(start, end) if start is not None and end is not None and end > start else None,
        logical_date=answer.instant_or_none("logical_date"),
        run_after=answer.instant_or_none("run_after") or 0,
        start=answer.instant_or_none("start_date"),
        end=answer.instant_or_none("end_date"),
        conf=answer.raw.get("conf") or {},
        note=answer.text_or_none("note"),
        raw=answer.raw,
    )


def task_of(answer: Answer) -> TaskRecord:
    return TaskRecord(
        dag_id=answer.text("dag_id"),
        run_id=answer.text("dag_run_id"),
        task_id=answer.text("task_id"),
        state=answer.text_or_none("state"),
        try_number=0 if answer.raw.get("try_number") is None else answer.number("try_number"),
        start=answer.seconds_or_none("start_date"),
        end=answer.seconds_or_none("end_date"),
        note=answer.text_or_none("note"),
        raw=answer.raw,
    )


def backfill_of(answer: Answer) -> BackfillRecord:
    return BackfillRecord(
        id=answer.number("id"),
        dag_id=answer.text("dag_id"),
        first=answer.instant("from_date"),
        last=answer.instant("to_date"),
        is_paused=answer.flag("is_paused"),
        completed=answer.instant_or_none("completed_at"),
    )


def import_error_of(answer: Answer) -> ImportErrorRecord:
    return ImportErrorRecord(
        filename=answer.text("filename"), bundle=answer.text_or_none("bundle_name"), text=answer.text("stack_trace")
    )


def log_lines_of(answer: Answer) -> tuple[str, ...]:
    """The lines of a log, which is a list of texts or of objects with an event each."""
    found: list[str] = []
    for line in answer.value("content") or ():
        event = line.get("event") if isinstance(line, dict) else line
        if isinstance(event, str):
            found += event.splitlines()
    return tuple(found)
