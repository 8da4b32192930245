"""The ends of an ASGI connection: a body of bounded size in, one whole answer out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from pathdex.server.errors import DisconnectedError, RequestError

Scope: TypeAlias = dict[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[dict[str, Any]]]
Send: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]
Headers: TypeAlias = Iterable[tuple[bytes, bytes]]

JSON, TEXT, HTML = b"application/json", b"text/plain; version=0.0.4; charset=utf-8", b"text/html; charset=utf-8"
VERSION_HEADER = b"x-pathdex-model"
DISCARDED = 16
"""A body of up to this many times the limit is read to its end before it is refused: most clients look at the answer
only when they have sent everything."""


@dataclass
class Reply:
    """An answer before it is sent."""

    body: bytes
    status: int = 200
    kind: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()
    close: bool = False


async def read_body(scope: Scope, receive: Receive, most: int) -> bytes:
    """The whole body; status 413 for one of more than `most` bytes, 415 for a compressed one."""
    for name, value in scope["headers"]:
        if name == b"content-length" and int(value) > most:
            await _discard(receive, most * DISCARDED if int(value) <= most * DISCARDED else 0)
            raise _too_large(most)
        if name == b"content-encoding" and value.lower() != b"identity":
            raise RequestError(415, f"content-encoding {value.decode('latin-1')!r}: must be left out; send plain JSON")
    message = await _receive(receive)
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        if len(body) > most:
            raise _too_large(most)
        return body
    parts = bytearray(body)
    while message.get("more_body", False):
        if len(parts) > most:
            await _discard(receive, most * DISCARDED)
            raise _too_large(most)
        message = await _receive(receive)
        parts += message.get("body", b"")
    if len(parts) > most:
        raise _too_large(most)
    return bytes(parts)


async def send_reply(send: Send, reply: Reply, version: str | None) -> None:
    """Send an answer with the version of the model that gave it."""
    headers = [
        (b"content-type", reply.kind),
        (b"content-length", str(len(reply.body)).encode()),
        *reply.headers,
    ]
    if version is not None:
        headers.append((VERSION_HEADER, version.encode()))
    if reply.close:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


def header(scope: Scope, wanted: bytes) -> bytes | None:
    """The first value of a header, by its name in lower case."""
    return next((value for name, value in scope["headers"] if name == wanted), None)


async def _receive(receive: Receive) -> dict[str, Any]:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise DisconnectedError
    return message


async def _discard(receive: Receive, most: int) -> None:
    read, more = 0, True
    while more and read < most:
        message = await _receive(receive)
        read += len(message.get("body", b""))
        more = message.get("more_body", False)


def _too_large(most: int) -> RequestError:
    return RequestError(
        413,
        f"the body is too large: must be at most {most} bytes; send less, or have the server's limit raised",
        field="body",
        rule=f"must be at most {most} bytes",
    )
