"""One process that serves: model, user store and application behind uvicorn, on a socket that is open already.

The supervisor starts it as `python -m pathdex.server.worker` and writes one line of JSON into its standard input. The
worker answers with one line when it is ready. It ends when its standard input does, so it does not outlive its parent.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import uvicorn

from pathdex.errors import PathdexError, ServerError
from pathdex.server.app import App
from pathdex.server.connections import BoundedProtocol, bounded_protocol
from pathdex.server.metrics import Metrics
from pathdex.server.model_loader import ServedModel, Source
from pathdex.server.model_manager import Live
from pathdex.server.options import ServerOptions
from pathdex.server.stores import open_store

log = logging.getLogger("pathdex.server")


class Worker(uvicorn.Server):
    """uvicorn with an application of ours. It ends with code 0 when it is told to stop, and watches its connections."""

    def __init__(
        self,
        options: ServerOptions,
        metrics: Metrics | None = None,
        ready: Callable[[ServedModel], None] | None = None,
        *,
        accepts_at_once: bool = True,
    ) -> None:
        """`accepts_at_once`: say on /health that the model is being loaded. One of several workers should not, but wait
        for its model before it takes connections: the others can answer what it cannot yet."""
        self.options, self.ready, self.accepts_at_once = options, ready, accepts_at_once
        self.metrics = Metrics() if metrics is None else metrics
        self.live = Live(Source.of(options), self.metrics, options.watch)
        store = None if options.user_store is None else open_store(options.user_store, options.limits.max_history)
        self.app = App(options, self.live, self.metrics, store, start=self._start, stop=self._stop)
        self.failure: PathdexError | None = None
        """Why there is no model to serve."""
        self._leave_at: float | None = None
        self._loading: asyncio.Task[None] | None = None
        super().__init__(
            uvicorn.Config(
                self.app,
                http=bounded_protocol(options.limits),
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
        """Answer until told to stop; raises the error of a model that cannot be opened."""
        self.run(sockets=[listening])
        if self.failure is not None:
            raise self.failure

    def leave(self, *, at_once: bool = False) -> None:
        """Be not ready from now on; end after the limit `drain`, when all requests in flight are answered."""
        self.app.leave()
        self._leave_at = time.monotonic() + (0.0 if at_once else self.options.limits.drain)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.leave(at_once=self._leave_at is not None)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn's own raises the signal again at the end, and then the process does not end with code 0.
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
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
                    connection.check_time(now)
            self.metrics.put("pathdex_resident_bytes", resident_bytes())
        return await super().on_tick(counter) or (self._leave_at is not None and time.monotonic() >= self._leave_at)

    async def _start(self) -> None:
        self.metrics.add("pathdex_worker_starts_total")
        self._loading = asyncio.create_task(self._load())
        if not self.accepts_at_once:
            await self._loading

    async def _load(self) -> None:
        try:
            served = await self.live.start()
        except PathdexError as error:
            self.failure, self.should_exit = error, True
            return
        except Exception as error:
            log.exception("opening %s failed", self.options.model)
            message = f"{self.options.model} cannot be opened ({type(error).__name__}); the log says why"
            self.failure, self.should_exit = ServerError(message), True
            return
        self.metrics.put("pathdex_workers_ready", 1)
        if self.ready is not None:
            self.ready(served)

    async def _stop(self) -> None:
        self.metrics.put("pathdex_workers_ready", 0)
        if self._loading is not None:
            self._loading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._loading
        await self.live.close()
        await self.app.close()


def resident_bytes() -> int:
    """The memory of this process; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def log_to_stderr() -> None:
    """Swaps, refusals and failures as lines on standard error; nothing of what goes well with every request."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    log.setLevel(logging.INFO)
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)


def main() -> None:
    """A worker of the supervisor."""
    given = json.loads(sys.stdin.buffer.readline())
    log_to_stderr()
    listening = socket.socket(fileno=given["socket"])
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    try:
        metrics = Metrics(Path(given["metrics"]), given["slot"])
        options = ServerOptions.from_dict(given["options"])
        Worker(options, metrics, _tell_parent, accepts_at_once=False).serve_on(listening)
    except PathdexError as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(1)


def _tell_parent(served: ServedModel) -> None:
    with contextlib.suppress(OSError):
        print(f"ready {served.version}", flush=True)


def _leave_with_parent() -> None:
    # Not through sys.stdin, whose lock a waiting thread would hold when the interpreter ends.
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
