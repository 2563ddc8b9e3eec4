"""The page of a plan: what people see in its DAG's documentation.

It must not change while its file does not, so it shows the runs of one fixed reference week; ``explain`` shows live ones.
"""

from __future__ import annotations

import hashlib
import json

from airflow_chronon.core.confs.plan import Plan
from airflow_chronon.core.describe.description import Neighbours
from airflow_chronon.core.describe.plans import describe


def plan_page(plan: Plan, *, neighbours: Neighbours | None = None, is_active: bool = True) -> str:
    """Markdown of one conf or job: what it is, its schedule in sentences, what it reads, the runs of a reference week.

    ``is_active`` is false for a schedule that is on and fires only once a reconcile has seen it (H14).
    """
    described = describe(plan)
    parts = [
        f"### {plan.key}",
        described.page_head(),
        "#### Schedule",
        *described.page_schedule(is_active=is_active),
        *described.page_sections(neighbours or Neighbours()),
    ]
    if plan.warnings:
        parts += ["#### Warnings", "\n".join(f"* {warning}" for warning in plan.warnings)]
    parts.append(f"{described.source} `{plan.file}`, content {_digest(plan)}.")
    return "\n\n".join(parts)


def _digest(plan: Plan) -> str:
    """Tells two contents of a file apart, so that a changed query or command makes a new DAG version."""
    text = json.dumps(plan.document, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
