"""ASGI plumbing: read a request body of bounded size, send a complete response."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from pathdex.errors import Problem
from pathdex.server.errors import DisconnectedError, RequestError

Scope: TypeAlias = dict[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[dict[str, Any]]]
Send: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]
ASGIApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

JSON, TEXT, HTML = "application/json", "text/plain; version=0.0.4; charset=utf-8", "text/html; charset=utf-8"
JSON_HEADER = f"Content-Type: {JSON}"
MODEL_HEADER = b"x-pathdex-model"

ROUTE, MODEL, OVERLOADED = "pathdex.route", "pathdex.model", "pathdex.overloaded"
"""Keys of the scope: the path of the matched route and the version of the model, which the app sets for the layers
around it; and whether the queue was full when the request arrived, which the protocol sets for the app."""

_DISCARD_FACTOR = 16
"""A body up to this many times the limit is read to its end before the error is sent, because most clients read the
response only after they have sent the whole body."""


@dataclass(slots=True)
class Response:
    """A response before it is sent."""

    body: bytes
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()
    version: str | None = None
    """The version of the model that answered, if it is not the one that was current when the request arrived."""
    content_type: str | None = None
    """By default that of the route."""


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The whole body; status 413 for a body of more than `limit` bytes, 415 for one that is not plain JSON."""
    length, more, kind = 0, True, b""
    for name, value in scope["headers"]:
        if name == b"content-type":
            kind += b", " + value if kind else value
        if name == b"content-length" and int(value) > limit * _DISCARD_FACTOR:
            length, more = int(value), False
        if name == b"content-encoding" and value.lower() != b"identity":
            shown = value.decode("latin-1")
            raise RequestError(
                415, Problem("compressed bodies are not supported", "content-encoding", shown, "send plain JSON")
            )
    # Browsers send JSON to other sites only after those have agreed; other types, and none, they send at once.
    if kind.partition(b";")[0].strip().lower() != JSON.encode():
        shown = kind.decode("latin-1") or None
        raise RequestError(415, Problem(f"must be {JSON}", "content-type", shown, f"send the header: {JSON_HEADER}"))
    body = bytearray()
    while more and length <= limit * _DISCARD_FACTOR:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise DisconnectedError
        part, more = message.get("body", b""), message.get("more_body", False)
        length += len(part)
        if length <= limit:
            body += part
    if length > limit:
        rule, remedy = f"the body must be at most {limit} bytes", "send less, or raise max_bytes on the server"
        raise RequestError(413, Problem(rule, remedy=remedy))
    return bytes(body)


def unless_known(scope: Scope, response: Response) -> Response:
    """Status 304 without a body if the client has what the ETag of the response names."""
    if not response.headers or response.status != 200:
        return response
    etag = next((value for name, value in response.headers if name == b"etag"), None)
    asked = [value for name, value in scope["headers"] if name == b"if-none-match"]
    if etag is None or not any(etag == one.strip().removeprefix(b"W/") for value in asked for one in value.split(b",")):
        return response
    return Response(b"", 304, response.headers, response.version, response.content_type)


async def send_response(send: Send, response: Response, content_type: str, version: str | None) -> None:
    """Send a response and the version of the model that produced it."""
    headers = [
        (b"content-type", (response.content_type or content_type).encode()),
        *response.headers,
    ]
    if response.status != 304:  # It would be the length of the body that is not sent.
        headers.append((b"content-length", str(len(response.body)).encode()))
    if version is not None:
        headers.append((MODEL_HEADER, version.encode()))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})


async def send_error(send: Send, error: RequestError, version: str | None) -> None:
    """Send an error. A status of 413 closes the connection, since the client may still be sending the body."""
    headers = (*error.headers, (b"connection", b"close")) if error.status == 413 else error.headers
    await send_response(send, Response(error.body(version), error.status, headers), JSON, version)
