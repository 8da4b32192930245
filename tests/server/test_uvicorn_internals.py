"""The parts of uvicorn that `connections.py` and `worker.py` build on and that are not its public API.

If one of these tests fails after an upgrade, uvicorn has changed: read the two modules against the new version, run
`tests/server`, and then move the upper bound in pyproject.toml.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from pathlib import Path

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def parameters(function: object) -> list[str]:
    return list(inspect.signature(function).parameters)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (HttpToolsProtocol.connection_made, ["self", "transport"]),
        (HttpToolsProtocol.connection_lost, ["self", "exc"]),
        (HttpToolsProtocol.data_received, ["self", "data"]),
        (HttpToolsProtocol.shutdown, ["self"]),
        (HttpToolsProtocol.on_url, ["self", "url"]),
        (HttpToolsProtocol.on_header, ["self", "name", "value"]),
        (HttpToolsProtocol.on_body, ["self", "body"]),
        (HttpToolsProtocol.on_message_begin, ["self"]),
        (HttpToolsProtocol.on_headers_complete, ["self"]),
        (HttpToolsProtocol.on_message_complete, ["self"]),
        (HttpToolsProtocol.send_400_response, ["self", "msg"]),
        (uvicorn.Server.on_tick, ["self", "counter"]),
        (uvicorn.Server.handle_exit, ["self", "sig", "frame"]),
        (uvicorn.Server.capture_signals, ["self"]),
        (uvicorn.Server.run, ["self", "sockets"]),
        (uvicorn.Server.shutdown, ["self", "sockets"]),
    ],
)
def test_overridden_methods_have_the_same_parameters(method: object, expected: list[str]) -> None:
    assert parameters(method) == expected


def test_a_protocol_has_the_attributes_we_read() -> None:
    async def app(scope: object, receive: object, send: object) -> None:
        pass

    async def make() -> HttpToolsProtocol:
        config = uvicorn.Config(app, log_config=None)
        config.load()
        return HttpToolsProtocol(config, uvicorn.Server(config).server_state, {}, asyncio.get_running_loop())

    protocol = asyncio.run(make())
    for name in ("loop", "transport", "connections", "tasks", "scope", "cycle", "parser", "config"):
        assert hasattr(protocol, name), name
    assert isinstance(protocol.connections, set)
    assert isinstance(protocol.tasks, set)


def test_a_cycle_has_the_attributes_we_read() -> None:
    source = inspect.getsource(RequestResponseCycle.__init__)
    for name in ("response_started", "response_complete"):
        assert f"self.{name} = False" in source
    assert "self.keep_alive = keep_alive" in source


def test_the_server_calls_what_we_override() -> None:
    assert "self.on_tick(" in inspect.getsource(uvicorn.Server.main_loop)
    assert "self.capture_signals()" in inspect.getsource(uvicorn.Server.serve)
    assert "server_state.connections" in inspect.getsource(uvicorn.Server.shutdown)
    assert STATUS_LINE[408] == b"HTTP/1.1 408 Request Timeout\r\n"


def test_the_version_is_bounded() -> None:
    bounds = re.findall(r'"uvicorn>=([\d.]+),<([\d.]+)"', PROJECT.read_text())
    assert len(set(bounds)) == 1

    def numbers(version: str) -> tuple[int, ...]:
        return tuple(int(part) for part in version.split(".")[:2])

    [(low, high)] = set(bounds)
    assert numbers(low) <= numbers(uvicorn.__version__) < numbers(high)
