"""A mail server of the tests: it takes whatever it is sent, on a free port of 127.0.0.1, and keeps it."""

from __future__ import annotations

import contextlib
import socketserver
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

from local_airflow import HOST


@dataclass
class MailSink:
    """A server that is listening, and what it was sent."""

    port: int
    messages: list[EmailMessage] = field(default_factory=list)

    def about(self, *words: str) -> list[EmailMessage]:
        """The messages whose subject has all these words."""
        return [each for each in self.messages if all(word in str(each["Subject"]) for word in words)]


class _Conversation(socketserver.StreamRequestHandler):
    """One client that sends mail (RFC 5321, as much of it as a client needs that neither logs in nor encrypts)."""

    def handle(self) -> None:
        self._say("220 mail of the tests")
        while line := self.rfile.readline():
            command = line[:4].upper().strip()
            if command == b"DATA":
                self._say("354 go on, and end with a dot")
                self.server.sink.messages.append(self._message())  # type: ignore[attr-defined]
            self._say("221 bye" if command == b"QUIT" else "250 well")
            if command == b"QUIT":
                return

    def _message(self) -> EmailMessage:
        lines = iter(self.rfile.readline, b".\r\n")
        text = b"".join(line[1:] if line.startswith(b".") else line for line in lines)
        return message_from_bytes(text, policy=default)  # type: ignore[return-value]

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@contextlib.contextmanager
def run_mail_sink() -> Iterator[MailSink]:
    """Listen until the block ends."""
    with socketserver.ThreadingTCPServer((HOST, 0), _Conversation) as server:
        server.daemon_threads = True
        server.sink = MailSink(server.server_address[1])  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.sink  # type: ignore[attr-defined]
        finally:
            server.shutdown()
            thread.join()
