"""The plan as text and as JSON: the same list (C22 to C25)."""

from __future__ import annotations

import json
from typing import get_args

from airflow_chronon.core.plan import actions
from airflow_chronon.core.plan.explain import explain_plan, format_action, plan_json
from airflow_chronon.core.records.history import record_after
from airflow_chronon.core.records.manifest import manifest_of
from airflow_chronon.core.schedules.ranges import LabelRange
from airflow_chronon.errors import Fault
from tests.support.confs import at, plan_of, staging_query

PLAN = plan_of(staging_query("t.s.x__1"))
RECORD = record_after(PLAN, manifest_of(PLAN), None, now=0)
FAULT = Fault("C23", "", "the tree holds no conf", "bring it back")
RANGE = LabelRange(at("2026-06-01"), at("2026-06-03"), ("2026-06-01", "2026-06-02", "2026-06-03"))  # type: ignore[arg-type]
EVERY = (
    actions.Keep("kept"),
    actions.SetAside("x"),
    actions.Deploy("x", RECORD, is_new=True),
    actions.Restore("x", RECORD),
    actions.Record("x", RECORD, "it was paused by hand"),
    actions.Unpause("x", "paused by hand"),
    actions.Replay("x", RANGE, 4),
    actions.Drain("x", "gone"),
    actions.WaitForRuns("x", 2),
    actions.StopRuns("x", 2, "its settings say so"),
    actions.Wait("x", "something else"),
    actions.Archive("x"),
    actions.Delete("x"),
    actions.Forget("x"),
    actions.Hold(("x", "y"), FAULT),
    actions.Report(actions.Severity.WARNING, FAULT, "x"),
    actions.EndStranded("x", ("backfill__1",)),
    actions.StopIdleRuns("x", 2),
    actions.ParseSoon("x", "chronon.py"),
    actions.RememberBad("1f"),
)


def test_every_kind_of_action_has_words_and_json() -> None:
    kinds = {kind for each in get_args(actions.Action) for kind in (get_args(each) or (each,))}
    assert {type(action) for action in EVERY} == kinds
    for action in EVERY:
        assert bool(format_action(action)) is not isinstance(action, actions.Keep)  # of which there are thousands
    found = plan_json(actions.Plan(EVERY))
    assert [set(each) >= {"action"} for each in json.loads(json.dumps(found))] == [True] * len(EVERY)


def test_what_is_held_is_listed_and_what_is_kept_is_counted() -> None:
    lines = explain_plan(actions.Plan(EVERY))
    assert lines[-1].startswith("1 conf unchanged; damaged 1, deploy 1, restore 1")
    assert [line.strip() for line in lines if "would retire" in line] == ["would retire x", "would retire y"]
    assert not any("kept" in line for line in lines[:-1] if "set aside, and kept" not in line)


def test_a_replay_names_its_labels() -> None:
    assert "2026-06-01 … 2026-06-03 (3)" in format_action(EVERY[6])


def test_only_errors_and_what_is_held_are_findings() -> None:
    assert actions.Plan(EVERY).findings == (EVERY[14],)
    error = actions.Report(actions.Severity.ERROR, FAULT)
    assert actions.Plan((error,)).findings == (error,)
