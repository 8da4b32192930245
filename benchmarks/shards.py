"""What shards cost: memory of each, and queries through a router against one server of the whole model.

    python -m benchmarks shards                     # 1,000,000 items, 4 shards; a few minutes
    python -m benchmarks shards --quick             # 50,000 items

All processes share one machine, so the router's extra work shows as CPU time per query; more machines would add network
time and take away the competition for cores.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from benchmarks.report import CACHE, RESULTS, Report
from benchmarks.server_process import ServerProcess
from benchmarks.synthetic import save_synthetic

DIM, NODES, DEPTH, PATH_SIZE, HISTORY = 64, 100, 3, 30.0, 20
REPEATS = 5
TICKS = os.sysconf("SC_CLK_TCK")
REMEMBERED = "remembered history"
KINDS = {"beam": {}, REMEMBERED: {}, "200 candidates": {"candidates": 200}, "1,000 allowed": {"allow": 1000}}
"""All but one are of histories that are new to the router."""


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks shards")
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--queries", type=int, default=300, help="queries of a turn")
    parser.add_argument("--quick", action="store_true", help="few items, results in the cache")
    given = parser.parse_args(arguments)
    items = min(given.items, 50_000) if given.quick else given.items
    report = Report("shards", CACHE if given.quick else RESULTS)
    with tempfile.TemporaryDirectory(prefix="pathdex-shards-") as folder:
        _measure(Path(folder), items, given.shards, given.queries, report)


def _measure(folder: Path, items: int, shards: int, queries: int, report: Report) -> None:
    model = save_synthetic(
        folder / "model",
        items,
        path_size=PATH_SIZE,
        sharpness=4.0,
        num_nodes=NODES,
        depth=DEPTH,
        paths_per_item=2,
        embedding_dim=DIM,
        history_length=HISTORY,
        encoder="gru",
        neighbours=0,
    )
    started = time.perf_counter()
    command = [sys.executable, "-m", "pathdex", "shard", str(model), "--shards", str(shards)]
    subprocess.run([*command, "--out", str(folder / "shards")], check=True, stdout=subprocess.DEVNULL)
    report.say(f"split {items:,} items into {shards} shards in {time.perf_counter() - started:.1f} s")
    parts = [folder / "shards" / f"shard-{number}" for number in range(1, shards + 1)]
    with ExitStack() as stack:
        whole = stack.enter_context(ServerProcess(model, workers=1, log=folder / "whole.log"))
        servers = [
            stack.enter_context(ServerProcess(part, workers=1, log=folder / f"{part.name}.log")) for part in parts
        ]
        urls = ",".join(server.url for server in servers)
        routers = [
            stack.enter_context(
                ServerProcess(
                    None, workers=1, log=folder / "router.log", options=["--shards", urls, "--known-items", known]
                )
            )
            for known in ("0", str(2 * queries * HISTORY))
        ]
        _memory(report, model, parts, whole, servers, routers[0])
        _cost(report, items, queries, whole, servers, routers)


def _memory(
    report: Report,
    model: Path,
    parts: list[Path],
    whole: ServerProcess,
    servers: list[ServerProcess],
    router: ServerProcess,
) -> None:
    rows: dict[str, dict[str, float]] = {}
    processes = [("whole", model, whole), *((part.name, part, one) for part, one in zip(parts, servers, strict=True))]
    for name, path, server in processes:
        size = sum(file.stat().st_size for file in path.iterdir()) / 1e6
        rows[name] = {"bundle_mb": size, **server.memory()}
    rows["router"] = {"bundle_mb": 0.0, **router.memory()}
    table = Table("process", "bundle, MB", "not mapped, MB", "resident, MB", title="memory after start")
    for name, row in rows.items():
        table.add_row(name, f"{row['bundle_mb']:,.0f}", f"{row['own_mb']:,.0f}", f"{row['resident_mb']:,.0f}")
    report.add("memory", {"rows": rows}, table)


def _cost(
    report: Report,
    items: int,
    queries: int,
    whole: ServerProcess,
    servers: list[ServerProcess],
    routers: list[ServerProcess],
) -> None:
    """Turns of both alternate; the answers are compared. The first router remembers nothing."""
    generator = np.random.default_rng(0)
    table = Table(
        "query", "server, CPU ms", "router, CPU ms", "all shards, CPU ms", "server, ms", "router, ms", title="per query"
    )
    figures: dict[str, Any] = {}
    for kind, options in KINDS.items():
        bodies, router = [], routers[kind == REMEMBERED]
        for _ in range(queries):
            body = {"history": generator.choice(items, HISTORY, replace=False).tolist(), "n": 20, **options}
            if "allow" in options:
                body["allow"] = generator.choice(items, options["allow"], replace=False).tolist()
            bodies.append(json.dumps(body).encode())
        answers = [[_ask(url, body) for body in bodies[:50]] for url in (whole.url, router.url)]
        if answers[0] != answers[1]:
            raise SystemExit(f"{kind}: the router's answers are not those of the server")
        _turn(router.url, bodies)
        turns: dict[str, list[float]] = {
            name: [] for name in ("whole", "router", "shards", "whole_wall", "router_wall")
        }
        for _ in range(REPEATS):
            before = _cpu([whole])
            turns["whole_wall"].append(_turn(whole.url, bodies))
            turns["whole"].append((_cpu([whole]) - before) / queries)
            before = _cpu([router]), _cpu(servers)
            turns["router_wall"].append(_turn(router.url, bodies))
            turns["router"].append((_cpu([router]) - before[0]) / queries)
            turns["shards"].append((_cpu(servers) - before[1]) / queries)
        row = {
            name: {"median": float(np.median(all_)), "low": min(all_), "high": max(all_)}
            for name, all_ in turns.items()
        }
        figures[kind] = row
        shown = [
            f"{1e3 * row[name]['median']:.2f} ({1e3 * row[name]['low']:.2f}-{1e3 * row[name]['high']:.2f})"
            for name in turns
        ]
        table.add_row(kind, *shown)
    report.add("cost", {"items": items, "shards": len(servers), "queries": queries, "kinds": figures}, table)


def _ask(url: str, body: bytes) -> Any:
    request = urllib.request.Request(f"{url}/v1/recommend", body, {"Content-Type": "application/json"}, method="POST")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


def _turn(url: str, bodies: list[bytes]) -> float:
    """Seconds per query, one after the other on one connection."""
    import urllib3

    with urllib3.PoolManager(maxsize=1) as pool:
        started = time.perf_counter()
        for body in bodies:
            answer = pool.request(
                "POST", f"{url}/v1/recommend", body=body, headers={"Content-Type": "application/json"}
            )
            if answer.status != 200:
                raise SystemExit(f"{url} answers with status {answer.status}: {answer.data[:200]!r}")
        return (time.perf_counter() - started) / len(bodies)


def _cpu(servers: list[ServerProcess]) -> float:
    """CPU seconds of servers so far."""
    total = 0
    for pid in [pid for server in servers for pid in server.processes()]:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS
