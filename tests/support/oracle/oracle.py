"""A slow, plain second opinion on the rules, standard library only.

    python -m tests.support.oracle.oracle ROOT FROM TO [TYPE/NAME ...]

prints, as JSON, what `airflow-chronon check` and `airflow-chronon explain` must agree with: for every conf of the
compiled tree ROOT whether it is accepted (else the rule it breaks), its grid, and every run whose first fire lies in
[FROM, TO) with its partition key, its window, and per mode the partitions it writes and the labels it waits for. It
counts minutes one by one and shares no code with the product: where the two differ, read the rule and find out which is
wrong.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from tests.support.oracle.oracle_confs import (
    FOREVER,
    TABLE_KEYS,
    Repo,
    Source,
    has_topic,
    join_table,
    lookback,
    modes,
    out_grid,
    sources_of,
    truthy,
)
from tests.support.oracle.oracle_grid import Grid, window
from tests.support.oracle.oracle_time import DAY, Reject, iso, minutes, schedule


def waits(repo, key, c, g: Grid, s: int, e: int, mode: str = "backfill") -> list[dict]:
    kind, out = key.split("/")[0], []
    if mode == "metadata_upload":
        for part in c.get("joinParts") or []:
            gb = repo.confs.get("group_by/" + part["groupBy"]["metaData"]["name"])
            if gb and deployed(gb) and truthy(gb["metaData"].get("online")):
                try:
                    if schedule(gb["metaData"].get("executionInfo", {}).get("onlineSchedule")) is None:
                        continue
                    r = out_grid(gb)
                except Reject:
                    continue  # a rejected part is reported for itself and uploads nothing
                out.append(
                    {
                        "table": join_table(gb["metaData"]) + "__upload",
                        "column": r.column,
                        "labels": [r.floor(e) - r.i],
                        "grid": r,
                        "sub": [],
                    }
                )
    elif kind == "group_by":
        for src in c["sources"]:
            for x in sources_of(repo, c, src, "whole", g):
                if x.kind != "mutation":
                    out.append(x.wait(s, e, lookback(c) if x.kind == "events" else 0))
    elif kind == "staging_query":
        named = set()
        for d in c.get("tableDependencies") or []:
            info = d["tableInfo"]
            q = {k: info.get(k) for k in (*TABLE_KEYS, "triggerExpr", "isCumulative")}
            q |= {
                "startPartition": d.get("startCutOff"),
                "endPartition": d.get("endCutOff"),
                "partitionLag": d.get("endOffset"),
            }
            named.add(info["table"].split("/")[0])
            x = Source(repo, c, info["table"], q, "whole", g, default_1d=True)
            start = window(d.get("startOffset"))
            out.append(x.wait(s, e, FOREVER * 4 if start is None else start - (window(d.get("endOffset")) or 0)))
        for d in json.loads(c["metaData"].get("customJson") or "{}").get("airflowDependencies") or []:
            table, _, spec = d["spec"].partition("/")
            if table in named:
                continue
            column, _, template = spec.partition("=")
            value, _, sub = template.partition("/")
            shift, fmt = 0, None
            if m := re.search(r"ds_add\(\s*ds\s*,\s*(-?\d+)", value):
                shift = int(m[1]) * DAY
            elif "ds_nodash" in value:
                fmt = "yyyyMMdd"
            elif not re.fullmatch(r"\{\{\s*ds\s*\}\}", value):
                out.append(
                    {"table": table, "column": column, "labels": [value], "grid": None, "sub": [sub] if sub else []}
                )
                continue
            day = Grid(DAY, 0, fmt, column)
            out.append(
                {
                    "table": table,
                    "column": column,
                    "labels": [x + shift for x in day.starts(s, e)],
                    "grid": day,
                    "sub": [sub] if sub else [],
                }
            )
    else:
        left_entities = "entities" in c["left"]
        for x in sources_of(repo, c, c["left"], "whole", g):
            if x.kind != "mutation":
                out.append(x.wait(s, e))
        for b in c.get("bootstrapParts") or []:
            x = Source(repo, c, b["table"], b.get("query") or {}, "right", None)
            out.append(x.wait(s, e, closed_by=e))
        for part in c.get("joinParts") or []:
            gb = part["groupBy"]
            r = out_grid(repo.confs.get("group_by/" + gb["metaData"]["name"]) or gb)
            temporal = gb.get("accuracy", 0 if any(has_topic(src) for src in gb["sources"]) else 1) == 0
            for src in gb["sources"]:
                for x in sources_of(repo, gb, src, "right", r):
                    back = lookback(gb) if x.kind == "events" else 0
                    if left_entities:
                        if x.kind != "mutation":
                            for p in g.starts(s, e):
                                b = r.floor(p + g.i)
                                out.append(x.wait(b - r.i, b, back))
                    elif not temporal:
                        if x.kind != "mutation":
                            out.append(x.wait(r.floor(s) - r.i, r.floor(e - 1), back))
                    elif x.kind == "snapshot":
                        u = x.grid or r
                        out.append(x.wait(u.floor(s) - u.i, u.floor(e - 1), back))
                    else:
                        out.append(x.wait(s, e, back, closed_by=e))
    return merge([w for w in out if w])


def merge(items: list[dict]) -> list[dict]:
    """One entry per table, column and sub-partitions: labels united, the latest instant, the hull of the lookbacks."""
    merged: dict = {}
    for w in items:
        k = (w["table"], w.get("column"), "until" in w, w.get("expression"), tuple(w.get("sub", ())))
        if k not in merged:
            merged[k] = dict(w)
            continue
        old = merged[k]
        if "labels" in w:
            old["labels"] = old["labels"] + w["labels"]
            looks = [x["lookback"] for x in (old, w) if "lookback" in x]
            if looks:
                old["lookback"] = (min(x[0] for x in looks), max(x[1] for x in looks))
        elif "until" in w:
            old["until"] = max(old["until"], w["until"])
    out = []
    for w in merged.values():
        g = w.pop("grid", None)
        if "labels" in w:
            w["labels"] = sorted({x if g is None else g.label(x) for x in w["labels"]})
        if "lookback" in w:
            a, b = w["lookback"]
            w["lookback"] = {"from": None if a == -FOREVER else g.label(a), "to": g.label(b)}
        out.append(w)
    return sorted(out, key=lambda w: (w["table"], str(w.get("column")), str(w.get("sub"))))


def deployed(c, environment: int = 0) -> bool:
    return environment in (c["metaData"].get("environments") or [0])


def newest_only(key, c) -> bool:
    hb = c["metaData"].get("executionInfo", {}).get("historicalBackfill")
    return hb is not None and (
        truthy(hb) if key.startswith("group_by/") else not truthy(hb) and key.startswith("join/")
    )


def cycles(repo) -> set[str]:
    """Confs on a cycle in which no wait looks back (C15)."""
    edges: dict[str, set[str]] = {}

    def interval(conf) -> int | None:
        try:
            return out_grid(conf).i
        except Reject:
            return None

    def add(key, table, shift, consumer):
        hit = repo.producer(table.split("/")[0], consumer)
        if not hit:
            return
        if shift < (interval(repo.confs[hit[0]]) or 1):  # C15: looking back is a lag of at least one partition
            edges[key].add(hit[0])

    def tables(src):
        for s in src.values():
            if isinstance(s, dict):
                lag = window((s.get("query") or {}).get("partitionLag")) or 0
                for f in ("table", "snapshotTable", "mutationTable"):
                    if s.get(f):
                        yield s[f], lag
                if "join" in s:
                    yield join_table(s["join"]["metaData"]), lag

    for key, c in repo.confs.items():
        edges[key] = set()
        if interval(c) is None:
            continue  # a conf whose own grid is bad is rejected for that first
        for d in c.get("tableDependencies") or []:
            add(key, d["tableInfo"]["table"], window(d.get("endOffset")) or 0, c)
        for src in (c.get("sources") or []) + ([c["left"]] if "left" in c else []):
            for table, lag in tables(src):
                add(key, table, lag, c)
        for b in c.get("bootstrapParts") or []:
            add(key, b["table"], window((b.get("query") or {}).get("partitionLag")) or 0, c)
        for part in c.get("joinParts") or []:
            gb = part["groupBy"]
            temporal = gb.get("accuracy", 0 if any(has_topic(src) for src in gb["sources"]) else 1) == 0
            of_tree = repo.confs.get("group_by/" + gb["metaData"]["name"]) or gb
            snapshot = interval(of_tree)
            if snapshot is None:
                continue  # a bad part is reported first
            back = 0 if temporal or "entities" in c["left"] else snapshot
            for src in gb["sources"]:
                for table, lag in tables(src):
                    add(key, table, lag + back, gb)

    def reach(a):
        seen, todo = set(), list(edges[a])
        while todo:
            n = todo.pop()
            if n not in seen:
                seen.add(n)
                todo += edges.get(n, ())
        return seen

    return {k for k in edges if k in reach(k)}


def run_list(repo, key, c, g, ms, t0, t1) -> list[dict]:
    by_end: dict[int, dict] = {}
    ends = set()
    for name, cron in ms.items():
        prev = g.floor(cron.before(t0 - g.i))
        ends.add(prev)
        for f in cron.fires(t0 - g.i, t1 + g.i):
            end = g.floor(f)
            newest = name != "backfill" or newest_only(key, c)
            if prev < end:
                by_end.setdefault(end, {})[name] = (f, end - g.i if newest else prev)
            prev = end
    ends |= set(by_end)
    out = []
    for end in sorted(by_end):
        first = min(f for f, _ in by_end[end].values())
        if not t0 <= first < t1:
            continue
        out.append(
            {
                "fire": iso(first),
                "partition_key": g.label(end - g.i),
                "start": iso(max(x for x in ends if x < end)),
                "end": iso(end),
                "modes": {
                    n: {
                        "fire": iso(f),
                        "partitions": [g.label(x) for x in g.starts(s, end)],
                        "waits": waits(repo, key, c, g, s, end, n),
                    }
                    for n, (f, s) in sorted(by_end[end].items())
                },
            }
        )
    return out


def judge(root: Path, t0: int, t1: int, only=(), environment: int = 0) -> dict:
    repo, out = Repo(root), {}
    looped = cycles(repo)
    for key, c in sorted(repo.confs.items()):
        if only and key not in only:
            continue
        if not deployed(c, environment):
            out[key] = {"status": "other environment"}
            continue
        try:
            g = out_grid(c)
            ms = modes(key, c, g)
            if key in looped:
                raise Reject("C15", "part of a cycle")
            waits(repo, key, c, g, g.floor(t0), g.floor(t0) + g.i)
            out[key] = {
                "status": "ok",
                "grid": g.spec(),
                "modes": sorted(ms),
                "runs": run_list(repo, key, c, g, ms, t0, t1),
            }
        except Reject as r:
            out[key] = {"status": "rejected", "rule": r.rule, "why": r.why}
    return out


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    print(
        json.dumps(
            judge(Path(sys.argv[1]), minutes(sys.argv[2]), minutes(sys.argv[3]), set(sys.argv[4:])),
            indent=1,
            ensure_ascii=False,
        )
    )
