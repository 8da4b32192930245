"""Run the server: open the socket, then serve in this process, or in several under a supervisor."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from functools import partial

from pathdex.data.event_sinks import open_sink
from pathdex.errors import ConfigError, Problem
from pathdex.server.early_signals import EarlySignals
from pathdex.server.model_loader import ModelLoader
from pathdex.server.options import ServerOptions
from pathdex.server.stores import open_store, owned_store
from pathdex.server.supervisor import Supervisor
from pathdex.server.worker import Worker, log_to_stderr

BACKLOG = 2048
"""Connections that wait in the kernel until a worker accepts them."""


def serve(options: ServerOptions, on_ready: Callable[[str, str], object] = lambda *_: None) -> None:
    """Serve until SIGTERM or SIGINT; `on_ready` gets the address and the model version once all workers are ready."""
    with EarlySignals() as early:
        if not options.shards:
            ModelLoader.from_options(options).check()
        if options.compare is not None:
            ModelLoader(options.compare).check()
        if options.events is not None:
            open_sink(options.events).close()
        log_to_stderr()
        with owned_store(options.user_store):
            early.hold()
            with listen(options.host, options.port) as listening:
                _serve_on(listening, options, partial(on_ready, address_of(listening)), early)


def _serve_on(
    listening: socket.socket, options: ServerOptions, on_ready: Callable[[str], object], early: EarlySignals
) -> None:
    if options.workers == 1:
        Worker(options, on_ready=on_ready, early=early).serve_on(listening)
        return
    if options.user_store is not None:
        # Create it once here, so that the workers do not race to create it.
        asyncio.run(open_store(options.user_store, options.limits.max_history).close())
    asyncio.run(Supervisor(options, listening, on_ready, early=early).run())


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; `ConfigError` if the address is in use or not available."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        dualstack = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        listening = socket.create_server(address, family=family, backlog=BACKLOG, dualstack_ipv6=dualstack)
    except OSError as error:
        reason = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
        problem = Problem(f"cannot listen there ({reason})", "address", f"{host}:{port}", "choose another host or port")
        raise ConfigError([problem]) from error
    listening.setblocking(False)
    return listening


def address_of(listening: socket.socket) -> str:
    """The URL of a listening socket."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if listening.family == socket.AF_INET6 else f"http://{host}:{port}"
