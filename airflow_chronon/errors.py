"""What can be wrong, as values: every message carries the conf, the value, the rule and the remedy as fields.

A :class:`Fault` is one broken rule. Readers collect faults and raise once; the edges print them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

_LONGEST = 2_000  #: characters of a part of a fault: whoever types a book gets no book back
_MOST = 20  #: faults that one file is reported with

HIDDEN = "***"  #: what stands for a secret

# To the last @: a password may hold anything that is not percent-encoded.
_USER = re.compile(r"(?<=://)\S*@")
_PASSWORD = re.compile(r"(://[^\s/@:'\"]*:)[^\s'\"]+@")


def readable(text: str, *, keep: str = "") -> str:
    """A text that any terminal and database takes: what cannot be printed is escaped, unless it is to ``keep`` (S1)."""
    if text.isprintable():
        return text
    return "".join(c if c in keep or c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shown_address(text: str) -> str:
    """An address, or a message about one, without its user and password (S4)."""
    return _USER.sub("", text)


def without_passwords(text: str) -> str:
    """A document, such as a query or JSON, with the passwords of the addresses in it hidden (S4). An address ends at a quote
    there, which one in a message may hold."""
    return _PASSWORD.sub(rf"\1{HIDDEN}@", text) if "://" in text else text


@dataclass(frozen=True)
class Fault:
    """One broken rule of one conf, setting, label or command line. Its texts can be printed and stored, whatever they quote."""

    rule: str  #: the number in the table of rules, such as ``C13``; ``input`` for a file that cannot be read
    field: str  #: where it stands, such as ``sources[0].events.query``
    message: str  #: what is wrong, the value included
    remedy: str = ""  #: what to do about it

    def __post_init__(self) -> None:
        for name in ("field", "message", "remedy"):
            object.__setattr__(self, name, readable(_shortened(getattr(self, name)), keep="\n\t"))

    def __str__(self) -> str:
        where = f"{self.field}: " if self.field else ""
        remedy = f" {self.remedy[0].upper()}{self.remedy[1:]}" if self.remedy else ""
        stop = "." if remedy and remedy[-1] not in ".?!" else ""
        return f"{where}{self.message} ({self.rule}).{remedy}{stop}"

    def under(self, prefix: str) -> Fault:
        """The same fault with its field placed below ``prefix``."""
        return replace(self, field=f"{prefix}.{self.field}" if self.field else prefix)

    def reworded(self, word: Callable[[str], str]) -> Fault:
        """The same fault with what it says put through ``word``."""
        return replace(self, message=word(self.message), remedy=word(self.remedy))


def _shortened(text: str) -> str:
    """The text, a long one without its middle: what is quoted stands there, and what is wrong with it around it."""
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]} … {len(text) - 2 * half:,} more characters … {text[-half:]}"


class ChrononError(Exception):
    """A user-facing error: its text is one sentence and its parts are fields."""

    def __init__(self, fault: Fault, *, conf: str = "") -> None:
        conf = readable(conf)
        self.fault, self.conf = fault, conf
        super().__init__(f"{conf}: {fault}" if conf else str(fault))

    def reword(self, word: Callable[[str], str]) -> None:
        """Say the same with every text put through ``word``."""
        self.fault = self.fault.reworded(word)
        self.args = (f"{self.conf}: {self.fault}" if self.conf else str(self.fault),)


class Rejected(ChrononError):
    """Every fault that was found in one conf, file or setting, raised once."""

    def __init__(self, faults: Iterable[Fault], *, conf: str = "") -> None:
        self.faults = _first(tuple(faults))
        if not self.faults:
            raise ValueError("Rejected needs at least one fault")
        super().__init__(self.faults[0], conf=conf)
        self._say()

    def reword(self, word: Callable[[str], str]) -> None:
        self.faults = tuple(fault.reworded(word) for fault in self.faults)
        self.fault = self.faults[0]
        self._say()

    def _say(self) -> None:
        lines = "; ".join(str(fault) for fault in self.faults)
        self.args = (f"{self.conf}: {lines}" if self.conf else lines,)


def _first(faults: tuple[Fault, ...]) -> tuple[Fault, ...]:
    """As many faults as anyone reads, and how many more there are."""
    more = len(faults) - _MOST
    if more <= 0:
        return faults
    rest = replace(faults[_MOST], field="", message=f"{more} more are wrong with it", remedy="mend the first ones")
    return (*faults[:_MOST], rest)


class CatalogError(ChrononError):
    """A catalog cannot answer: no rights, a missing extra, a table of another shape."""


class JobFailed(ChrononError):
    """The work of a run ended badly; the text says how."""


class JobRefused(JobFailed):
    """A runner cannot do this job at all; said before any work is done."""


class AirflowTooOld(ImportError):
    """This Airflow lacks what the provider stands on; the text is what a plugin, a loader file or a command says there."""
