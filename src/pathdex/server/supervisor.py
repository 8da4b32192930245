"""Several worker processes on one socket: started, watched, replaced when one dies, and stopped together.

All workers accept from the same listening socket, so a connection that waits when a worker dies is taken by another.
The model's arrays are mapped from the same files, so they are in memory once.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from pathdex.errors import ServerError
from pathdex.server.options import ServerOptions

log = logging.getLogger("pathdex.server")

LONGEST_PAUSE = 30.0
"""Seconds between two starts of a worker that dies again and again."""
PATIENCE = 5.0
"""Seconds that a worker has beyond its own grace before it is killed."""


class Supervisor:
    """Keeps `options.workers` processes alive until it is told to stop."""

    def __init__(
        self, options: ServerOptions, listening: socket.socket, ready: Callable[[str], None] | None = None
    ) -> None:
        self.options, self._listening, self._ready = options, listening, ready
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._versions: dict[int, str] = {}
        self._told = False
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Until SIGTERM or SIGINT. `ServerError` where workers cannot even start."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        with tempfile.TemporaryDirectory(prefix="pathdex-") as folder:
            slots = [asyncio.create_task(self._keep(slot, Path(folder))) for slot in range(self.options.workers)]
            try:
                await asyncio.gather(*slots)
            finally:
                self.stop()
                await asyncio.gather(*slots, return_exceptions=True)

    def stop(self) -> None:
        """Let every worker finish what it has in hand, and end."""
        self._stopping.set()
        for process in self._processes.values():
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)

    @property
    def pids(self) -> list[int]:
        """The processes that run now."""
        return [process.pid for process in self._processes.values() if process.returncode is None]

    async def _keep(self, slot: int, folder: Path) -> None:
        failures = 0
        while not self._stopping.is_set():
            process = await self._start(slot, folder)
            was_ready = await self._await_ready(slot, process)
            code = await self._await_end(process)
            if self._stopping.is_set():
                if code != 0:
                    log.warning("worker %d ended with code %d", slot, code)
                return
            if not was_ready and not self._told:
                raise ServerError(f"worker {slot} ended with code {code} before it was ready")
            failures = 0 if was_ready else failures + 1
            log.warning("worker %d ended with code %d; starting another", slot, code)
            if failures:
                await self._pause(min(2.0**failures, LONGEST_PAUSE))

    async def _start(self, slot: int, folder: Path) -> asyncio.subprocess.Process:
        number = self._listening.fileno()
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "pathdex.server.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=[number],
        )
        self._processes[slot] = process
        assert process.stdin is not None
        given = {"options": self.options.to_dict(), "socket": number, "slot": slot, "metrics": str(folder)}
        process.stdin.write(json.dumps(given).encode() + b"\n")
        if self._stopping.is_set():
            process.send_signal(signal.SIGTERM)
        return process

    async def _await_ready(self, slot: int, process: asyncio.subprocess.Process) -> bool:
        assert process.stdout is not None
        line = await process.stdout.readline()
        if not line.startswith(b"ready "):
            return False
        self._versions[slot] = line.split()[1].decode()
        if not self._told and len(self._versions) == self.options.workers:
            self._told = True
            if self._ready is not None:
                self._ready(self._versions[slot])
        return True

    async def _await_end(self, process: asyncio.subprocess.Process) -> int:
        ended = asyncio.ensure_future(process.wait())
        stopping = asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait((ended, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        try:
            limits = self.options.limits
            return await asyncio.wait_for(ended, limits.drain + limits.grace + PATIENCE)
        except asyncio.TimeoutError:
            process.kill()
            return await process.wait()

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except asyncio.TimeoutError:
            return
