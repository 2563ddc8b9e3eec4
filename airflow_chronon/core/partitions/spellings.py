"""The shape of a range's ends as a pattern that people can read: a form shows it when it refuses a text (C27)."""

from __future__ import annotations

import re

from airflow_chronon.core.partitions.labels import PartitionSpec

_DATE_AND_TIME = r"\d{4}[-/]\d\d?[-/]\d\d?[-T :\d]*"
_FIELD = re.compile(r"\(\?P<\w+>\[0-9\](\{[\d,]+\})\)")
#: What Python escapes and a browser's pattern must not hold escaped.
_NEEDLESS_ESCAPE = re.compile(r"\\([-&~# ])")


def spellings_pattern(spec: PartitionSpec) -> str:
    """A regular expression, for Python and browsers alike, of what a range of this table may be typed with.

    It takes every text that :func:`airflow_chronon.core.partitions.parse.read_range` can read: a day, a minute, a label in the
    table's own format, or nothing. Whether there is such a date, and whether it has closed, only the reading tells.
    """
    ways = [_DATE_AND_TIME]
    if re.fullmatch(_DATE_AND_TIME, spec.format.example()) is None:
        ways.append(_NEEDLESS_ESCAPE.sub(r"\1", _FIELD.sub(r"\\d\1", spec.format.regex)))
    return rf"^\s*({'|'.join(ways)})?\s*$"
