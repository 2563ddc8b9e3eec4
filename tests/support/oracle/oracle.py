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

from tests.support.oracle.oracle_grid import Grid, window
from tests.support.oracle.oracle_time import DAY, Cron, Reject, iso, minutes, schedule

TYPES = {"group_bys": "group_by", "joins": "join", "staging_queries": "staging_query"}


class Repo:
    def __init__(self, root: Path):
        self.confs, self.tables, self.bare = {}, {}, {}
        for folder, kind in TYPES.items():
            for f in sorted((root / folder).rglob("*")):
                if f.is_file():
                    c = json.loads(f.read_text())
                    self.confs[f"{kind}/{c['metaData']['name']}"] = c
        for key, c in self.confs.items():
            ns, name = c["metaData"]["outputNamespace"], re.sub(r"[^a-zA-Z0-9_]", "_", c["metaData"]["name"])
            for suffix in ("", "__derived", "__upload"):
                self.tables.setdefault(f"{ns}.{name}{suffix}", []).append(key)
                self.bare.setdefault(name + suffix, []).append((key, f"{ns}.{name}{suffix}"))

    def producer(self, table: str, consumer=None):
        """(conf key, real table) of the conf that writes the table, or None (C15)."""
        if table in self.tables:
            return self.tables[table][0], table
        if consumer is None or table.split(".", 1)[0] != consumer["metaData"]["outputNamespace"]:
            return None
        hits = [h for h in self.bare.get(table.split(".", 1)[-1], []) if self.confs[h[0]] is not consumer]
        return hits[0] if len(hits) == 1 else None


def common(c) -> dict:
    return c["metaData"].get("executionInfo", {}).get("conf", {}).get("common", {})


def out_grid(c) -> Grid:
    e = c["metaData"].get("executionInfo", {})
    info = e.get("outputTableInfo") or {}
    interval, offset = window(info.get("partitionInterval")), window(info.get("partitionOffset"))
    if interval is None:  # only then does the schedule matter: a bad one does not spoil a declared grid for its readers
        offline = schedule(e.get("offlineSchedule"))
        interval = offline.interval if offline else None
    legacy_fmt = common(c).get("spark.chronon.partition.format") if interval is None and not offset else None
    return Grid(
        DAY if interval is None else interval,
        offset or 0,
        info.get("partitionFormat") or legacy_fmt,
        info.get("partitionColumn") or common(c).get("spark.chronon.partition.column") or "ds",
    )


def truthy(v) -> bool:
    return bool(v) and v not in (0, "0")


def modes(key: str, c, g: Grid) -> dict[str, Cron]:
    e, kind, out = c["metaData"].get("executionInfo", {}), key.split("/")[0], {}
    offline = schedule(e.get("offlineSchedule"))
    online = (
        schedule(e.get("onlineSchedule")) if kind != "staging_query" and truthy(c["metaData"].get("online")) else None
    )
    for s in (offline, online):
        if s is None:
            continue
        if s.interval is None and g.i < DAY:
            raise Reject("C6", "daily-or-coarser schedule on a sub-daily grid")
        if s.interval is not None and s.interval != g.i:
            raise Reject("C6", "cron interval differs from the grid's")
    if g.i < DAY and offline and online and e["onlineSchedule"].strip() != e["offlineSchedule"].strip():
        raise Reject("C10", "online schedule differs from the offline one on a sub-daily grid")
    if offline:
        out["backfill"] = offline
    if online:
        out["upload" if kind == "group_by" else "metadata_upload"] = online
    return out


FOREVER = 10**8


class Source:
    """One table that a run reads: its grid (None = time partitioned), lag and cut-offs."""

    def __init__(self, repo, owner, table, q, use, consumer: Grid | None, kind="events", default_1d=False, ns=None):
        self.sub = list(q.get("subPartitionsToWaitFor") or [])
        base, _, sub = table.partition("/")
        if sub:
            self.sub = [sub + ("/" + s if s else "") for s in self.sub or [""]]
        self.table, self.expr, self.lag = base, q.get("triggerExpr"), window(q.get("partitionLag")) or 0
        self.kind, col, self.cumulative = kind, q.get("partitionColumn"), truthy(q.get("isCumulative"))
        default_col = common(owner).get("spark.chronon.partition.column") or "ds"
        hit, interval, offset = (
            repo.producer(base, ns or owner),
            window(q.get("partitionInterval")),
            window(q.get("partitionOffset")),
        )
        self.timed = truthy(q.get("timePartitioned"))
        if self.timed:
            self.grid, self.column = None, col or default_col
            self.cuts(q, consumer or Grid(DAY, 0, None, "ds"))
            return
        if hit:
            producer = out_grid(repo.confs[hit[0]])
            self.table = hit[1]
            declared = interval is not None and not (default_1d and interval == DAY)
            if declared and (interval, offset or 0) != (producer.i, producer.o):
                raise Reject("C15", f"{base}: declared grid differs from its producer's")
            self.grid = Grid(producer.i, producer.o, q.get("partitionFormat") or producer.fmt, col or producer.column)
        else:
            if interval is None and consumer is not None and use == "whole" and not consumer.legacy:
                raise Reject("C14", f"{base}: no declared interval")
            fmt = q.get("partitionFormat")
            if fmt is None and interval in (None, DAY) and not offset:
                fmt = common(owner).get("spark.chronon.partition.format")
            self.grid = Grid(DAY if interval is None else interval, offset or 0, fmt, col or default_col)
        self.column = self.grid.column
        cuts = consumer is not None and (consumer.i % self.grid.i or (consumer.o - self.grid.o) % self.grid.i)
        if use == "whole" and cuts:
            raise Reject("C13", f"{base}: boundaries do not line up")
        self.cuts(q, self.grid)

    def cuts(self, q, g):
        self.lo = g.cut(q["startPartition"])[0] if q.get("startPartition") else None
        self.last, self.hi = g.cut(q["endPartition"]) if q.get("endPartition") else (None, None)

    def wait(self, a: int, b: int, back: int = 0, closed_by: int | None = None) -> dict | None:
        """Wait for [a, b) before lag; `back`: how much further back the range reaches (negative: it starts later);
        `closed_by`: only partitions closed by then (before lag)."""
        a, b = a - self.lag, b - self.lag
        whole = a - back
        a = max(a, whole)
        lo = self.lo if self.lo is not None else -FOREVER
        hi = self.hi if self.hi is not None else FOREVER
        whole_lo, top = max(whole, lo), min(b, hi)
        if whole_lo >= top:
            return None
        if self.expr:
            return {"table": self.table, "expression": self.expr}
        if self.grid is None:
            return {"table": self.table, "column": self.column, "until": iso(top if top == b else self.last)}
        g = self.grid
        if closed_by is not None:
            closed_by -= self.lag
            ends = [s + g.i for s in g.starts(a, b) if s + g.i <= closed_by] or [g.floor(closed_by)]
            starts = [x - g.i for x in ends if x > lo and x - g.i < hi]
        else:
            starts = g.starts(max(a, lo), top)
        if not starts:
            if back <= 0:
                return None
            starts = [g.floor(top - 1)]
        if self.cumulative:
            starts = starts[-1:]
        out = {"table": self.table, "column": self.column, "labels": starts, "grid": g, "sub": self.sub}
        first = -FOREVER if whole_lo <= -FOREVER // 2 else g.floor(whole_lo)
        if back > 0 and not self.cumulative and first < starts[0]:
            out["lookback"] = (first, starts[0] - g.i)
        return out


def join_table(meta: dict) -> str:
    return f"{meta['outputNamespace']}." + re.sub(r"[^a-zA-Z0-9_]", "_", meta["name"])


def sources_of(repo, owner, src, use, consumer, ns=None) -> list[Source]:
    if "events" in src:
        s = src["events"]
        return [
            Source(
                repo,
                owner,
                s["table"],
                dict(s.get("query") or {}, isCumulative=s.get("isCumulative")),
                use,
                consumer,
                ns=ns,
            )
        ]
    if "entities" in src:
        s = src["entities"]
        out = [Source(repo, owner, s["snapshotTable"], s.get("query") or {}, use, consumer, "snapshot", ns=ns)]
        if s.get("mutationTable"):
            out.append(
                Source(repo, owner, s["mutationTable"], s.get("query") or {}, "right", consumer, "mutation", ns=ns)
            )
        return out
    if "joinSource" in src:
        return [
            Source(
                repo,
                owner,
                join_table(src["joinSource"]["join"]["metaData"]),
                src["joinSource"].get("query") or {},
                use,
                consumer,
                ns=ns,
            )
        ]
    if "modelTransforms" in src:
        meta = src["modelTransforms"]["metaData"]
        info = meta.get("executionInfo", {}).get("outputTableInfo") or {
            "partitionInterval": {"length": 1, "timeUnit": 1}
        }
        return [
            Source(
                repo,
                owner,
                join_table(meta),
                {
                    k: info.get(k)
                    for k in (
                        "partitionColumn",
                        "partitionFormat",
                        "partitionInterval",
                        "partitionOffset",
                        "timePartitioned",
                    )
                },
                use,
                consumer,
                ns=ns,
            )
        ]
    return []


def has_topic(src) -> bool:
    if "joinSource" in src:
        return has_topic(src["joinSource"]["join"]["left"])
    return any(isinstance(v, dict) and (v.get("topic") or v.get("mutationTopic")) for v in src.values())


def lookback(gb) -> int:
    aggregations = gb.get("aggregations") or []
    if not aggregations or any(not a.get("windows") for a in aggregations):
        return FOREVER * 4
    return max(window(w) for a in aggregations for w in a["windows"])


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
            q = {
                k: info.get(k)
                for k in (
                    "partitionColumn",
                    "partitionFormat",
                    "partitionInterval",
                    "partitionOffset",
                    "timePartitioned",
                    "triggerExpr",
                    "isCumulative",
                )
            }
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
