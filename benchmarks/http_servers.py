"""The same app behind Pathdex's server, plain uvicorn and granian: CPU per request, and behaviour in bad conditions.

    python -m benchmarks http --parts servers             # granian is measured if it is installed

Each server runs one worker for the cost and the slow clients, and two for the failures of processes.
"""

from __future__ import annotations

import importlib.util
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
from rich.table import Table

from benchmarks.load import RunningLoad
from benchmarks.report import Report
from benchmarks.server_process import ServerProcess, await_ready, children, free_port
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.recommenders.popularity import Popularity

if TYPE_CHECKING:
    from benchmarks.http import Asked, Plan

KINDS = ("uvicorn", "pathdex", "pathdex, two writes", "granian")
MODEL_VARIABLE = "PATHDEX_BENCHMARK_MODEL"
PATIENCE = 15.0
"""Seconds to wait for a server to react."""
REQUESTS, WARM_TURNS, TURNS = 400, 2, 40
"""Requests of a turn, and turns of each server."""
SETTLE_SECONDS = 5.0
"""Seconds until the second worker is ready too: supervisors look for hangs only after that."""
HANG_PATIENCE = 45.0
"""Seconds to wait for a server to replace a worker that hangs."""
READ_TIMEOUT = 2.0
"""The limit of Pathdex's server in the test of slow clients."""


def make_app() -> Any:
    """The app with its metrics layer, for servers that take an ASGI factory."""
    from pathdex.server.app import App
    from pathdex.server.limits import ServerLimits
    from pathdex.server.metrics import ServerMetrics
    from pathdex.server.middleware import RequestMetrics
    from pathdex.server.model_loader import ModelLoader
    from pathdex.server.model_manager import ModelManager
    from pathdex.server.routes import ROUTES
    from pathdex.server.worker_context import WorkerContext

    metrics = ServerMetrics()
    models = ModelManager(ModelLoader(Path(os.environ[MODEL_VARIABLE])), metrics, 0.0)

    async def startup() -> None:
        await models.start()

    app = App(WorkerContext(ServerLimits(), metrics), models, ROUTES, startup=startup, shutdown=models.close)
    return RequestMetrics(app, metrics)


def serve(kind: str, port: int, workers: int) -> None:
    """Run one kind of server until it is stopped."""
    factory = "benchmarks.http_servers:make_app"
    if kind == "uvicorn":
        import uvicorn

        uvicorn.run(factory, factory=True, port=port, workers=workers, lifespan="on", log_config=None, access_log=False)
    elif kind == "granian":
        from granian import Granian
        from granian.constants import Interfaces, Loops

        Granian(
            factory,
            factory=True,
            port=port,
            workers=workers,
            interface=Interfaces.ASGI,
            loop=Loops.uvloop,
            respawn_failed_workers=True,
            log_enabled=False,
        ).serve()
    else:
        from pathdex.server import connections
        from pathdex.server.limits import ServerLimits
        from pathdex.server.options import ServerOptions
        from pathdex.server.serving import serve as run

        if kind == "pathdex, two writes":
            connections.BufferedTransport = lambda transport, _: transport  # type: ignore[assignment, misc]
        limits = ServerLimits(read_timeout=READ_TIMEOUT)
        model = Path(os.environ[MODEL_VARIABLE])
        run(ServerOptions(model=model, port=port, workers=workers, watch=0.0, limits=limits))


class OneServer(ServerProcess):
    """One of the servers as a process."""

    def __init__(self, kind: str, model: Path, workers: int = 1) -> None:
        port = free_port()
        self.kind, self.url, self.workers = kind, f"http://127.0.0.1:{port}", workers
        command = [sys.executable, "-m", "benchmarks.http_servers", kind, str(port), str(workers)]
        environment = {**os.environ, MODEL_VARIABLE: str(model.resolve())}
        self.process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        await_ready(self.url, self.process)

    def __exit__(self, *_: object) -> None:
        workers = self.worker_pids()
        self.process.kill()
        self.process.wait()
        for pid in workers:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def worker_pids(self) -> list[int]:
        return [pid for pid in children(self.process.pid) if "resource_tracker" not in command_line(pid)]

    def cpu_microseconds(self) -> float:
        """CPU time of the server and its workers so far."""
        tasks = [
            task for pid in (self.process.pid, *self.worker_pids()) for task in Path(f"/proc/{pid}/task").iterdir()
        ]
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e3

    def connect(self) -> socket.socket:
        place = urlsplit(self.url)
        return socket.create_connection((place.hostname, place.port), timeout=PATIENCE)


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def cost(name: str, bodies: list[bytes], model: Path, plan: Plan, report: Report) -> None:
    """CPU time of one worker per request, in turns: it depends less on other load of the machine than throughput."""
    kinds = installed(KINDS)
    figures: dict[str, dict[str, list[float]]] = {}
    table = Table("server", title=f"{name}: CPU per request / plain uvicorn; median and quartiles of {TURNS} turns")
    columns: list[list[str]] = [kinds]
    servers = [OneServer(kind, model) for kind in kinds]
    try:
        for connections in (1, plan.connections):
            costs: dict[str, list[float]] = {kind: [] for kind in kinds}
            for turn in range(WARM_TURNS + TURNS):
                for server in servers if turn % 2 else servers[::-1]:
                    before = server.cpu_microseconds()
                    drive(server, bodies, connections)
                    if turn >= WARM_TURNS:
                        costs[server.kind].append((server.cpu_microseconds() - before) / REQUESTS)
            figures[str(connections)] = costs
            table.add_column(f"{connections} connection{'s' * (connections > 1)}")
            columns.append([_ratio(costs[kind], costs["uvicorn"]) for kind in kinds])
    finally:
        for server in servers:
            server.__exit__()
    for row in zip(*columns, strict=True):
        table.add_row(*row)
    report.add(name, figures, table)


def installed(kinds: tuple[str, ...]) -> list[str]:
    return [kind for kind in kinds if kind != "granian" or importlib.util.find_spec("granian")]


def drive(server: OneServer, bodies: list[bytes], connections: int) -> None:
    """Send `REQUESTS` requests: one on every connection, then read all responses, and again."""
    head = b"POST /v1/recommend HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s"
    requests = [head % (len(body), body) for body in bodies]
    with ExitStack() as stack:
        opened = [stack.enter_context(server.connect()) for _ in range(connections)]
        for first in range(0, REQUESTS, connections):
            for number, connection in enumerate(opened):
                connection.sendall(requests[(first + number) % len(requests)])
            for connection in opened:
                _read_response(connection)


def _read_response(connection: socket.socket) -> None:
    found = b""
    while b"\r\n\r\n" not in found:
        found += connection.recv(65536)
    head, _, body = found.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"a request failed: {head.decode()}")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65536)


def _ratio(costs: list[float], reference: list[float]) -> str:
    ratios = np.array(costs) / np.array(reference)
    low, middle, high = np.percentile(ratios, (25, 50, 75))
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def behaviour(asked: Asked, model: Path, report: Report) -> None:
    """What each server does when clients or workers misbehave."""
    kinds = [kind for kind in installed(KINDS) if "writes" not in kind]
    tests: dict[str, tuple[int, Callable[[OneServer, Asked], str]]] = {
        "half a request": (1, _half_request),
        "headers without end": (1, _endless_headers),
        "a client that does not read": (1, _no_reading),
        "kill -9 of a worker under load": (2, _killed_worker),
        "a worker that hangs": (2, _stopped_worker),
        "kill -9 of the parent": (2, _killed_parent),
        "SIGTERM": (2, _terminated),
        "requests in /metrics, of 200": (2, _counted),
    }
    figures: dict[str, dict[str, str]] = {}
    table = Table("", *kinds, title="Behaviour")
    for name, (workers, test) in tests.items():
        figures[name] = {}
        for kind in kinds:
            with OneServer(kind, model, workers) as server:
                figures[name][kind] = test(server, asked)
        table.add_row(name, *figures[name].values())
        report.say(f"servers: {name}: {figures[name]}")
    report.add("behaviour", figures, table)


def _closed_after(connection: socket.socket) -> str:
    started = time.monotonic()
    while time.monotonic() - started < PATIENCE:
        if select.select([connection], [], [], 0.2)[0]:
            try:
                found = connection.recv(4096)
            except OSError:
                found = b""
            status = found.split(b" ")[1].decode() + ", " if found.startswith(b"HTTP/1.1 ") else ""
            return f"{status}closed after {time.monotonic() - started:.0f} s"
    return f"open after {PATIENCE:.0f} s"


def _half_request(server: OneServer, _: Asked) -> str:
    with server.connect() as connection:
        connection.sendall(b"POST /v1/recommend HTTP/1.1\r\nHost: x\r\nContent-Length: 15\r\n\r\n{")
        return _closed_after(connection)


def _endless_headers(server: OneServer, _: Asked) -> str:
    line, sent = b"x: " + b"y" * 9995 + b"\r\n", 0
    with server.connect() as connection:
        connection.settimeout(2)
        try:
            connection.sendall(b"GET / HTTP/1.1\r\n")
            for _ in range(1000):
                connection.sendall(line)
                sent += len(line)
        except OSError:
            return f"closed after about {sent / 1e6:.1f} MB"
    return f"takes {sent / 1e6:.0f} MB and waits for more"


def _no_reading(server: OneServer, _: Asked) -> str:
    with server.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(1)
        try:
            for _ in range(100_000):
                connection.sendall(b"GET /docs HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
        except TimeoutError:
            pass
        except OSError:
            return "closed"
        started = time.monotonic()
        poll = select.poll()
        poll.register(connection, select.POLLERR | select.POLLHUP)
        while time.monotonic() - started < PATIENCE:
            if poll.poll(200):
                return "closed"
    return f"open after {PATIENCE:.0f} s"


def _killed_worker(server: OneServer, asked: Asked) -> str:
    load = RunningLoad(server.url, asked.file, 8, 8)
    time.sleep(2)
    victim = server.worker_pids()[0]
    os.kill(victim, signal.SIGKILL)
    seconds = _replaced(server, victim)
    result = load.result()
    return f"{result.failures} connections lost, replaced {seconds}"


def _stopped_worker(server: OneServer, _: Asked) -> str:
    time.sleep(SETTLE_SECONDS)
    victim = server.worker_pids()[0]
    os.kill(victim, signal.SIGSTOP)
    return f"replaced {_replaced(server, victim, HANG_PATIENCE)}"


def _replaced(server: OneServer, victim: int, patience: float = PATIENCE) -> str:
    started = time.monotonic()
    while time.monotonic() - started < patience:
        workers = server.worker_pids()
        if victim not in workers and len(workers) == 2:
            return f"after {time.monotonic() - started:.1f} s"
        time.sleep(0.02)
    return "never"


def _killed_parent(server: OneServer, _: Asked) -> str:
    workers = server.worker_pids()
    server.process.kill()
    server.process.wait()
    started = time.monotonic()
    try:
        while time.monotonic() - started < PATIENCE:
            if not any(Path(f"/proc/{pid}").exists() for pid in workers):
                return f"workers exit after {time.monotonic() - started:.1f} s"
            time.sleep(0.05)
        return "workers keep the port"
    finally:
        for pid in workers:
            if Path(f"/proc/{pid}").exists():
                os.kill(pid, signal.SIGKILL)


def _terminated(server: OneServer, _: Asked) -> str:
    server.process.send_signal(signal.SIGTERM)
    try:
        return f"exit code {server.process.wait(PATIENCE)}"
    except subprocess.TimeoutExpired:
        return "still running"


def _counted(server: OneServer, _: Asked) -> str:
    for _ in range(200):
        server.ask(b'{"history": []}')
    seen = {int(server.counter("pathdex_queries_total")) for _ in range(20)}
    return " or ".join(map(str, sorted(seen)))


def run(asked: Asked, model: Path, plan: Plan, report: Report) -> None:
    cost("servers", asked.file.read_bytes().splitlines(), model, plan, report)
    with tempfile.TemporaryDirectory(prefix="pathdex-bench-") as folder:
        rows = Ragged.from_rows([np.arange(32)])
        data = Interactions(rows, Vocabulary(np.arange(1)), Vocabulary(np.arange(32)))
        cheap = Popularity().fit(data).save(Path(folder) / "bundle")
        cost("servers, cheap queries", [b'{"history": [], "n": 5}'], cheap, plan, report)
    behaviour(asked, model, report)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
