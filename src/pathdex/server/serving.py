"""The whole server by one call: open the socket, then serve in this process, or in several under a supervisor."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from pathdex.errors import ConfigError
from pathdex.server.model_loader import Source
from pathdex.server.options import ServerOptions
from pathdex.server.stores import open_store
from pathdex.server.supervisor import Supervisor
from pathdex.server.worker import Worker, log_to_stderr

BACKLOG = 2048
"""Connections that wait in the kernel until a worker takes them."""


def serve(options: ServerOptions, ready: Callable[[str, str], None] | None = None) -> None:
    """Serve until SIGTERM or SIGINT; `ready` hears the address and the model's version when all workers can answer."""
    source = Source.of(options)
    # What can be known to be wrong is said before anything is started.
    source.check()
    listening = listen(options.host, options.port)
    address = address_of(listening)

    def tell(version: str) -> None:
        if ready is not None:
            ready(address, version)

    log_to_stderr()
    with listening:
        if options.workers == 1:
            Worker(options, ready=lambda served: tell(served.version)).serve_on(listening)
            return
        if options.user_store is not None:
            # Made once here, so that workers do not compete for making it.
            asyncio.run(open_store(options.user_store, options.limits.max_history).close())
        asyncio.run(_supervise(options, listening, tell))


async def _supervise(options: ServerOptions, listening: socket.socket, tell: Callable[[str], None]) -> None:
    await Supervisor(options, listening, tell).run()


def listen(host: str, port: int) -> socket.socket:
    """An open socket; a `ConfigError` where the address is taken or is none of this machine's."""
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
        raise ConfigError([f"host={host!r}, port={port}: cannot be listened on ({reason}); choose others"]) from error
    listening.setblocking(False)
    return listening


def address_of(listening: socket.socket) -> str:
    """The URL of a listening socket."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if listening.family == socket.AF_INET6 else f"http://{host}:{port}"
