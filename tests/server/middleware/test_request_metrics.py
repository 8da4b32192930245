"""The metrics of requests."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pathdex.server.asgi import ROUTE
from pathdex.server.metrics import ServerMetrics
from pathdex.server.middleware.request_metrics import RequestMetrics

IN_FLIGHT = "pathdex_http_requests_in_flight"
COUNT = "pathdex_http_requests_total"


async def ignore(_: Any) -> None:
    pass


def run(app: Any, kind: str = "http") -> list[str]:
    metrics = ServerMetrics()
    asyncio.run(RequestMetrics(app, metrics)({"type": kind}, None, ignore))  # type: ignore[arg-type]
    return metrics.render().decode().splitlines()


def test_a_request_is_recorded_under_the_matched_route() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        scope[ROUTE] = "/v1/similar"
        await send({"type": "http.response.start", "status": 422, "headers": []})

    lines = run(app)
    assert f'{COUNT}{{route="/v1/similar",status="422"}} 1' in lines
    assert f"{IN_FLIGHT} 0" in lines


def test_a_client_that_disconnects_is_status_499() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        pass

    assert f'{COUNT}{{route="other",status="499"}} 1' in run(app)


def test_a_request_that_fails_is_not_in_flight_any_more() -> None:
    metrics = ServerMetrics()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert f"{IN_FLIGHT} 1" in metrics.render().decode().splitlines()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(RequestMetrics(app, metrics)({"type": "http"}, None, ignore))  # type: ignore[arg-type]
    assert f"{IN_FLIGHT} 0" in metrics.render().decode().splitlines()


def test_lifespan_is_not_a_request() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        pass

    assert not any(line.startswith(f"{COUNT}{{") for line in run(app, "lifespan"))
