"""The access log."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import pytest

from pathdex.server.asgi import MODEL
from pathdex.server.middleware.access_log import AccessLog
from tests.server.conftest import running

SCOPE = {"type": "http", "method": "GET", "path": "/v1/model", "client": ("127.0.0.1", 5)}


async def ignore(_: Any) -> None:
    pass


def logged(app: Any, scope: dict[str, Any]) -> list[dict[str, Any]]:
    stream = io.StringIO()
    asyncio.run(AccessLog(app, stream)(dict(scope), None, ignore))  # type: ignore[arg-type]
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_has_the_request_and_its_result() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        scope[MODEL] = "34031d112ca9"
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    [line] = logged(app, SCOPE)
    assert line.pop("ms") >= 0
    assert line.pop("time").endswith("Z")
    assert line == {
        "client": "127.0.0.1",
        "method": "GET",
        "path": "/v1/model",
        "status": 404,
        "model": "34031d112ca9",
    }


def test_a_client_that_disconnects_is_status_499() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        pass

    assert [line["status"] for line in logged(app, SCOPE)] == [499]


def test_lifespan_is_not_logged() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "lifespan.startup.complete"})

    assert logged(app, {"type": "lifespan"}) == []


def test_requests_of_a_server_are_logged(popular: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with running(popular, access_log=True) as server:
        server.post("/v1/recommend", {"history": []})
        server.get("/nowhere")
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [(line["method"], line["path"], line["status"]) for line in lines] == [
        ("POST", "/v1/recommend", 200),
        ("GET", "/nowhere", 404),
    ]
