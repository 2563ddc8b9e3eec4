"""The page of a plan: what people see in its DAG's documentation.

It must not change while its file does not, so it shows the runs of one fixed reference week; ``explain`` shows live ones.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from airflow_chronon.core.confs.plan import OtherEnvironment, Plan, Verdict
from airflow_chronon.core.describe.description import Neighbours
from airflow_chronon.core.describe.plans import describe
from airflow_chronon.errors import Fault


def plan_page(
    plan: Plan, *, neighbours: Neighbours | None = None, is_active: bool = True, held_on: Sequence[Fault] = ()
) -> str:
    """Markdown of one conf or job: what it is, its schedule in sentences, what it reads, the runs of a reference week.

    ``is_active`` is false for a schedule that is on and fires only once a reconcile has seen it (H14). ``held_on`` is what is
    wrong with the settings file: the last good settings hold on (C23).
    """
    described = describe(plan)
    parts = [
        f"### {plan.key}",
        *_held(held_on),
        described.page_head(),
        "#### Schedule",
        *described.page_schedule(is_active=is_active),
        *described.page_sections(neighbours or Neighbours()),
    ]
    if plan.warnings:
        parts += ["#### Warnings", _listed(plan.warnings)]
    parts += [f"{described.source} `{plan.file}`, content {_digest(plan)}.", *described.page_source()]
    return "\n\n".join(parts)


def off_page(
    plan: Plan, verdicts: Mapping[str, Verdict], *, problems: Sequence[Fault], held_on: Sequence[Fault] = ()
) -> str:
    """Markdown of a DAG that fires no more, and why: its conf is rejected, of another environment, in doubt, or gone (C23).

    ``plan`` is as it was deployed, ``verdicts`` are those of the tree now, ``problems`` what keeps it from being read,
    ``held_on`` what is wrong with a settings file that the last good settings stand in for.
    """
    return "\n\n".join((f"### {plan.key}", *_held(held_on), *_why_off(plan, verdicts, problems)))


def _why_off(plan: Plan, verdicts: Mapping[str, Verdict], problems: Sequence[Fault]) -> tuple[str, ...]:
    name = f"`{plan.key}` ({plan.file})"
    now = next((each for each in verdicts.values() if plan.key == each.key or plan.file == each.file), None)
    if now is not None and now.faults:
        return f"{name} is rejected. This DAG fires no more until it is mended:", _listed(now.faults)
    if isinstance(now, OtherEnvironment):
        return (f"{name} is of another environment now. This DAG fires no more; it is kept for its last runs.",)
    if problems:
        why = (
            "cannot be read, since something is wrong with its conf root. This DAG fires no more until that is mended:"
        )
        return f"{name} {why}", _listed(problems)
    return (f"{name} is no longer deployed. This DAG fires no more; it is kept for its last runs.",)


def _held(faults: Sequence[Fault]) -> tuple[str, ...]:
    """What a page says while the last good settings hold on."""
    return ("**The settings file has a mistake: the last good settings hold on.**", _listed(faults)) if faults else ()


def _listed(faults: Sequence[Fault]) -> str:
    return "\n".join(f"* {fault}" for fault in faults)


def _digest(plan: Plan) -> str:
    """Tells two contents of a file apart, so that a changed query or command makes a new DAG version."""
    text = json.dumps(plan.document, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
