"""The product and the oracle agree on random job files (H1 to H15)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from airflow_chronon.cli.main import main
from tests.support.oracle.jobs_oracle import JobOracle
from tests.support.oracle.oracle_time import Reject

START = datetime(2026, 6, 1, tzinfo=UTC)
CRONS = (
    "@hourly",
    "@daily",
    "@midnight",
    "0 0 * ? * * *",
    "0 */20 * ? * *",
    "0 7/25 */5 * * ?",
    "0 30 6 ? * MON-FRI",
    "0 0 22-2 ? * SAT-MON/2",
    "0 15 3 ? * 1,4",
    "0 0 12 */2 * ?",
    "5/15 * * * *",
    "0 6 * * 1-5",
    "0 0 */3 * 1",
    "30 4,16 1-10 * *",
    "0 0 4 L-28 * ?",
    "0 30 6 1W * ?",
    "0 */30 9 ? * MON#1",
    "0 0 18 ? * TUEL",
    "0 0 */6 ? * L 2026",
    "0 0 0 1/2 5-7 ? 2026-2028",
    "0 0 12 * * ? 2025,2027/2",
)
BAD_CRONS = (
    "30 0 0 * * ?",
    "0 0 0 1 * MON",
    "0 0 0 1,L * ?",
    "0 0 0 ? * 6#6",
    "0 0 0 1 1 ? 1969",
    "* * * *",
    "0 0 31 2 *",
)


def text_of(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(random: Random) -> str | None:
    if random.random() < 0.4:
        return None
    return text_of(START + timedelta(seconds=random.choice([1, 60, 300, 3600]) * random.randint(-100, 60)))


def random_section(random: Random) -> dict[str, Any]:
    section: dict[str, Any] = {
        "cron_expression": random.choice(
            BAD_CRONS if random.random() < 0.05 else CRONS[: random.choice([6, 6, len(CRONS)])]
        ),
        "start_time": moment(random),
        "end_time": moment(random) if random.random() < 0.3 else None,
        "skip_to_date": moment(random) if random.random() < 0.3 else None,
        "start_time_offset_seconds": random.choice([None, None, 0, 1, 3600, 90000, -5]),
        "lookback_seconds": random.choice([None, None, None, 1, 90000, 0]),
        "catchup": random.random() < 0.65,
        "max_catchup_runs": random.choice([None, None, 1, 3, 24]),
        "enabled": random.random() < 0.95,
    }
    return {key: value for key, value in section.items() if value is not None or random.random() < 0.5}


def wanted(section: dict[str, Any], last: datetime | None, now: datetime, *, recovery: bool) -> Any:
    try:
        oracle = JobOracle(section)
    except Reject as reject:
        return "H1" if reject.rule == "C1" else reject.rule
    runs = oracle.created(last, now) if recovery else oracle.runs(last or START, now)
    return [run.shown() for run in runs]


def shown(entry: dict[str, Any]) -> Any:
    if entry["status"] == "rejected":
        return entry["errors"][0]["rule"]
    return [{name: value for name, value in run.items() if name != "skipped"} for run in entry["runs"]]


@pytest.mark.parametrize("seed", range(12))
def test_random_job_files_are_explained_alike(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random = Random(seed)
    recovery = seed % 3 != 0
    last = None if seed % 3 == 1 else START + timedelta(minutes=random.randint(0, 1440))
    now = (last or START) + timedelta(minutes=random.randint(60, 4 * 1440))
    sections = {f"job_{number}": random_section(random) for number in range(32)}
    for name, section in sections.items():
        path = tmp_path / "jobs" / "team" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        head = {"version": 1, "runner": {"kind": "command", "argv": ["true"]}}
        path.write_text(json.dumps({**head, "schedule": section}))
    asked = ["--after", text_of(last) if last else "none", "--now", text_of(now)]
    if not recovery:
        asked = ["--from", text_of(last or START), "--to", text_of(now)]
    assert main(["explain", "--root", str(tmp_path), "--format", "json", *asked]) == 0
    got = {key: shown(entry) for key, entry in json.loads(capsys.readouterr().out).items()}
    want = {f"job/team.{name}": wanted(section, last, now, recovery=recovery) for name, section in sections.items()}
    assert got == want
    assert any(isinstance(runs, list) and len(runs) > 1 for runs in want.values())
