"""Several worker processes on one socket: start them, replace those that die, stop them together.

All workers accept from one listening socket, so the connections that wait while a worker is replaced go to the others.
The model's arrays are memory-mapped from the same files, so they are in memory once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable

from pathdex.errors import ServerError
from pathdex.server.early_signals import SIGNALS, EarlySignals
from pathdex.server.last_good import LastGood
from pathdex.server.metrics import new_metrics_file
from pathdex.server.model_loader import ModelLoader
from pathdex.server.options import ServerOptions
from pathdex.server.refusal import refuse_connections, turn_away

log = logging.getLogger("pathdex.server")

MAX_BACKOFF = 30.0
"""Seconds between restarts of a worker that keeps dying, at most."""
HANG_SECONDS = 30.0
"""A worker without a heartbeat for this long is killed and replaced. Compiling a new model may block it for seconds."""
KILL_AFTER = 5.0
"""Seconds after the limit `grace` until a worker is killed."""


class Supervisor:
    """Keeps `options.workers` processes running until it is stopped."""

    def __init__(
        self,
        options: ServerOptions,
        listening: socket.socket,
        on_ready: Callable[[str], object] = lambda _: None,
        *,
        early: EarlySignals | None = None,
    ) -> None:
        """`early` has handled signals so far."""
        self._early = early
        self.options, self._listening, self._on_ready = options, listening, on_ready
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._versions: dict[int, str] = {}
        self._all_ready = False
        self._last_good: LastGood | None = None
        self._stopping = asyncio.Event()
        self._metrics = new_metrics_file(options.workers, len(options.shards))

    async def run(self) -> None:
        """Run until SIGTERM or SIGINT. `ServerError` if a worker fails before all are ready."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self.stop)
        if self._early is not None and self._early.received:
            self.stop()
        slots = [asyncio.create_task(self._keep_alive(slot)) for slot in range(self.options.workers)]
        try:
            await asyncio.gather(*slots)
        finally:
            self.stop()
            await asyncio.gather(*slots, return_exceptions=True)
            if self._listening.fileno() >= 0:
                await asyncio.to_thread(turn_away, self._listening)
            if self._last_good is not None:
                self._last_good.close()
            os.close(self._metrics)

    def stop(self) -> None:
        """Ask every worker to finish its requests and exit; after the limit `drain`, refuse connections."""
        if not self._stopping.is_set():
            asyncio.get_running_loop().call_later(self.options.limits.drain, self._refuse)
        self._stopping.set()
        for process in self._processes.values():
            self._terminate(process)

    def _refuse(self) -> None:
        """Refuse connections on the socket, which the workers close once they have accepted what waits there."""
        if self._listening.fileno() >= 0:
            refuse_connections(self._listening)
            if self._versions:
                self._listening.close()

    @property
    def pids(self) -> list[int]:
        """The process ids of the running workers."""
        return [process.pid for process in self._processes.values() if process.returncode is None]

    async def _keep_alive(self, slot: int) -> None:
        failures = 0
        while not self._stopping.is_set():
            process = await self._start(slot)
            was_ready = await self._await_ready(slot, process)
            heartbeat = asyncio.create_task(self._watch_heartbeat(slot, process))
            code = await process.wait()
            heartbeat.cancel()
            self._versions.pop(slot, None)
            if self._stopping.is_set():
                if code not in (0, -signal.SIGTERM if not was_ready else 0):
                    log.warning("worker %d exited with code %d", slot, code)
                return
            if not was_ready and not self._all_ready:
                raise ServerError(f"worker {slot} exited with code {code} before it was ready; see the log")
            failures = 0 if was_ready else failures + 1
            log.warning("worker %d exited with code %d; restarting it", slot, code)
            if failures:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), min(2.0**failures, MAX_BACKOFF))

    async def _start(self, slot: int) -> asyncio.subprocess.Process:
        number, kept = self._listening.fileno(), self._last_good
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "pathdex.server.worker", str(number), str(slot), str(self._metrics)),
            *([] if kept is None else [kept.to_json()]),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=[number, self._metrics, *([] if kept is None else kept.files.values())],
        )
        self._processes[slot] = process
        assert process.stdin is not None
        process.stdin.write(self.options.to_json() + b"\n")
        if self._stopping.is_set():
            self._terminate(process)
        return process

    async def _await_ready(self, slot: int, process: asyncio.subprocess.Process) -> bool:
        assert process.stdout is not None
        line = await process.stdout.readline()
        if not line.startswith(b"ready "):
            return False
        version = line.split()[1].decode()
        await self._keep(version)
        self._versions[slot] = version
        if not self._all_ready and len(self._versions) == self.options.workers:
            self._all_ready = True
            self._on_ready(self._versions[slot])
        return True

    async def _watch_heartbeat(self, slot: int, process: asyncio.subprocess.Process) -> None:
        """Kill the process if it stops writing heartbeats; while it shuts down it writes none."""
        assert process.stdout is not None
        try:
            while line := await asyncio.wait_for(process.stdout.readline(), HANG_SECONDS):
                if line.startswith(b"model "):
                    await self._keep(line.split()[1].decode())
        except asyncio.TimeoutError:
            if not self._stopping.is_set():
                log.warning("worker %d has not responded for %g s; killing it", slot, HANG_SECONDS)
                process.kill()

    async def _keep(self, version: str) -> None:
        """Keep the files of a version that serves, for workers that start while the path holds a bad one."""
        if self.options.shards or (self._last_good is not None and self._last_good.version == version):
            return
        found = await asyncio.to_thread(LastGood.keep, ModelLoader.from_options(self.options), version)
        if found is not None:
            old, self._last_good = self._last_good, found
            if old is not None:
                old.close()

    def _terminate(self, process: asyncio.subprocess.Process) -> None:
        """Ask a worker to finish its requests, and kill it if it takes too long."""
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            limits = self.options.limits
            asyncio.get_running_loop().call_later(limits.drain + limits.grace + KILL_AFTER, _kill, process)


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
