"""One worker process: model, user store and application behind uvicorn, on a socket that is already open.

The supervisor starts `python -m pathdex.server.worker SOCKET SLOT METRICS` and writes the options as one line of JSON
to its standard input. The worker prints one line when it is ready and one every second from then on, so that the
supervisor notices if it hangs. It exits when its standard input closes, so it never outlives the supervisor.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn

from pathdex.errors import PathdexError
from pathdex.server.application import Application, resident_bytes
from pathdex.server.connections import BoundedProtocol, bounded_protocol
from pathdex.server.early_signals import SIGNALS, EarlySignals
from pathdex.server.last_good import LastGood
from pathdex.server.metrics import ServerMetrics
from pathdex.server.options import ServerOptions
from pathdex.server.refusal import has_waiting, refuse_connections

log = logging.getLogger("pathdex.server")

QUIET_SECONDS = 0.5
"""How long a server that stops still accepts connections that have begun, and waits for requests on idle ones."""
ACCEPT_SECONDS = 5.0
"""How long it accepts them at most."""


class Worker(uvicorn.Server):
    """A uvicorn server that exits with code 0 on SIGTERM and enforces timeouts on its connections."""

    def __init__(
        self,
        options: ServerOptions,
        metrics: ServerMetrics | None = None,
        on_ready: Callable[[str], object] = lambda _: None,
        *,
        on_heartbeat: Callable[[], object] = lambda: None,
        on_swap: Callable[[str], object] = lambda _: None,
        last_good: LastGood | None = None,
        accept_while_loading: bool = True,
        owns_socket: bool = True,
        early: EarlySignals | None = None,
    ) -> None:
        """`accept_while_loading` answers health checks before the model is loaded. One of several workers should wait
        instead, so that its siblings take the connections. `owns_socket` says whether no other worker accepts from the
        socket, so that this one may close it for all. `early` has handled signals so far."""
        self.options, self.accept_while_loading, self.owns_socket = options, accept_while_loading, owns_socket
        self.on_heartbeat, self.early = on_heartbeat, early
        self.metrics = ServerMetrics(shards=len(options.shards)) if metrics is None else metrics
        self.application = Application(
            options,
            self.metrics,
            last_good=last_good,
            waits=not accept_while_loading,
            on_ready=on_ready,
            on_failure=self._on_failed,
            on_swap=on_swap,
        )
        self.models, self.context = self.application.models, self.application.context
        self._stop_at: float | None = None
        self._protocol = bounded_protocol(options.limits)
        super().__init__(
            uvicorn.Config(
                self.application.asgi,
                interface="asgi3",
                http=self._protocol,
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=options.limits.keep_alive,  # type: ignore[arg-type]
                timeout_graceful_shutdown=options.limits.grace,  # type: ignore[arg-type]
            )
        )

    def serve_on(self, listening: socket.socket) -> None:
        """Serve until stopped; raises the error of a model that cannot be loaded."""
        self.run(sockets=[listening])
        if self.application.failure is not None:
            raise self.application.failure

    def drain(self, *, now: bool = False) -> None:
        """Report not ready; stop after the limit `drain`, or `now`, when all requests in flight are answered."""
        self.context.draining = True
        self._stop_at = time.monotonic() + (0.0 if now else self.options.limits.drain)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.drain(now=self._stop_at is not None)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn raises the signal again on exit, so the exit code would not be 0.
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in SIGNALS}
        if self.early is not None and self.early.received:
            self.drain(now=True)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, BoundedProtocol):
                    connection.check_timeouts(now)
            self.metrics.set("pathdex_workers_resident_memory_bytes", resident_bytes())
            self.on_heartbeat()
        return await super().on_tick(counter) or (self._stop_at is not None and time.monotonic() >= self._stop_at)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop without resetting a connection: uvicorn closes the socket and the idle connections at once.

        Connections that have begun are accepted and served. Idle connections get a moment to send a request, which is
        answered with `Connection: close`.
        """
        self._protocol.stopping = True
        if self.owns_socket:
            for one in sockets or []:
                refuse_connections(one)
        began = time.monotonic()
        await asyncio.sleep(QUIET_SECONDS)
        while any(map(has_waiting, sockets or [])) and time.monotonic() - began < ACCEPT_SECONDS:
            await asyncio.sleep(0.01)
        await super().shutdown(sockets)

    def _on_failed(self) -> None:
        self.should_exit = True


def log_to_stderr() -> None:
    """Log model reloads and failures to standard error."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    log.setLevel(logging.INFO)
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)


def main() -> None:
    """Entry point of a worker process."""
    with EarlySignals():
        _serve_for_supervisor()


def _serve_for_supervisor() -> None:
    number, slot, file, *kept = sys.argv[1:]
    options = ServerOptions.from_json(sys.stdin.buffer.readline())
    last_good = LastGood.from_json(kept[0]) if kept else None
    log_to_stderr()
    listening = socket.socket(fileno=int(number))
    started: list[Worker] = []
    threading.Thread(target=_exit_with_parent, args=(started,), daemon=True).start()
    try:
        metrics = ServerMetrics(int(file), int(slot), options.workers, len(options.shards))
        worker = Worker(
            options,
            metrics,
            lambda version: _print_line(f"ready {version}"),
            on_heartbeat=lambda: _print_line("alive"),
            on_swap=lambda version: _print_line(f"model {version}"),
            last_good=last_good,
            accept_while_loading=False,
            owns_socket=False,
        )
        started.append(worker)
        worker.serve_on(listening)
    except PathdexError as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(1)


def _print_line(line: str) -> None:
    # The parent may be gone; then the worker is about to exit.
    with contextlib.suppress(OSError):
        print(line, flush=True)


def _exit_with_parent(started: list[Worker]) -> None:
    # Not through sys.stdin: its lock would be held when the interpreter exits.
    while os.read(0, 4096):
        pass
    for worker in started:
        worker.owns_socket = True  # No other worker survives the supervisor.
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
