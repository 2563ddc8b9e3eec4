"""The description of a conf: its grid, its modes, what each run writes and waits for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from airflow_chronon.core.calendar.instants import DAY, MINUTE, duration_text, iso
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.describe.description import REFERENCE_WEEK, RUNS_SHOWN, Description, Neighbours
from airflow_chronon.core.describe.format import counted, format_wait, markdown_table
from airflow_chronon.core.describe.source import page_source
from airflow_chronon.core.partitions.labels import PartitionSpec
from airflow_chronon.core.schedules.partitioned import Run
from airflow_chronon.core.waits.dependencies import Binding, TableDependency, Wait

_BINDINGS = {
    Binding.WHOLE: "whole partitions",
    Binding.ROW_SNAPSHOT: "snapshot at or before each row",
    Binding.PARTITION_SNAPSHOT: "snapshot at each partition's end",
    Binding.POINT_IN_TIME: "point in time",
    Binding.NEWEST_SNAPSHOT: "newest snapshot",
}
_FEW = 2  #: waits of a run that fit into a row of a page
_RUN_HEAD = ("fire", "partition", "mode", "writes", "waits for")


@dataclass(frozen=True)
class ConfDescription(Description):
    """One conf as text and as JSON."""

    source: ClassVar[str] = "Conf"
    plan: ConfPlan

    @property
    def headline(self) -> str:
        modes = self.plan.schedule.modes.items()
        crons = ", ".join(f"{mode.value} {of.schedule.text!r}" for mode, of in modes) or "no schedule"
        return f"grid {self.plan.grid}, {crons}"

    @property
    def one_line(self) -> str:
        texts = {mode.value: of.schedule.text for mode, of in self.plan.schedule.modes.items()}
        if not texts:
            when = "when a partition is asked for"
        elif len(set(texts.values())) == 1:
            when = f"at {next(iter(texts.values()))} UTC"
        else:
            when = f"{', '.join(f'{mode} at {text}' for mode, text in texts.items())} UTC"
        return f"Writes {self.plan.table}, a partition for each {self.plan.grid}: {when}"

    @property
    def fields(self) -> dict[str, Any]:
        return {"grid": _spec_json(self.plan.spec), "modes": sorted(mode.value for mode in self.plan.modes)}

    def run_json(self, run: Run) -> dict[str, Any]:
        """One run with its modes, their partitions and their waits."""
        plan = self.plan
        return {
            "fire": iso(run.fire),
            "partition_key": plan.schedule.key_of(run),
            "start": iso(run.window.start),
            "end": iso(run.window.end),
            "modes": {
                mode.value: {
                    "fire": iso(of.fire),
                    "partitions": list(plan.spec.labels(of.window.start, of.window.end)),
                    "waits": [wait_json(wait) for wait in plan.mode_waits(mode, of.window)],
                }
                for mode, of in run.modes.items()
            },
        }

    def run_table(self, runs: Iterable[Run]) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        for run in runs:
            first, *others = self._rows(run, between="; ")
            rows += [first, *((fire, "", *rest) for fire, _, *rest in others)]
        return [_RUN_HEAD, *rows] if rows else []

    def page_head(self) -> str:
        plan = self.plan
        labels, version = f"`{plan.spec.column}` as `{plan.spec.format}`", plan.version or "none"
        return markdown_table(
            ("table", "grid", "labels", "version"), [(f"`{plan.table}`", str(plan.grid), labels, version)]
        )

    def page_schedule(self, *, is_active: bool) -> Sequence[str]:
        schedule = self.plan.schedule
        if not schedule.modes:
            return ["None: it runs when a partition is asked for."]
        rows = []
        for mode, of in schedule.modes.items():
            covers = "only the newest partition" if of.only_newest else "every partition since the previous fire"
            cadence = f"every {duration_text(of.schedule.interval)}" if of.schedule.interval else "daily or coarser"
            rows.append((mode.value, f"`{of.schedule.text}`", cadence, covers))
        catch_up = schedule.catch_up
        text = "Missed runs are caught up" if catch_up.enabled else "After an outage only the newest run is made"
        if catch_up.enabled and catch_up.max_runs is not None:
            text += f", the newest {catch_up.max_runs} of them"
        if catch_up.start is not None:
            text += f"; no partition before {iso(catch_up.start)}"
        return [markdown_table(("mode", "fires (UTC)", "cadence", "writes"), rows), f"{text}."]

    def page_sections(self, neighbours: Neighbours) -> Sequence[str]:
        plan = self.plan
        read = list(dict.fromkeys(each for found in plan.dependencies.values() for each in found))
        consumers = sorted(neighbours.consumers.get(plan.key, ()))
        return [
            "#### Reads",
            markdown_table(("table", "labels", "how", "reaches back", "lag"), list(map(_dependency, read)))
            if read
            else "Nothing.",
            _links("Producers", map(str, plan.producers), neighbours.dag_ids),
            _links("Consumers", consumers, neighbours.dag_ids),
            "#### Runs of a reference week",
            *self._reference_week(),
        ]

    def _reference_week(self) -> Sequence[str]:
        """The runs in a table. Where one waits for many tables, the table counts them, and the first run of each mode lists
        them below."""
        free = self.plan.schedule.without_bounds()
        runs = list(islice(free.runs_between(REFERENCE_WEEK, REFERENCE_WEEK + 7 * DAY), RUNS_SHOWN))
        rows = [row for run in runs for row in self._rows(run, between="; ")]
        if not rows:
            return ["None."]
        waits = [self.plan.mode_waits(mode, of.window) for run in runs for mode, of in run.modes.items()]
        if max(map(len, waits)) <= _FEW:
            return [markdown_table(_RUN_HEAD, rows)]
        counted_rows = [
            (*row[:-1], counted(len({wait.table for wait in found}), "table") if found else row[-1])
            for row, found in zip(rows, waits, strict=True)
        ]
        first = {row[2]: (row[3], found) for row, found in reversed(list(zip(rows, waits, strict=True)))}
        lists = [
            "\n".join([f"The {mode} of {labels} waits for:\n", *(f"* {format_wait(wait)}" for wait in found)])
            for mode, (labels, found) in reversed(first.items())
            if found
        ]
        return [markdown_table(_RUN_HEAD, counted_rows), *lists]

    def page_source(self) -> Sequence[str]:
        return "#### What it computes", page_source(self.plan.conf)

    def _rows(self, run: Run, *, between: str) -> list[tuple[str, ...]]:
        """A row per mode; ``between`` parts its waits."""
        plan, key = self.plan, str(self.plan.schedule.key_of(run))
        rows: list[tuple[str, ...]] = []
        for mode, of in run.modes.items():
            waits = between.join(map(format_wait, plan.mode_waits(mode, of.window))) or "nothing"
            labels = plan.spec.span(of.window.start, of.window.end)
            rows.append((iso(of.fire), key, mode.value, labels, waits))
        return rows


def wait_json(wait: Wait) -> dict[str, Any]:
    """What is waited for on one table."""
    if wait.expression is not None:
        return {"table": wait.table, "expression": wait.expression}
    if wait.until is not None:
        return {"table": wait.table, "column": wait.column, "until": iso(wait.until)}
    entry: dict[str, Any] = {
        "table": wait.table,
        "column": wait.column,
        "labels": list(wait.labels),
        "sub": list(wait.sub),
    }
    if wait.lookback is not None:
        entry["lookback"] = {"from": wait.lookback.first, "to": wait.lookback.last}
    return entry


def _spec_json(spec: PartitionSpec) -> dict[str, Any]:
    return {
        "interval_minutes": spec.grid.interval // MINUTE,
        "offset_minutes": spec.grid.offset // MINUTE,
        "format": spec.format.pattern,
        "column": spec.column,
    }


def _dependency(each: TableDependency) -> tuple[str, ...]:
    labels = f"none: by the newest `{each.column}`"
    if each.spec is not None:
        labels = f"{each.spec.grid}, `{each.column}` as `{each.spec.format}`"
    reach = "without bound" if each.reach is None else duration_text(each.reach) if each.reach > 0 else "-"
    return f"`{each.table}`", labels, _BINDINGS[each.binding], reach, duration_text(each.lag) if each.lag else "-"


def _links(title: str, keys: Iterable[str], dag_ids: Mapping[str, str]) -> str:
    # relative to the base address of the UI, which Airflow puts into every page of it
    shown = [f"[`{dag_ids[key]}`](dags/{dag_ids[key]})" if key in dag_ids else f"{key} (not deployed)" for key in keys]
    return f"{title}: {', '.join(shown) or 'none'}."
