"""The declaration of one route, from which decoding, validation, OpenAPI and the client follow."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar
from urllib.parse import quote, unquote

import msgspec

from pathdex.server.asgi import JSON, Response
from pathdex.server.limits import ServerLimits
from pathdex.server.parsing import decode
from pathdex.server.services import Services

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")


@dataclass(frozen=True)
class Route(Generic[RequestT, ResponseT]):
    """A path, the handler that answers it, and the types that go in and out.

    The handler gets the shared services, the model (None if `needs_model` is False and none is loaded) and the request:
    the decoded body, the path parameter as text, or None.
    """

    method: str
    path: str
    """May end in one parameter, as in `/v1/items/{id}`."""
    handler: Callable[[Services, Any, RequestT], Awaitable[Response]]
    summary: str
    request: type[RequestT] | None = None
    """The struct of the body."""
    response: type[ResponseT] | None = None
    """The struct of the response."""
    check: Callable[[RequestT, ServerLimits], None] | None = None
    """Raises a `RequestError` for a body that breaks a rule."""
    example: Mapping[str, Any] = field(default_factory=dict)
    """A body, for the OpenAPI document."""
    pattern: str | None = None
    """A regular expression for the path parameter, for the OpenAPI document."""
    content_type: str = JSON
    statuses: Mapping[int, str] = field(default_factory=lambda: {200: "Success."})
    """The statuses that come with `response`."""
    needs_token: bool = True
    needs_model: bool = True
    queued: bool = True
    """Whether the limit `queue` applies. Health checks and metrics must work under overload."""
    safe_to_repeat: bool = True
    """Whether a client may send the request again if the connection breaks."""

    @cached_property
    def name(self) -> str:
        """The handler's name; the operation id in the OpenAPI document."""
        name: str = self.handler.__name__
        return name

    @cached_property
    def prefix(self) -> str:
        """The path up to its parameter."""
        return self.path.partition("{")[0]

    @cached_property
    def parameter(self) -> str | None:
        """The name of the path parameter."""
        return self.path.partition("{")[2].rstrip("}") or None

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[Any]:
        return msgspec.json.Decoder(self.request)

    @cached_property
    def _response_decoder(self) -> msgspec.json.Decoder[Any]:
        return msgspec.json.Decoder(self.response)

    def parse(self, body: bytes, limits: ServerLimits) -> RequestT:
        """Decode and check a body."""
        request: RequestT = decode(self._decoder, body)
        if self.check is not None:
            self.check(request, limits)
        return request

    def parse_response(self, body: bytes) -> ResponseT:
        """Decode the body of a successful response; `ValueError` if it does not fit."""
        response: ResponseT = self._response_decoder.decode(body)
        return response

    def match_parameter(self, raw_path: bytes) -> str | None:
        """The decoded parameter; None if the path does not match. The raw path lets an id contain an encoded slash."""
        text = raw_path.decode("latin-1")
        rest = text.removeprefix(self.prefix)
        return unquote(rest) if rest and len(rest) < len(text) and "/" not in rest else None

    def url(self, parameter: str | None = None) -> str:
        """The path with its parameter filled in."""
        return self.path if parameter is None else self.prefix + quote(parameter, safe="")
