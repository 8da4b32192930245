"""Bearer-token authentication."""

from __future__ import annotations

import hmac
from collections.abc import Iterable

from pathdex.errors import Problem
from pathdex.server.asgi import ASGIApp, Receive, Scope, Send, header, send_error
from pathdex.server.errors import SERVER, RequestError


class Authentication:
    """Answers 401 unless a request has the token or its path is in `public`."""

    def __init__(self, app: ASGIApp, token: str, public: Iterable[str]) -> None:
        self.app, self._expected, self._public = app, f"Bearer {token}".encode(), frozenset(public)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in self._public:
            given = header(scope, b"authorization") or b""
            if not hmac.compare_digest(given, self._expected):
                problem = Problem("a token is required", remedy="send it as: Authorization: Bearer TOKEN")
                error = RequestError(401, problem, type=SERVER, headers=((b"www-authenticate", b"Bearer"),))
                await send_error(send, error, None)
                return
        await self.app(scope, receive, send)
