"""The authentication layer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import pathdex
from pathdex.errors import ServerError
from pathdex.server.middleware.authentication import Authentication
from tests.server.conftest import running


async def app(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})


def status(path: str, *headers: tuple[bytes, bytes], kind: str = "http") -> int:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": kind, "path": path, "headers": list(headers)}
    asyncio.run(Authentication(app, "s3cret", {"/free"})(scope, None, send))  # type: ignore[arg-type]
    found: int = sent[0]["status"]
    return found


def test_only_the_token_or_a_public_path_passes() -> None:
    assert status("/free") == 200
    assert status("/other") == status("/free/more") == status("/other", (b"authorization", b"s3cret")) == 401
    assert status("/other", (b"authorization", b"Bearer s3cret")) == 200


def test_lifespan_passes() -> None:
    assert status("/other", kind="lifespan") == 200


def test_a_token_is_required_over_http(popular: Path) -> None:
    with running(popular, token="s3cret") as server:
        for given in (None, "Bearer wrong", "s3cret", "Bearer s3cret2", "Bearer \u00e9"):
            answer = server.request("POST", "/v1/recommend", {"history": []}, {"Authorization": given} if given else {})
            assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
            assert answer.message == "a token is required; send it as: Authorization: Bearer TOKEN"
        assert server.post("/v1/recommend", {"history": []}, Authorization="Bearer s3cret").status == 200
        with pathdex.Client(server.url, "s3cret") as client:
            assert client.recommend([], 1)
        with (
            pathdex.Client(server.url, "guess") as client,
            pytest.raises(ServerError, match="a token is required") as caught,
        ):
            client.recommend([])
        assert caught.value.status == 401
        paths = ("/health/live", "/health/ready", "/docs", "/openapi.json", "/metrics", "/v1/model")
        assert [server.get(path).status for path in paths] == [200, 200, 200, 200, 401, 401]
        assert "securitySchemes" in server.get("/openapi.json").json["components"]


def test_metrics_can_be_public(popular: Path) -> None:
    with running(popular, token="s3cret", public_metrics=True) as server:
        assert server.get("/metrics").status == 200
        assert server.get("/v1/model").status == 401
