"""The spellings of a range's ends as a pattern, so that a form can refuse what nobody could read (C27)."""

from __future__ import annotations

import re

from airflow_chronon.core.partitions.labels import PartitionSpec

_YEAR, _MONTH, _DAY = "(19[7-9][0-9]|2[01][0-9]{2})", "(0?[1-9]|1[0-2])", "(0?[1-9]|[12][0-9]|3[01])"
_HOUR, _MINUTE = "([01]?[0-9]|2[0-3])", "[0-5]?[0-9]"
_CLOCK = f"{_HOUR}(:{_MINUTE}(:00?)?)?"  # partitions are whole minutes
_DASHED = f"{_YEAR}-{_MONTH}-{_DAY}(( +|T){_CLOCK}|-{_HOUR}([-:]{_MINUTE})?)?"
_SLASHED = f"{_YEAR}/{_MONTH}/{_DAY}( +{_CLOCK})?"
_GROUP_NAME = re.compile(r"\?P<\w+>")
#: What Python escapes and a browser's pattern must not hold escaped.
_NEEDLESS_ESCAPE = re.compile(r"\\([-&~# ])")


def spellings_pattern(spec: PartitionSpec) -> str:
    """A regular expression, for Python and browsers alike, of all that a range of this table may be typed with.

    It takes every text that :func:`airflow_chronon.core.partitions.parse.read_range` can read: a day, a minute, a label in the
    table's own format, or nothing. Whether there is such a date, and whether it has closed, only the reading tells.
    """
    ways = [_DASHED, _SLASHED]
    if spec.format.pattern not in ("yyyy-MM-dd", "yyyy-MM-dd-HH-mm"):  # these two are among the ways above
        ways.append(_NEEDLESS_ESCAPE.sub(r"\1", _GROUP_NAME.sub("?:", spec.format.regex)))
    return rf"^\s*({'|'.join(ways)})\s*$|^$"
