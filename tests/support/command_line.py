"""What the tests of the command line share."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent.parent / "data"

#: A few good confs of the corpus, one of every type, and one for another environment.
GOOD = (
    "group_bys/checkout/purchases.three_hour__1",
    "joins/checkout/training.daily_join__1",
    "staging_queries/checkout/orders.daily_0200__1",
    "staging_queries/checkout/orders.hourly_rollup__1",
    "staging_queries/growth/exports.canary_only__1",
)


@dataclass(frozen=True)
class Answer:
    """What one call of the command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.out)
        return value


Command = Callable[..., Answer]


def conf_text(name: str, **changes: Any) -> str:
    """A good conf of the corpus as text, its top-level fields replaced; None drops one."""
    document = json.loads((DATA / "main" / name).read_text(encoding="utf-8"))
    document |= changes
    return json.dumps({key: value for key, value in document.items() if value is not None})
