"""One HTTP answer within bounds: so many bytes, so many seconds from the first to the last (S8)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from airflow_chronon.threads import in_own_thread

if TYPE_CHECKING:
    import httpx

READ_TIMEOUT = 60.0  #: seconds without a sign of the server
ANSWER_SECONDS = 120.0  #: for a whole answer: a body that drips gives signs for ever
ANSWER_BYTES = 32 * 2**20  #: of one answer; a page of a hundred runs has some hundred kilobytes
_ENCODINGS = ("", "identity", "gzip")  #: others may pack a gigabyte into a few bytes


class OutOfBounds(Exception):
    """An answer that is too long, takes too long or cannot be measured; the text says which, after "Airflow at …"."""


@dataclass(frozen=True)
class BoundedAnswer:
    """An answer that was read to its end."""

    status: int
    text: str
    headers: Mapping[str, str]

    def retry_after(self, *, now: float) -> float | None:
        """In how many seconds the server wants to be asked again; None when it does not say."""
        said = self.headers.get("retry-after", "").strip()
        if said.isascii() and said.isdigit():
            return float(said[:6])
        try:
            return max(0.0, parsedate_to_datetime(said).timestamp() - now)
        except (ValueError, TypeError, OverflowError):
            return None


def ask(client: httpx.Client, request: httpx.Request) -> BoundedAnswer:
    """Send a request and read its answer. Raises :class:`OutOfBounds`, and what httpx raises.

    It runs in a thread of its own, since no timeout of a socket ends an answer whose header comes byte by byte, nor a name
    that is not found; what is given up ends with its connection.
    """
    deadline = time.monotonic() + ANSWER_SECONDS
    done = in_own_thread(lambda: _read(client, request, deadline), name="airflow-answer")
    try:
        return done.result(ANSWER_SECONDS + 1)
    except NotInTime:
        if done.done():
            raise  # the work's own
        raise _too_slow() from None


def _read(client: httpx.Client, request: httpx.Request, deadline: float) -> BoundedAnswer:
    answer = client.send(request, stream=True)
    try:
        encoding = answer.headers.get("content-encoding", "").strip().lower()
        if encoding not in _ENCODINGS:
            raise OutOfBounds(f"answers in the encoding {encoding[:40]!r}, which was not asked for")
        body = bytearray()
        for chunk in answer.iter_bytes():
            body += chunk
            if len(body) > ANSWER_BYTES:
                raise OutOfBounds(f"answers with more than {ANSWER_BYTES // 2**20} MB")
            if time.monotonic() > deadline:
                raise _too_slow()
    finally:
        answer.close()
    return BoundedAnswer(answer.status_code, body.decode(errors="replace"), dict(answer.headers))


def _too_slow() -> OutOfBounds:
    return OutOfBounds(f"does not end its answer within {ANSWER_SECONDS:g} seconds")
