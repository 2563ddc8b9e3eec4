"""A plain reading of the Quartz rules, for tests: whether an expression fires at a minute, field by field.

Written against Quartz's own description of its expressions, and sharing nothing with the package: a field is asked about
one number at a time, and nothing is turned into a Unix cron.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from random import Random

MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]  # Quartz counts them from 1


def fires_at(expression: str, at: datetime) -> bool:
    """Whether a legal expression fires in this minute."""
    _, minute, hour, day, month, weekday, *year = expression.upper().split()
    return (
        holds(minute, at.minute, 0, 59)
        and holds(hour, at.hour, 0, 23)
        and holds(month, at.month, 1, 12, MONTHS)
        and (not year or holds(year[0], at.year, 1970, 2099))
        and day_of_month_holds(day, at.date())
        and weekday_holds(weekday, at.date())
    )


def day_of_month_holds(field: str, at: date) -> bool:
    length = calendar.monthrange(at.year, at.month)[1]
    if field.endswith("W"):
        wanted = length if field == "LW" else int(field[:-1])
        month = [at.replace(day=number) for number in range(1, length + 1)]
        working = [each for each in month if each.isoweekday() <= 5]
        return wanted <= length and at == min(working, key=lambda each: abs(each.day - wanted))
    if field.startswith("L"):
        return at.day == length - int(field[2:] or 0)
    return holds(field, at.day, 1, 31)


def weekday_holds(field: str, at: date) -> bool:
    number = at.isoweekday() % 7 + 1  # Monday is 2, Sunday is 1
    if field == "L":
        return number == 7
    if "#" in field:
        name, nth = field.split("#")
        return holds(name, number, 1, 7, WEEKDAYS) and (at.day + 6) // 7 == int(nth)
    if field.endswith("L"):
        is_last = (at + timedelta(days=7)).month != at.month
        return is_last and holds(field[:-1], number, 1, 7, WEEKDAYS)
    return holds(field, number, 1, 7, WEEKDAYS)


def holds(field: str, value: int, low: int, high: int, names: list[str] | None = None) -> bool:
    def number(text: str) -> int:
        return names.index(text) + 1 if names and text in names else int(text)

    for item in field.split(","):
        span, slash, step_text = item.partition("/")
        step = int(step_text) if slash else 1
        if span in ("*", "?", ""):
            first, last = low, high
        elif "-" in span:
            first, last = map(number, span.split("-"))
        else:
            first = number(span)
            last = high if slash else first
        reached = first
        while reached <= (last if last >= first else last + high - low + 1):
            if value == (reached - low) % (high - low + 1) + low:
                return True
            reached += step
    return False


def next_fires(expression: str, after: datetime, count: int) -> Iterator[datetime]:
    """The first fires after a minute, found by looking at every minute of every day on which it can fire."""
    _, minute, hour, *_ = expression.upper().split()
    day = after.replace(hour=0, minute=0, second=0, microsecond=0)
    while count and day.year < 2100:
        if fires_at(f"0 * * {' '.join(expression.split()[3:])}", day):
            for passed in range(1440):
                at = day + timedelta(minutes=passed)
                if count and at > after and holds(minute, at.minute, 0, 59) and holds(hour, at.hour, 0, 23):
                    count -= 1
                    yield at
        day += timedelta(days=1)


def random_expression(random: Random) -> str:
    """A Quartz expression: every form of every field, wraps and names included; it fires every few years."""
    day, weekday = _field(random, 1, 28), "?"
    if random.random() < 0.3:
        day = random.choice(["L", "L-0", f"L-{random.randint(1, 27)}", "LW", f"{random.randint(1, 28)}W"])
    if random.random() < 0.5:
        day, weekday = "?", _field(random, 1, 7, WEEKDAYS)
        if random.random() < 0.5:
            named = random.choice([*WEEKDAYS, *"1234567"])
            weekday = random.choice(["L", f"{named}L", f"{named}#{random.randint(1, 4)}"])
    fields = ["0", _field(random, 0, 59), _field(random, 0, 23), day, _field(random, 1, 12, MONTHS), weekday]
    if random.random() < 0.4:
        first, last = sorted(random.sample(range(2020, 2060), 2))
        fields.append(random.choice(["*", str(last), f"{first}-{last}", f"{first}/{last - first}", f"{first},{last}"]))
    text = " ".join(fields)
    return text.lower() if random.random() < 0.2 else text


def _field(random: Random, low: int, high: int, names: list[str] | None = None) -> str:
    if random.random() < 0.25:
        return "*"
    return ",".join(_item(random, low, high, names) for _ in range(random.choice([1, 1, 1, 2, 3])))


def _item(random: Random, low: int, high: int, names: list[str] | None) -> str:
    def value() -> str:
        number = random.randint(low, high)
        return names[number - 1] if names and random.random() < 0.5 else str(number)

    step = f"/{random.randint(1, high)}"
    span = f"{value()}-{value()}"
    return random.choice([value(), value(), span, span + step, value() + step, "*" + step])
