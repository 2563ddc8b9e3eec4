"""What the second opinion reads of compiled confs: their grids, their modes and their sources."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.support.oracle.oracle_grid import Grid, window
from tests.support.oracle.oracle_time import DAY, Cron, Reject, iso, schedule

TYPES = {"group_bys": "group_by", "joins": "join", "staging_queries": "staging_query"}
TABLE_KEYS = ("partitionColumn", "partitionFormat", "partitionInterval", "partitionOffset", "timePartitioned")


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
                {k: info.get(k) for k in TABLE_KEYS},
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
