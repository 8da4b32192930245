"""Connections that cannot be held open for ever or filled without end: what uvicorn leaves to a proxy in front of it.

uvicorn closes idle connections, but it waits for ever for the rest of a request, and it reads heads of any length.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from pathdex.server.app import FULL
from pathdex.server.errors import SERVER
from pathdex.server.limits import Limits
from pathdex.server.schemas import Error, Refusal

MAX_HEAD = 64 * 1024
"""Bytes of a request's head."""


def bounded_protocol(limits: Limits) -> type[HttpToolsProtocol]:
    """The protocol class of a server with these limits."""
    return type("Protocol", (BoundedProtocol,), {"limits": limits})


class _OneWrite:
    """A transport that sends what is written in one turn of the event loop at once.

    uvicorn writes the head and the body of an answer apart: two system calls, and a client that is woken up twice.
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
    """A connection with a limit on its head, on the time of a request, and on the time that an answer is not taken."""

    limits: Limits

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._owing: float | None = None
        """Since when the client owes the rest of a request; None while it owes nothing."""
        self._in_head, self._head_size = False, 0
        self._unsent, self._unsent_since = 0, 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(_OneWrite(transport, self.loop))  # type: ignore[arg-type]
        self._owing = self.loop.time()
        if len(self.connections) > self.limits.connections:
            self._refuse(503, f"the server has {self.limits.connections} connections already; try again in a moment")

    def data_received(self, data: bytes) -> None:
        # What comes after a refusal is not looked at.
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._in_head:
            self._head_size += len(data)
            if self._head_size > MAX_HEAD:
                self._refuse(431, f"the head of the request is too large: must be at most {MAX_HEAD} bytes")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._owing, self._in_head, self._head_size = self.loop.time(), True, 0

    def on_headers_complete(self) -> None:
        self._in_head = False
        if len(self.tasks) >= self.limits.queue:
            self.scope[FULL] = True  # type: ignore[literal-required]
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._owing = None

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "this is not HTTP; send a request of HTTP/1.1")

    def check_time(self, now: float) -> None:
        """End the connection if the client has taken too long; called about once a second."""
        if self._owing is not None and now - self._owing > self.limits.read_timeout:
            self._refuse(408, f"the request did not come within {self.limits.read_timeout:g} s; send it in one go")
            self._owing = None
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or unsent != self._unsent:
            self._unsent, self._unsent_since = unsent, now
        elif now - self._unsent_since > self.limits.read_timeout:
            self.transport.abort()

    def _refuse(self, status: int, message: str) -> None:
        """Answer without the application, and close."""
        started = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if not started:
            body = msgspec.json.encode(Refusal(error=Error(type=SERVER, message=message)))
            head = b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
            self.transport.write(STATUS_LINE[status] + head + body)
        self.transport.close()
