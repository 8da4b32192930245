"""The layers around the app: request metrics, access log, authentication, allowed hosts."""

from __future__ import annotations

import asyncio
import io
import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import pathdex
from pathdex.errors import ServerError
from pathdex.server.asgi import MODEL, ROUTE
from pathdex.server.metrics import ServerMetrics
from pathdex.server.middleware import AccessLog, Authentication, RequestMetrics
from tests.server.conftest import running

IN_FLIGHT = "pathdex_http_requests_in_flight"
COUNT = "pathdex_http_requests_total"
SCOPE = {"type": "http", "method": "GET", "path": "/v1/model", "client": ("127.0.0.1", 5)}


async def ignore(_: Any) -> None:
    pass


async def silent(scope: Any, receive: Any, send: Any) -> None:
    """An app that sends nothing, as if the client had disconnected."""


def recorded(app: Any, kind: str = "http") -> list[str]:
    metrics = ServerMetrics()
    asyncio.run(RequestMetrics(app, metrics)({"type": kind}, None, ignore))  # type: ignore[arg-type]
    return metrics.render().decode().splitlines()


def test_a_request_is_recorded_under_the_matched_route() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        scope[ROUTE] = "/v1/similar"
        await send({"type": "http.response.start", "status": 422, "headers": []})

    lines = recorded(app)
    assert f'{COUNT}{{route="/v1/similar",status="422"}} 1' in lines
    assert f"{IN_FLIGHT} 0" in lines


def test_a_client_that_disconnects_is_status_499() -> None:
    assert f'{COUNT}{{route="other",status="499"}} 1' in recorded(silent)
    assert [line["status"] for line in logged(silent, SCOPE)] == [499]


def test_a_request_that_fails_is_not_in_flight_any_more() -> None:
    metrics = ServerMetrics()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert f"{IN_FLIGHT} 1" in metrics.render().decode().splitlines()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(RequestMetrics(app, metrics)({"type": "http"}, None, ignore))  # type: ignore[arg-type]
    assert f"{IN_FLIGHT} 0" in metrics.render().decode().splitlines()


def test_lifespan_is_not_a_request() -> None:
    assert not any(line.startswith(f"{COUNT}{{") for line in recorded(silent, "lifespan"))
    assert logged(silent, {"type": "lifespan"}) == []


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


def test_requests_of_a_server_are_logged(popular: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with running(popular, access_log=True) as server:
        server.post("/v1/recommend", {"history": []})
        server.get("/nowhere")
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [(line["method"], line["path"], line["status"]) for line in lines] == [
        ("POST", "/v1/recommend", 200),
        ("GET", "/nowhere", 404),
    ]


async def welcoming(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})


def status(path: str, *headers: tuple[bytes, bytes], kind: str = "http") -> int:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": kind, "path": path, "headers": list(headers)}
    asyncio.run(Authentication(welcoming, "s3cret", {"/free"})(scope, None, send))  # type: ignore[arg-type]
    found: int = sent[0]["status"]
    return found


def test_only_the_token_or_a_public_path_passes() -> None:
    assert status("/free") == 200
    assert status("/other") == status("/free/more") == status("/other", (b"authorization", b"s3cret")) == 401
    right, wrong = (b"authorization", b"Bearer s3cret"), (b"authorization", b"Bearer s3cre")
    assert status("/other", right) == 200
    assert status("/other", right, wrong) == status("/other", wrong, right) == status("/other", right, right) == 401


def test_lifespan_passes_without_a_token() -> None:
    assert status("/other", kind="lifespan") == 200


def test_a_token_is_required_over_http(popular: Path) -> None:
    with running(popular, token="s3cret") as server:
        for given in (None, "Bearer wrong", "s3cret", "Bearer s3cret2", "Bearer \u00e9"):
            answer = server.request("POST", "/v1/recommend", {"history": []}, {"Authorization": given} if given else {})
            assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
            rule = "the token is wrong" if given else "a token is required"
            assert answer.message == f"{rule}; send it as: Authorization: Bearer TOKEN"
        assert server.post("/v1/recommend", {"history": []}, Authorization="Bearer s3cret").status == 200
        with pathdex.Client(server.url, "s3cret") as client:
            assert client.recommend([], 1)
        with (
            pathdex.Client(server.url, "guess") as client,
            pytest.raises(ServerError, match="the token is wrong") as caught,
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


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("127.0.0.1:8000", 200),
        ("[::1]:8000", 200),
        ("localhost:80", 200),
        ("LOCALHOST.", 200),
        ("model.localhost", 200),
        ("evil.example", 421),
        ("evil.example:8000", 421),
        ("localhost.evil.example", 421),
        ("evillocalhost", 421),
        ("[", 421),
        ("evil.example@localhost", 421),
        ("[::1]evil", 421),
        ("localhost/evil", 421),
        ("localhost#", 421),
        ("localhost:abc", 421),
        ("localhost:99999", 421),
        ("", 421),
    ],
)
def test_only_local_names_lead_to_a_local_server(popular: Path, host: str, status: int) -> None:
    with running(popular) as server:
        answer = server.get("/v1/model", Host=host)
        assert answer.status == status
        if status == 421:
            remedy = "use another name of this server, or start it with --allowed-hosts"
            assert answer.message == f"host={host!r}: is no allowed host; {remedy}"
        assert server.get("/health/ready", Host=host).status == 200


def test_allowed_hosts(popular: Path) -> None:
    def statuses(**options: Any) -> list[int]:
        with running(popular, **options) as server:
            names = ("shop.example", "a.b.example", "b.example", "localhost", "10.0.0.7")
            return [server.get("/v1/model", Host=name).status for name in names]

    assert statuses(allowed_hosts=("Shop.example", "*.b.example")) == [200, 200, 421, 421, 200]
    assert statuses(allowed_hosts=("*",)) == [200] * 5
    assert statuses(host="0.0.0.0") == [200] * 5


def test_a_request_has_one_host(popular: Path) -> None:
    with running(popular) as server:
        parts = urlsplit(server.url)
        for hosts, status in (("", b"400"), ("Host: localhost\r\nHost: evil.example\r\n", b"400")):
            with socket.create_connection((parts.hostname, parts.port), timeout=20) as connection:
                connection.sendall(f"GET /v1/model HTTP/1.1\r\n{hosts}\r\n".encode())
                answer = connection.recv(1000)
            assert answer.startswith(b"HTTP/1.1 " + status)
            assert b"exactly one header Host is required; send one" in answer


@pytest.mark.parametrize("given", ["Bearer secret", "bearer secret", "BEARER  secret"])
def test_the_scheme_of_a_token_has_any_case(popular: Path, given: str) -> None:
    with running(popular, token="secret") as server:
        assert server.get("/v1/model", Authorization=given).status == 200
        for wrong in ("secret", "Basic secret", "Bearer Secret", "Bearer"):
            assert server.get("/v1/model", Authorization=wrong).status == 401
