"""The declaration of a route, from which decoding, validation, OpenAPI and the client follow; the table of routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeAlias, TypeVar
from urllib.parse import quote, unquote

import msgspec

from pathdex.errors import Problem
from pathdex.server.asgi import JSON, Response
from pathdex.server.errors import SERVER, RequestError
from pathdex.server.limits import ServerLimits
from pathdex.server.parsing import decode, make_decoder
from pathdex.server.query_string import decode_query
from pathdex.server.validation import check
from pathdex.server.worker_context import WorkerContext

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")
Handler: TypeAlias = Callable[[WorkerContext, Any, RequestT], Awaitable[Response]]
"""Gets the shared context, the model (None if an operational route is called before it is loaded) and the request: the
decoded body, the path parameter as text, or None."""

INTERNAL_FACTOR = 64
"""How many times larger than others internal bodies may be: a batch with the arrays of its queries."""


@dataclass(frozen=True)
class Route(Generic[RequestT, ResponseT]):
    """A path, the handler that answers it, and the types that go in and out."""

    method: str
    path: str
    """May end in one parameter, as in `/v1/items/{id}`."""
    handler: Handler[RequestT]
    """Its name is the operation id in the OpenAPI document, its docstring the summary."""
    response: type[ResponseT]
    """The struct of the response, or bytes."""
    request: type[RequestT] | None = None
    """The struct of the body."""
    example: Mapping[str, Any] = field(default_factory=dict)
    """A body, for the OpenAPI document."""
    query: type[RequestT] | None = None
    """The struct of the parameters in the URL: those after `?`, and the one of the path."""
    pattern: str | None = None
    """A regular expression for the path parameter, for the OpenAPI document."""
    content_type: str = JSON
    statuses: Mapping[int, str] = field(default_factory=lambda: {200: "Success."})
    """The statuses that come with `response`."""
    public: bool = False
    """Whether it needs no token."""
    operational: bool = False
    """Whether it works under overload and without a model, as health checks and metrics must."""
    errors: tuple[int, ...] = ()
    """Statuses of errors that only this route has, for the OpenAPI document."""
    internal: bool = False
    """Whether only other Pathdex servers call it: it is not documented, and its bodies may be larger."""
    safe_to_repeat: bool = True
    """Whether a client may send the request again if the connection breaks."""

    @cached_property
    def name(self) -> str:
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
        assert self.request is not None
        return make_decoder(self.request)

    @cached_property
    def _response_decoder(self) -> msgspec.json.Decoder[ResponseT]:
        return make_decoder(self.response)

    def max_bytes(self, limits: ServerLimits) -> int:
        """The largest body."""
        return limits.max_bytes * (INTERNAL_FACTOR if self.internal else 1)

    def parse_query(self, query_string: bytes, parameter: str | None) -> RequestT:
        """Decode and check the parameters in the URL."""
        assert self.query is not None
        given = {} if parameter is None or self.parameter is None else {self.parameter: parameter}
        parsed: RequestT = decode_query(self.query, query_string, given)
        return parsed

    def parse(self, body: bytes, limits: ServerLimits) -> RequestT:
        """Decode and check a body."""
        if self.internal:
            return self._parse_internal(body)
        request: RequestT = decode(self._decoder, body)
        check(request, limits)
        return request

    def _parse_internal(self, body: bytes) -> RequestT:
        try:
            found: RequestT = self._decoder.decode(body)
        except (ValueError, RecursionError) as error:
            problem = Problem(f"the body does not fit ({error})", remedy="use the same version of Pathdex everywhere")
            raise RequestError(422, problem, type=SERVER) from None
        return found

    def parse_response(self, body: bytes) -> ResponseT:
        """Decode the body of a successful response; `ValueError` if it does not fit."""
        return self._response_decoder.decode(body)

    def match_parameter(self, raw_path: bytes) -> str | None:
        """The decoded parameter; None if the path does not match. The raw path lets an id contain an encoded slash."""
        text = raw_path.decode("latin-1")
        rest = text.removeprefix(self.prefix)
        return unquote(rest) if rest and len(rest) < len(text) and "/" not in rest else None

    def url(self, parameter: str | None = None) -> str:
        """The path with its parameter filled in."""
        return self.path if parameter is None else self.prefix + quote(parameter, safe="")


class RouteTable(list[Route[Any, Any]]):
    """All routes. Its methods decorate handlers, which become routes."""

    def post(
        self, path: str, request: type[RequestT], response: type[ResponseT], example: Mapping[str, Any], **options: Any
    ) -> Callable[[Handler[RequestT]], Route[RequestT, ResponseT]]:
        return lambda handler: self._add(Route("POST", path, handler, response, request, example, **options))

    def get(
        self, path: str, response: type[ResponseT], query: type[RequestT] | None = None, **options: Any
    ) -> Callable[[Handler[RequestT]], Route[RequestT, ResponseT]]:
        options = options if query is None else {**options, "query": query}
        return lambda handler: self._add(Route("GET", path, handler, response, **options))

    def delete(
        self, path: str, response: type[ResponseT], request: type[RequestT] | None = None, **options: Any
    ) -> Callable[[Handler[RequestT]], Route[RequestT, ResponseT]]:
        return lambda handler: self._add(Route("DELETE", path, handler, response, request, **options))

    def _add(self, route: Route[RequestT, ResponseT]) -> Route[RequestT, ResponseT]:
        self.append(route)
        return route

    def match(self, path: str, raw_path: bytes, method: str) -> tuple[Route[Any, Any], str | None]:
        """The route of a request and its path parameter; status 404 or 405 if there is none. HEAD matches GET."""
        others: list[Route[Any, Any]] = []
        for route in self:
            parameter = None if route.parameter is None else route.match_parameter(raw_path)
            if route.path == path or parameter is not None:
                if method == route.method or (method == "HEAD" and route.method == "GET"):
                    return route, parameter
                others.append(route)
        if not others:
            raise RequestError(404, Problem(f"no route for {path[:200]}", remedy="see /docs"), type=SERVER)
        allowed = ", ".join("GET, HEAD" if one.method == "GET" else one.method for one in others)
        problem = Problem(f"{method} is not allowed on {others[0].path}", remedy=f"use {allowed}")
        raise RequestError(405, problem, type=SERVER, headers=((b"allow", allowed.encode()),))
