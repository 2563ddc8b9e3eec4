"""Hold what the product says of a tree against what the oracle says.

    python -m tests.support.oracle.compare ROOT FROM TO -- COMMAND...      e.g. … -- airflow-chronon

runs `COMMAND explain --root ROOT --from FROM --to TO --format json` and compares status and broken rule of every conf,
grid, modes, and every run with its windows, partitions and waits. Ends with `N confs, M runs compared, K differ`; exit
code 1 when anything differs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.oracle import oracle
from tests.support.oracle.oracle_time import minutes

RUN_KEYS = ("fire", "partition_key", "start", "end", "modes")
WAIT_KEYS = ("table", "column", "labels", "sub", "lookback", "until", "expression")

Verdicts = dict[str, dict[str, Any]]


def differences(want: Verdicts, got: Verdicts) -> list[str]:
    """One line per conf on which the product (``got``) and the oracle (``want``) differ."""
    found = []
    for key in sorted(set(want) | set(got)):
        if key not in want or key not in got:
            found.append(f"{key}: only in the {'product' if key in got else 'oracle'}")
        elif line := _difference(want[key], got[key]):
            found.append(f"{key}{line}")
    return found


def _difference(want: dict[str, Any], got: dict[str, Any]) -> str:
    if want["status"] != got.get("status"):
        reason = f"{want.get('rule', '')} {want.get('why', '')} {got.get('errors', '')}"
        return f": status {got.get('status')!r}, oracle {want['status']!r} {reason}"
    if want["status"] == "rejected":
        rules = [error["rule"] for error in got["errors"]]
        return "" if want["rule"] in rules else f": broken rules {rules}, oracle {want['rule']} ({want['why']})"
    if want["status"] != "ok":
        return ""
    for field in ("grid", "modes"):
        if want[field] != got.get(field):
            return f": {field} {got.get(field)}, oracle {want[field]}"
    mine, theirs = [_tidy(run) for run in want["runs"]], [_tidy(run) for run in got.get("runs", [])]
    if len(mine) != len(theirs):
        return f": {len(theirs)} runs, oracle {len(mine)}"
    for a, b in zip(mine, theirs, strict=True):
        bad = [f"{key}: {json.dumps(b[key])}, oracle {json.dumps(a[key])}" for key in RUN_KEYS if a[key] != b[key]]
        if bad:
            return f" at {a['fire']}: " + "; ".join(bad)
    return ""


def _tidy(run: dict[str, Any]) -> dict[str, Any]:
    """A run with what does not matter taken out: further keys, the order of waits and labels."""
    tidy = {key: run.get(key) for key in RUN_KEYS}
    tidy["modes"] = {
        name: {"fire": mode.get("fire"), "partitions": mode.get("partitions"), "waits": _tidy_waits(mode.get("waits"))}
        for name, mode in (run["modes"] or {}).items()
    }
    return tidy


def _tidy_waits(waits: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    tidy = [
        {key: sorted(wait[key]) if key == "labels" else wait[key] for key in WAIT_KEYS if wait.get(key) is not None}
        for wait in waits or []
    ]
    return sorted(tidy, key=lambda wait: (wait["table"], str(wait.get("column")), str(wait.get("sub"))))


def main() -> int:
    root, start, end, separator, *command = sys.argv[1:]
    assert separator == "--" and command, __doc__
    want = oracle.judge(Path(root), minutes(start), minutes(end))
    arguments = [*command, "explain", "--root", root, "--from", start, "--to", end, "--format", "json"]
    done = subprocess.run(arguments, capture_output=True, text=True)
    try:
        got = json.loads(done.stdout)
    except json.JSONDecodeError:
        print(f"{done.stderr[-2000:]}\nno JSON on stdout (exit code {done.returncode})")
        return 1
    found = differences(want, got)
    for line in found[:20]:
        print(line[:1500])
    runs = sum(len(verdict.get("runs", ())) for verdict in want.values())
    print(f"{len(want)} confs, {runs} runs compared, {len(found)} differ")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
