"""HTTP connections with limits that uvicorn leaves to a reverse proxy.

uvicorn closes idle connections, but waits forever for the rest of a request and accepts headers of any size. This is a
subclass of its protocol, so it depends on uvicorn internals: `tests/server/test_uvicorn_internals.py` lists them, and
`pyproject.toml` bounds the version. docs/decisions/http-server.md has the comparison with plain uvicorn and granian.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from pathdex.errors import Problem
from pathdex.server.asgi import OVERLOADED, Receive, Scope, Send, send_error
from pathdex.server.errors import SERVER, RequestError
from pathdex.server.limits import ServerLimits

MAX_HEADER_BYTES = 64 * 1024
"""Bytes of the request line and the headers, each header counted as the line `name: value`."""
_SLACK = 2
"""How many times the limit may arrive before the headers end; then they are too long however they are written."""
LINGER_SECONDS = 2.0
"""How long a closed connection is read until the client closes it too. Closing a socket with unread data resets the
connection, and the client may lose a response that it has not read yet."""


def bounded_protocol(limits: ServerLimits) -> type[BoundedProtocol]:
    """The protocol class for a server with these limits."""
    return type("Protocol", (BoundedProtocol,), {"limits": limits})


class BufferedTransport:
    """Joins all writes of one event-loop iteration into one system call, and closes in two steps.

    uvicorn writes the head and the body of a response separately, which also wakes the client twice. `close` sends what
    is left and the end of the stream; the socket is closed when the client has closed its side, or after a while.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []
        self._closing: asyncio.TimerHandle | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if self.is_closing():
            return
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def is_closing(self) -> bool:
        return self._closing is not None or self._transport.is_closing()

    def close(self) -> None:
        if self.is_closing():
            return
        self._flush()
        self._closing = self._loop.call_later(LINGER_SECONDS, self._transport.close)
        try:
            self._transport.write_eof()
            self._transport.resume_reading()
        except (OSError, RuntimeError):  # The client is gone.
            self._transport.close()

    def forget(self) -> None:
        """The connection is closed."""
        if self._closing is not None:
            self._closing.cancel()

    def get_write_buffer_size(self) -> int:
        try:
            return sum(map(len, self._parts)) + self._transport.get_write_buffer_size()
        except RuntimeError:  # uvloop, if the socket is closed.
            return 0

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        # A slow reader may have been disconnected in the same iteration.
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))


class BoundedProtocol(HttpToolsProtocol):
    """A connection that limits header size, the time to send a request, and the time to read a response."""

    limits: ServerLimits
    stopping = False
    """Whether the server stops: the next response of each connection is its last."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting_since: float | None = None
        """Since when the rest of a request is missing; None between requests."""
        self._in_head, self._head_bytes, self._received = False, 0, 0
        self._offers_upgrade = False
        """Whether the request offers another protocol; it is then read again without the offer."""
        self._is_refused = False
        """Whether nothing more is read: what arrived after the last complete request is not valid."""
        self._unsent, self._unsent_since = 0, 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(BufferedTransport(transport, self.loop))  # type: ignore[arg-type]
        self._waiting_since = self.loop.time()
        if len(self.connections) > self.limits.connections:
            problem = Problem(f"the server has {self.limits.connections} open connections", remedy="try again later")
            self._send_error(503, problem)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.transport.forget()  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        # Ignore data that arrives after the last response.
        if self._is_done:
            return
        self._unset_keepalive_if_required()
        self._feed(data)
        self._received += len(data)
        if self._in_head and self._received > _SLACK * MAX_HEADER_BYTES:
            self._send_431()

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.send_400_response(str(error))
        except httptools.HttpParserUpgrade as offer:
            if self._offers_upgrade and not self._is_done:
                self._decline_upgrade(data[offer.args[0] :])

    def _decline_upgrade(self, rest: bytes) -> None:
        """Read a request again without its offer of another protocol, which RFC 9110 allows a server to ignore.

        Java's HttpClient offers HTTP/2 with the first request of a connection. The parser takes all that follows such a
        head for the other protocol, also the body.
        """
        head = b"%s %s HTTP/%s\r\n" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        for name, value in self.headers:
            if name == b"connection":
                value = b", ".join(one.strip() for one in value.split(b",") if one.strip().lower() != b"upgrade")
            if name != b"upgrade":
                head += b"%s: %s\r\n" % (name, value)
        self.parser = type(self.parser)(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._feed(head + b"\r\n" + rest)

    @property
    def _is_done(self) -> bool:
        return self._is_refused or self.transport.is_closing()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._waiting_since, self._in_head, self._head_bytes, self._received = self.loop.time(), True, 0, 0
        self._offers_upgrade = False

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._head_bytes += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        # A trailer, which comes after the body, must not count as a header: a proxy has not seen it.
        if self._in_head:
            super().on_header(name, value)
        self._head_bytes += len(name) + len(value) + len(": \r\n")
        if self._head_bytes > MAX_HEADER_BYTES:
            self._send_431()

    def on_headers_complete(self) -> None:
        self._in_head = False
        if self._is_done:
            return
        if self._head_bytes + len(self.parser.get_method()) + len("  HTTP/1.1\r\n\r\n") > MAX_HEADER_BYTES:
            self._send_431()
            return
        if self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT":
            self._offers_upgrade = True
            return
        if len(self.tasks) >= self.limits.queue:
            self.scope[OVERLOADED] = True  # type: ignore[literal-required]
        super().on_headers_complete()
        if self.stopping:
            self.cycle.keep_alive = False

    def shutdown(self) -> None:
        """Close the connection, unless a request is in flight or its beginning has arrived; then after its response."""
        if not self._in_head:
            super().shutdown()

    def on_body(self, body: bytes) -> None:
        if not self._is_done:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self._offers_upgrade:
            return
        if not self._is_done:
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

    def _send_431(self) -> None:
        self._send_error(431, Problem(f"the headers must be at most {MAX_HEADER_BYTES} bytes"))

    def _send_error(self, status: int, problem: Problem) -> None:
        """Send an error in place of the application's response, and close the connection.

        Responses to requests before this one come first. If those are all, and what follows is no request, there is no
        error to send.
        """
        error = RequestError(status, problem, type=SERVER)
        if self.cycle is not None and not self.cycle.response_complete:
            waits = bool(self.pipeline)
            if waits and self.cycle.more_body:
                self.pipeline[0] = (self.cycle, _answer(error))
            if waits or not self.cycle.more_body:
                self._is_refused, self._waiting_since, self.cycle.keep_alive = True, None, False
                return
        started = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if not started:
            body = error.body()
            head = b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
            self.transport.write(STATUS_LINE[status] + head + body)
        self.transport.close()


def _answer(error: RequestError) -> Any:
    """An application that only sends the error."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send_error(send, error, None)

    return app
