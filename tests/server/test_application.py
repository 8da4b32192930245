"""What the options of a server make of the application."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pathdex.errors import BundleError
from pathdex.server.application import Application, add_middleware, resident_bytes
from pathdex.server.metrics import ServerMetrics
from pathdex.server.middleware import AccessLog, Authentication, HostCheck, RequestMetrics
from pathdex.server.options import ServerOptions


async def app(scope: Any, receive: Any, send: Any) -> None:
    pass


def test_only_the_layers_in_use_are_added() -> None:
    def layers(**options: Any) -> list[type]:
        found: list[type] = []
        layer: Any = add_middleware(app, ServerOptions(model=Path("x"), **options), ServerMetrics())
        while layer is not app:
            found.append(type(layer))
            layer = layer.app
        return found

    assert layers(host="0.0.0.0") == [RequestMetrics]
    assert layers() == [RequestMetrics, HostCheck]
    assert layers(token="t", access_log=True) == [RequestMetrics, AccessLog, Authentication, HostCheck]


def test_resident_memory_is_reported() -> None:
    assert resident_bytes() > 1_000_000


async def lifespan(application: Application) -> list[Any]:
    """Start the application up and shut it down; the models that it had in between."""
    seen: list[Any] = []
    phases = iter(["lifespan.startup", "lifespan.shutdown"])

    async def receive() -> dict[str, Any]:
        return {"type": next(phases)}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "lifespan.startup.complete":
            seen.append(application.models.current)

    await application.asgi({"type": "lifespan"}, receive, send)
    return seen


def test_an_application_that_waits_has_its_model_when_it_has_started(popular: Path) -> None:
    ready: list[str] = []
    options = ServerOptions(model=popular, watch=0.0)
    application = Application(options, ServerMetrics(), waits=True, on_ready=ready.append)
    [served] = asyncio.run(lifespan(application))
    assert ready == [served.version]
    assert application.failure is None


def test_a_model_that_cannot_be_loaded_is_told(tmp_path: Path) -> None:
    failed: list[bool] = []
    options = ServerOptions(model=tmp_path / "missing", watch=0.0)
    application = Application(options, ServerMetrics(), waits=True, on_failure=lambda: failed.append(True))
    assert asyncio.run(lifespan(application)) == [None]
    assert failed == [True]
    with pytest.raises(BundleError):
        raise application.failure or AssertionError
