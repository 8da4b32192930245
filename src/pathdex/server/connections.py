"""HTTP connections with limits that uvicorn leaves to a reverse proxy.

uvicorn closes idle connections, but waits forever for the rest of a request and accepts headers of any size. This is a
subclass of its protocol, so it depends on uvicorn internals: `tests/server/test_uvicorn_internals.py` lists them, and
`pyproject.toml` bounds the version. docs/decisions/http-server.md has the comparison with plain uvicorn and granian.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from pathdex.errors import Problem
from pathdex.server.asgi import OVERLOADED
from pathdex.server.errors import SERVER, RequestError
from pathdex.server.limits import ServerLimits

MAX_HEADER_BYTES = 64 * 1024


def bounded_protocol(limits: ServerLimits) -> type[HttpToolsProtocol]:
    """The protocol class for a server with these limits."""
    return type("Protocol", (BoundedProtocol,), {"limits": limits})


class BufferedTransport:
    """Joins all writes of one event-loop iteration into one system call.

    uvicorn writes the head and the body of a response separately, which also wakes the client twice.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def get_write_buffer_size(self) -> int:
        return sum(map(len, self._parts)) + self._transport.get_write_buffer_size()

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts:
            self._transport.write(b"".join(parts))


class BoundedProtocol(HttpToolsProtocol):
    """A connection that limits header size, the time to send a request, and the time to read a response."""

    limits: ServerLimits

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting_since: float | None = None
        """Since when the rest of a request is missing; None between requests."""
        self._in_head, self._head_bytes = False, 0
        self._unsent, self._unsent_since = 0, 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(BufferedTransport(transport, self.loop))  # type: ignore[arg-type]
        self._waiting_since = self.loop.time()
        if len(self.connections) > self.limits.connections:
            problem = Problem(f"the server has {self.limits.connections} open connections", remedy="try again later")
            self._send_error(503, problem)

    def data_received(self, data: bytes) -> None:
        # Ignore data that arrives after an error response.
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEADER_BYTES:
                self._send_error(431, Problem(f"the headers must be at most {MAX_HEADER_BYTES} bytes"))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._waiting_since, self._in_head, self._head_bytes = self.loop.time(), True, 0

    def on_headers_complete(self) -> None:
        self._in_head = False
        if len(self.tasks) >= self.limits.queue:
            self.scope[OVERLOADED] = True  # type: ignore[literal-required]
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._waiting_since = None

    def send_400_response(self, msg: str) -> None:
        self._send_error(400, Problem("the request is not valid HTTP", remedy="send HTTP/1.1"))

    def check_timeouts(self, now: float) -> None:
        """Close the connection if the client is too slow; called about once a second."""
        if self._waiting_since is not None and now - self._waiting_since > self.limits.read_timeout:
            self._send_error(408, Problem(f"the request was not received within {self.limits.read_timeout:g} s"))
            self._waiting_since = None
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or unsent != self._unsent:
            self._unsent, self._unsent_since = unsent, now
        elif now - self._unsent_since > self.limits.read_timeout:
            self.transport.abort()

    def _send_error(self, status: int, problem: Problem) -> None:
        """Send an error without the application, and close the connection."""
        started = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if not started:
            body = RequestError(status, problem, type=SERVER).body()
            head = b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
            self.transport.write(STATUS_LINE[status] + head + body)
        self.transport.close()
