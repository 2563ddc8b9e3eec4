"""One reconcile from beginning to end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from airflow_chronon.airflow_api.errors import NoRights
from airflow_chronon.core.calendar.instants import Instant
from airflow_chronon.core.plan.actions import Plan
from airflow_chronon.core.plan.build import Confirmation, build_plan
from airflow_chronon.core.plan.explain import format_action
from airflow_chronon.reconcile.apply import Outcome, apply_plan
from airflow_chronon.reconcile.gather import Place, gather
from airflow_chronon.state.locking import only_reconcile


@dataclass(frozen=True)
class Reconciled:
    """What was planned and what came of it."""

    plan: Plan
    outcome: Outcome

    @property
    def is_good(self) -> bool:
        """Whether nothing failed, was held back, or is wrong with the confs' contracts."""
        return not self.outcome.failed and not self.plan.findings


def reconcile(
    place: Place,
    *,
    by: str,
    now: Instant,
    confirmation: Confirmation = Confirmation.NONE,
) -> Reconciled:
    """Gather, plan and apply. Raises ``ChrononError`` when Airflow or the state cannot be read: nothing was done."""
    with only_reconcile(place.state):
        text = place.root.settings_to_keep
        if text is not None and not place.deployment.given_up:
            place.state.keep_settings(text)
        plan = plan_now(place, confirmation=confirmation, now=now)
        outcome = apply_plan(plan, server=place.server, state=place.state, deployment=place.deployment, by=by, now=now)
    return Reconciled(plan, outcome)


def plan_now(place: Place, *, now: Instant, confirmation: Confirmation = Confirmation.NONE) -> Plan:
    """What a reconcile would do now; nothing is changed anywhere."""
    return build_plan(gather(place, now=now), confirmation=confirmation, now=now)


def outcome_lines(reconciled: Reconciled) -> tuple[str, ...]:
    """What was left and what failed, a line each."""
    outcome = reconciled.outcome
    lines = [f"left      {format_action(action)}: {error.fault}" for action, error in outcome.left]
    lines += [f"FAILED    {failure}" for failure in failures(outcome)]
    if outcome.failed and outcome.skipped:
        lines.append(f"skipped   {len(outcome.skipped)} further steps, since one before them failed")
    return tuple(lines)


def failures(outcome: Outcome) -> tuple[str, ...]:
    """What failed, a sentence each; one for all steps that lack the same right, which would say the same (S10)."""
    alike = Counter(error.right for _, error in outcome.failed if isinstance(error, NoRights))
    sentences = []
    for action, error in outcome.failed:
        count = alike.pop(error.right, 0) if isinstance(error, NoRights) else 1
        more = f" {count - 1} further steps lack this right." if count > 1 else ""
        sentences += [f"{format_action(action)}: {error}{more}"] if count else []
    return tuple(sentences)
