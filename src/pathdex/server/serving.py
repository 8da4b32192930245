"""Run the server: open the socket, then serve in this process, or in several under a supervisor."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from pathdex.errors import ConfigError, Problem
from pathdex.server.model_loader import ModelLoader
from pathdex.server.options import ServerOptions
from pathdex.server.stores import open_store
from pathdex.server.supervisor import Supervisor
from pathdex.server.worker import Worker, log_to_stderr

BACKLOG = 2048
"""Connections that wait in the kernel until a worker accepts them."""


def serve(options: ServerOptions, on_ready: Callable[[str, str], None] | None = None) -> None:
    """Serve until SIGTERM or SIGINT; `on_ready` gets the address and the model version once all workers are ready."""
    ModelLoader.from_options(options).check()
    listening = listen(options.host, options.port)
    address = address_of(listening)

    def notify(version: str) -> None:
        if on_ready is not None:
            on_ready(address, version)

    log_to_stderr()
    with listening:
        if options.workers == 1:
            Worker(options, on_ready=lambda served: notify(served.version)).serve_on(listening)
            return
        if options.user_store is not None:
            # Create it once here, so that the workers do not race to create it.
            asyncio.run(open_store(options.user_store, options.limits.max_history).close())
        asyncio.run(_supervise(options, listening, notify))


async def _supervise(options: ServerOptions, listening: socket.socket, notify: Callable[[str], None]) -> None:
    await Supervisor(options, listening, notify).run()


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; `ConfigError` if the address is in use or not available."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(BACKLOG)
        except BaseException:
            listening.close()
            raise
    except OSError as error:
        reason = error.strerror or error
        problem = Problem(f"cannot listen there ({reason})", "address", f"{host}:{port}", "choose another host or port")
        raise ConfigError([problem]) from error
    listening.setblocking(False)
    return listening


def address_of(listening: socket.socket) -> str:
    """The URL of a listening socket."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if listening.family == socket.AF_INET6 else f"http://{host}:{port}"
