"""The oracle on grids and labels (C4, C5, C7)."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from tests.support.oracle.oracle_time import DAY, Reject, dt, minutes

LEGAL = {m for m in range(1, 60) if 60 % m == 0 and m < 60} | {60 * h for h in (1, 2, 3, 4, 6, 8, 12)} | {DAY}


def window(w) -> int | None:
    return None if w is None else w["length"] * {0: 60, 1: DAY, 2: 1}[w["timeUnit"]]


TOKEN = re.compile(r"('(?:[^']|'')*')|(y+|M+|d+|H+|m+|s+)|([A-Za-z\[\]{}#])|(.)", re.S)
RUNS = {"yyyy", "yy", "M", "MM", "d", "dd", "H", "HH", "m", "mm", "s", "ss"}


class Pattern:
    """A Java date pattern as a list of (letter or None, width, literal)."""

    def __init__(self, text: str):
        self.text, self.parts = text, []
        for quoted, run, bad, other in TOKEN.findall(text):
            if bad or (run and run not in RUNS) or other == "'":
                raise Reject("C7", f"{bad or run or other!r} in format {text!r}")
            if run:
                self.parts.append((run[0], len(run), ""))
            else:
                self.parts.append((None, 0, other or ("'" if quoted == "''" else quoted[1:-1].replace("''", "'"))))
        self.letters = {p[0] for p in self.parts if p[0]}

    def write(self, minute: int) -> str:
        d = dt(minute)
        v = {"y": d.year, "M": d.month, "d": d.day, "H": d.hour, "m": d.minute, "s": 0}
        return "".join(
            lit if c is None else f"{v['y'] % 100:02d}" if (c, w) == ("y", 2) else str(v[c]).zfill(w)
            for c, w, lit in self.parts
        )

    def read(self, label: str) -> int | None:
        rx = "".join(
            re.escape(lit) if c is None else (r"(\d{1,2})" if w == 1 else rf"(\d{{{w}}})") for c, w, lit in self.parts
        )
        m = re.fullmatch(rx, label)
        if not m:
            return None
        v = dict(zip([c for c, _, _ in self.parts if c], map(int, m.groups()), strict=False))
        year = v["y"] + (2000 if ("y", 2) in {(c, w) for c, w, _ in self.parts} else 0)
        try:
            return minutes(datetime(year, v["M"], v["d"], v.get("H", 0), v.get("m", 0), tzinfo=UTC).isoformat())
        except (ValueError, KeyError):
            return None


class Grid:
    def __init__(self, interval: int, offset: int, fmt: str | None, column: str):
        if interval not in LEGAL:
            raise Reject("C4", f"interval of {interval} minutes")
        if not 0 <= offset < interval:
            raise Reject("C5", f"offset {offset} on interval {interval}")
        self.i, self.o, self.column = interval, offset, column
        self.fmt = fmt or ("yyyy-MM-dd" if interval == DAY and offset == 0 else "yyyy-MM-dd-HH-mm")
        self.pattern = Pattern(self.fmt)
        need = (
            {"y", "M", "d"}
            | ({"H"} if interval < DAY or offset else set())
            | ({"m"} if interval % 60 or offset % 60 else set())
        )
        if need - self.pattern.letters:
            raise Reject("C7", f"format {self.fmt!r} is too coarse")

    @property
    def legacy(self) -> bool:
        return self.i == DAY and self.o == 0

    def floor(self, t: int) -> int:
        return (t - self.o) // self.i * self.i + self.o

    def label(self, start: int) -> str:
        return self.pattern.write(start)

    def starts(self, a: int, b: int) -> list[int]:
        """Starts of the partitions that overlap [a, b)."""
        return list(range(self.floor(a), b, self.i)) if b > a else []

    def cut(self, label: str) -> tuple[int, int]:
        """The [start, end) that a cut-off label stands for: a partition of this table, or a whole day (C16)."""
        if (t := self.pattern.read(label)) is not None:
            return t, t + self.i
        for day in ("yyyy-MM-dd", "yyyyMMdd"):
            if (t := Pattern(day).read(label)) is not None:
                return t, t + DAY
        raise Reject("C16", f"cut-off {label!r} is neither in format {self.fmt!r} nor a day")

    def spec(self) -> dict:
        return {"interval_minutes": self.i, "offset_minutes": self.o, "format": self.fmt, "column": self.column}
