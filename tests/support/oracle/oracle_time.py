"""The oracle on time: minutes, crons and schedule texts (C1, C2)."""

from __future__ import annotations

import calendar
import itertools
import re
from datetime import UTC, datetime

UTC = UTC
DAY = 1440  # everything below is whole minutes since the epoch
OFF = {"", "none", "null", "@never"}


class Reject(Exception):
    def __init__(self, rule: str, why: str):
        self.rule, self.why = rule, why


def dt(minute: int) -> datetime:
    return datetime.fromtimestamp(minute * 60, UTC)


def iso(minute: int) -> str:
    return dt(minute).strftime("%Y-%m-%dT%H:%M:%SZ")


def minutes(text: str) -> int:
    d = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return int((d if d.tzinfo else d.replace(tzinfo=UTC)).timestamp()) // 60


NAMES = {n: i for i, n in enumerate(["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"])}
MONTHS = {
    n: i + 1 for i, n in enumerate(["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"])
}


def field(text: str, low: int, high: int, names: dict[str, int]) -> set:
    out: set = set()
    for part in text.upper().split(","):
        if part == "L" and high == 31:
            out.add("L")
            continue
        if m := re.fullmatch(r"(\w+)#(\d)", part):
            out.add((names.get(m[1]) if m[1] in names else int(m[1]) % 7, int(m[2])))
            continue
        span, _, step = part.partition("/")
        if span == "*" or (span == "?" and high in (31, 6)):
            a, b = low, high
        elif "-" in span:
            a, b = (names[x] if x in names else int(x) for x in span.split("-"))
        else:
            a = names[span] if span in names else int(span)
            b = high if step else a
        top = 7 if high == 6 else high
        if not (low <= a <= top and low <= b <= top) or (step and int(step) < 1):
            raise Reject("C1", f"bad cron field {text!r}")
        span_values = range(a, b + 1) if a <= b else [*range(a, high + 1), *range(low, b + 1)]  # croniter wraps
        out |= {x % 7 if high == 6 else x for x in list(span_values)[:: int(step or 1)]}
    return out


class Cron:
    def __init__(self, text: str, regular: bool = True):
        parts = text.split()
        if len(parts) != 5:
            raise Reject("C1", f"{text!r} has {len(parts)} fields, not 5")
        if any(re.search(r"(^|,)[RH](\(|/|,|$)", p.upper()) for p in parts):
            raise Reject("C1", f"R and H are refused: {text!r}")
        try:
            self.m = field(parts[0], 0, 59, {})
            self.h = field(parts[1], 0, 23, {})
            self.dom = field(parts[2], 1, 31, {})
            self.mon = field(parts[3], 1, 12, MONTHS)
            self.dow = field(parts[4], 0, 6, NAMES)
        except (ValueError, KeyError, TypeError) as e:
            raise Reject("C1", f"{text!r}: {e}") from None
        self.any_dom, self.any_dow = self.dom >= set(range(1, 32)), self.dow >= set(range(7))
        # as in croniter: a list that names every day still counts as restricted beside the other day field,
        # except a full weekday list beside a day of month that begins with a star
        self.star_dom = parts[2] in ("*", "?")
        self.star_dow = parts[4] in ("*", "?") or (self.any_dow and parts[2].startswith("*"))
        fires = sorted(h * 60 + m for h in self.h for m in self.m)
        self.interval = None
        if len(fires) > 1 and regular:
            if not (self.any_dom and self.any_dow and self.mon >= set(range(1, 13))):
                raise Reject("C2", f"{text!r} fires more than once a day but not every day")
            gaps = {b - a for a, b in itertools.pairwise(fires)} | {fires[0] + DAY - fires[-1]}
            if len(gaps) != 1:
                raise Reject("C2", f"{text!r} does not tile the day evenly")
            self.interval = gaps.pop()
        self.times = fires
        start = minutes("2024-01-01")
        if not any(self.day(start + d * DAY) for d in range(8 * 366)):
            raise Reject("C1", f"{text!r} never fires")

    def day(self, minute: int) -> bool:
        d = dt(minute)
        if d.month not in self.mon:
            return False
        last = calendar.monthrange(d.year, d.month)[1]
        wd = (d.weekday() + 1) % 7
        on_dom = d.day in self.dom or ("L" in self.dom and d.day == last)
        on_dow = wd in self.dow or (wd, (d.day - 1) // 7 + 1) in self.dow
        if self.star_dom:
            return on_dow
        if self.star_dow:
            return on_dom
        return on_dom or on_dow

    def fires(self, a: int, b: int) -> list[int]:
        out = []
        for day in range(a // DAY * DAY, b + DAY, DAY):
            if self.day(day):
                out += [day + t for t in self.times if a <= day + t < b]
        return out

    def before(self, t: int) -> int:
        for back in range(9 * 366):
            day = t // DAY * DAY - back * DAY
            if self.day(day):
                hits = [day + x for x in self.times if day + x < t]
                if hits:
                    return hits[-1]
        raise Reject("C1", "no earlier fire")


def schedule(text) -> Cron | None:
    if text is None or text.strip().lower() in OFF:
        return None
    s = text.strip()
    if s.lower() == "@daily":
        return Cron("0 0 * * *")
    if s.startswith("@"):
        raise Reject("C1", f"alias {s!r}")
    return Cron(s)
