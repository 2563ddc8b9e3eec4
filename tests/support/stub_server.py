"""A small real HTTP server on 127.0.0.1 that answers as Airflow does when something is wrong."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, Any]


@dataclass
class StubServer:
    """Answers a path with the next of its replies; the last one stays. ``seen`` holds what was asked."""

    url: str = ""
    replies: dict[str, list[Reply]] = field(default_factory=dict)
    seen: list[tuple[str, str, str | None, Any]] = field(default_factory=list)  #: method, path, authorization, body

    headers: dict[str, str] = field(default_factory=dict)  #: that every answer carries

    def reply(self, path: str, *replies: Reply) -> None:
        self.replies[path] = list(replies)

    def next_reply(self, path: str) -> Reply:
        queue = self.replies.get(path.partition("?")[0], [(404, {"detail": "Not Found"})])
        return queue.pop(0) if len(queue) > 1 else queue[0]

    def asked(self, path: str) -> int:
        return sum(each[1].partition("?")[0] == path for each in self.seen)


@contextmanager
def stub_server() -> Iterator[StubServer]:
    stub = StubServer()
    stub.reply("/auth/token", (201, {"access_token": "first"}))

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            stub.seen.append((self.command, self.path, self.headers.get("Authorization"), body))
            status, value = stub.next_reply(self.path)
            text = (value if isinstance(value, str) else json.dumps(value)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            for name, value in stub.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _answer

        log_message: Callable[..., None] = lambda *_: None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
