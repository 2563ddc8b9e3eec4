"""The page of a conf: what people see in the DAG's documentation.

It must not change while the conf does not, so it shows the runs of one fixed reference week; ``explain`` shows live ones.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from airflow_chronon.core.calendar.instants import DAY, Instant, duration_text, iso
from airflow_chronon.core.confs.conf import ConfKey
from airflow_chronon.core.confs.resolve import ConfPlan
from airflow_chronon.core.describe.format import format_wait, span
from airflow_chronon.core.waits.dependencies import Binding, TableDependency

REFERENCE_WEEK: Instant = 1_780_272_000  #: 2026-06-01, a Monday that begins a month
_RUNS_SHOWN = 8

_BINDINGS = {
    Binding.WHOLE: "whole partitions",
    Binding.ROW_SNAPSHOT: "snapshot at or before each row",
    Binding.PARTITION_SNAPSHOT: "snapshot at each partition's end",
    Binding.POINT_IN_TIME: "point in time",
    Binding.NEWEST_SNAPSHOT: "newest snapshot",
}


def conf_page(plan: ConfPlan, *, dag_ids: Mapping[ConfKey, str], consumers: Iterable[ConfKey]) -> str:
    """Markdown of one conf: grid, schedules, dependencies, neighbours, reference runs.

    ``dag_ids`` holds the DAGs of the tree's good confs, ``consumers`` the confs that read this one's table.
    """
    conf = plan.conf
    parts = [
        f"### {conf.key}",
        markdown_table(
            ("table", "grid", "labels", "version"),
            [
                (
                    f"`{conf.table}`",
                    str(plan.spec.grid),
                    f"`{plan.spec.column}` as `{plan.spec.format}`",
                    conf.version or "none",
                )
            ],
        ),
        "#### Schedule",
        _schedule(plan),
        "#### Reads",
        markdown_table(("table", "labels", "how", "reaches back", "lag"), [_dependency(d) for d in _all(plan)])
        if any(_all(plan))
        else "Nothing.",
        _neighbours("Producers", plan.producers, dag_ids),
        _neighbours("Consumers", sorted(consumers, key=str), dag_ids),
        "#### Runs of a reference week",
        _runs(plan),
    ]
    if plan.warnings:
        parts += ["#### Warnings", "\n".join(f"* {warning}" for warning in plan.warnings)]
    parts.append(f"Conf `{conf.file}`, content {_digest(plan)}.")
    return "\n\n".join(parts)


def _schedule(plan: ConfPlan) -> str:
    if not plan.runs.modes:
        return "None: it runs when a partition is asked for."
    rows = []
    for mode, of in plan.runs.modes.items():
        covers = "only the newest partition" if of.only_newest else "every partition since the previous fire"
        cadence = f"every {duration_text(of.schedule.interval)}" if of.schedule.interval else "daily or coarser"
        rows.append((mode.value, f"`{of.schedule.text}`", cadence, covers))
    catch_up = plan.runs.catch_up
    text = "Missed runs are caught up" if catch_up.enabled else "After an outage only the newest run is made"
    if catch_up.enabled and catch_up.max_runs is not None:
        text += f", the newest {catch_up.max_runs} of them"
    if catch_up.start is not None:
        text += f"; partitions from {iso(catch_up.start)}"
    return markdown_table(("mode", "fires (UTC)", "cadence", "writes"), rows) + f"\n\n{text}."


def _all(plan: ConfPlan) -> tuple[TableDependency, ...]:
    return tuple(dict.fromkeys(each for found in plan.dependencies.values() for each in found))


def _dependency(each: TableDependency) -> tuple[str, ...]:
    labels = f"none: by the newest `{each.column}`"
    if each.spec is not None:
        labels = f"{each.spec.grid}, `{each.column}` as `{each.spec.format}`"
    reach = "without bound" if each.reach is None else duration_text(each.reach) if each.reach > 0 else "-"
    return f"`{each.table}`", labels, _BINDINGS[each.binding], reach, duration_text(each.lag) if each.lag else "-"


def _neighbours(title: str, keys: Iterable[ConfKey], dag_ids: Mapping[ConfKey, str]) -> str:
    shown = [f"`{dag_ids[key]}`" if key in dag_ids else f"{key} (not deployed)" for key in keys]
    return f"{title}: {', '.join(shown) or 'none'}."


def _runs(plan: ConfPlan) -> str:
    free = plan.runs.without_bounds()
    runs = list(islice(free.runs_between(REFERENCE_WEEK, REFERENCE_WEEK + 7 * DAY), _RUNS_SHOWN))
    rows = []
    for run in runs:
        for mode, of in run.modes.items():
            waits = "<br>".join(format_wait(wait) for wait in plan.mode_waits(mode, of.window)) or "nothing"
            labels = span(plan.spec.labels(of.window.start, of.window.end))
            rows.append((iso(of.fire), str(free.key_of(run)), mode.value, labels, waits))
    return markdown_table(("fire", "partition", "mode", "writes", "waits for"), rows) if rows else "None."


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _digest(plan: ConfPlan) -> str:
    """Tells two contents of a conf apart, so that a changed query makes a new DAG version."""
    text = json.dumps(plan.conf.raw, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
