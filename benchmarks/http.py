"""The server over loopback: throughput against in-process queries and other servers, and a soak with model reloads.

    python -m benchmarks http                             # all parts; the soak takes 10 minutes, a reload every 10 s
    python -m benchmarks http --parts throughput
    python -m benchmarks http --parts servers             # beside plain uvicorn, and granian if it is installed
    python -m benchmarks http --quick                     # a check of the benchmark itself

Server and load share the machine. Histories and answers are external ids on both sides of the comparison; HTTP adds
JSON, the socket, and the client.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from benchmarks import http_servers, http_soak
from benchmarks.load import Load, RunningLoad, tool
from benchmarks.report import Report, arguments_parser, chosen, open_report
from benchmarks.server_process import ServerProcess, put_in_place
from benchmarks.synthetic import open_model, random_histories, save_synthetic
from pathdex.config import RunOptions
from pathdex.recommenders.deep_retrieval import DeepRetrieval

PARTS = ("throughput", "servers", "soak")
BATCH = 256
"""Queries per in-process call."""


@dataclass(frozen=True)
class Plan:
    """The queries, and for how long they are sent."""

    items: int
    history: int
    n: int
    queries: int
    connections: int
    workers: tuple[int, ...]
    seconds: float
    """Of each measurement."""
    repeats: int
    minutes: float
    swap_seconds: float

    @classmethod
    def of(cls, given: argparse.Namespace) -> Plan:
        quick = given.quick
        return cls(
            items=given.items or (20_000 if quick else 1_000_000),
            history=69,
            n=given.n,
            queries=200 if quick else 5000,
            connections=given.connections,
            workers=(1, 2),
            seconds=2 if quick else 10,
            repeats=2 if quick else 5,
            minutes=given.minutes if given.minutes is not None else (0.25 if quick else 10),
            swap_seconds=5 if quick else 10,
        )


@dataclass(frozen=True, eq=False)
class Asked:
    """The same queries as histories and as request bodies."""

    histories: list[list[Any]]
    file: Path

    @classmethod
    def make(cls, model: DeepRetrieval, plan: Plan, folder: Path) -> Asked:
        drawn = random_histories(len(model.items), plan.queries, plan.history)
        histories = [model.items.ids(one[0]) for one in drawn]
        file = folder / "bodies.jsonl"
        file.write_text("".join(json.dumps({"history": one, "n": plan.n}) + "\n" for one in histories))
        return cls(histories, file)


def throughput(model: DeepRetrieval, asked: Asked, link: Path, plan: Plan, folder: Path, report: Report) -> None:
    """Requests a second beside queries a second in-process, in turns."""
    rates: dict[str, list[float]] = {}
    loads: dict[str, list[Load]] = {}
    with ExitStack() as stack:
        servers = [
            stack.enter_context(ServerProcess(link, workers=count, log=folder / f"server-{count}.log"))
            for count in plan.workers
        ]
        _compare(model, servers[0], asked, plan)
        ways: dict[str, Callable[[], float]] = {
            "in-process, one by one": lambda: _one_by_one(model, asked, plan),
            "in-process, batches on 1 thread": lambda: _batches(model, asked, plan, 1),
            "in-process, batches on 2 threads": lambda: _batches(model, asked, plan, 2),
        }
        for server in servers:
            label = f"HTTP, {server.workers} worker{'s' * (server.workers > 1)}"
            loads[label] = []
            ways[label] = lambda server=server, label=label: _over_http(server, asked, plan, loads[label])  # type: ignore[misc]
        for way in ways.values():
            way()  # warm
        for kept in loads.values():
            kept.clear()
        for repeat in range(plan.repeats):
            for label, way in ways.items():
                rates.setdefault(label, []).append(way())
            report.say(f"throughput: turn {repeat + 1} of {plan.repeats}")
    figures, table = _figures(rates, loads, plan)
    report.add("throughput", figures, table)


def _compare(model: DeepRetrieval, server: ServerProcess, asked: Asked, plan: Plan) -> None:
    """Check that both give the same results."""
    for history, body in zip(asked.histories[:10], asked.file.read_bytes().splitlines()[:10], strict=True):
        own = [item.id for item in model.recommend(history, plan.n)]
        sent = [item["id"] for item in server.ask(body)["items"]]
        if own != sent:
            raise SystemExit(f"the server answers {sent[:3]}..., the model {own[:3]}...: not the same model")


def _one_by_one(model: DeepRetrieval, asked: Asked, plan: Plan) -> float:
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < plan.seconds:
        model.recommend(asked.histories[count % len(asked.histories)], plan.n)
        count += 1
    return count / (time.perf_counter() - begin)


def _batches(model: DeepRetrieval, asked: Asked, plan: Plan, threads: int) -> float:
    model.options = RunOptions(threads=threads)
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < plan.seconds:
        first = count % len(asked.histories)
        batch = asked.histories[first : first + BATCH]
        model.recommend_batch(batch, plan.n)
        count += len(batch)
    model.options = RunOptions(threads=1)
    return count / (time.perf_counter() - begin)


def _over_http(server: ServerProcess, asked: Asked, plan: Plan, kept: list[Load]) -> float:
    load = RunningLoad(server.url, asked.file, plan.seconds, plan.connections).result()
    kept.append(load)
    return load.per_second


def _figures(rates: dict[str, list[float]], loads: dict[str, list[Load]], plan: Plan) -> tuple[dict[str, Any], Table]:
    figures: dict[str, Any] = {"plan": vars(plan), "load": tool(), "rates": rates, "ratios": {}, "wanted": "0.5"}
    title = f"{plan.items:,} items, history {plan.history}, n = {plan.n}, {plan.connections} connections, {tool()}"
    table = Table("way", "queries/s", "p50, ms", "p99, ms", "p99/p50", "failed", title=title)
    for label, each in rates.items():
        if label not in loads:
            table.add_row(label, f"{np.median(each):,.0f}")
            continue
        mine = loads[label]
        p50, p99 = (float(np.median([getattr(load, name) for load in mine])) for name in ("p50", "p99"))
        failed = sum(load.failures for load in mine)
        figures[label] = {"p50": p50, "p99": p99, "p99_over_p50": p99 / p50, "failed": failed}
        figures[label]["turns"] = [load.to_dict() for load in mine]
        cells = (f"{p50 / 1e3:.2f}", f"{p99 / 1e3:.2f}", f"{p99 / p50:.1f}", str(failed))
        table.add_row(label, f"{np.median(each):,.0f}", *cells)
    for over in loads:
        for under in (label for label in rates if label not in loads):
            each = np.array(rates[over]) / np.array(rates[under])
            low, middle, high = float(each.min()), float(np.median(each)), float(each.max())
            figures["ratios"][f"{over} / {under}"] = {"median": middle, "range": [low, high]}
            table.add_row(f"{over} / {under}", f"{middle:.2f} ({low:.2f} to {high:.2f})")
    return figures, table


def main(arguments: list[str]) -> None:
    parser = arguments_parser("http", __doc__)
    parser.add_argument("--parts", help="comma-separated: " + ", ".join(PARTS))
    parser.add_argument("--items", type=int, help="of the synthetic model [default: 1,000,000]")
    parser.add_argument("--n", type=int, default=10, help="items of an answer")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--minutes", type=float, help="of the soak [default: 10]")
    given = parser.parse_args(arguments)
    parts, plan = chosen(parser, given.parts, PARTS), Plan.of(given)
    report = open_report("http", given)
    with tempfile.TemporaryDirectory(prefix="pathdex-bench-") as name:
        folder = Path(name)
        size = {"num_nodes": 100 if plan.items > 100_000 else 40, "path_size": 25.0}
        bundles = [save_synthetic(folder / f"bundle-{seed}", plan.items, seed=seed, **size) for seed in (0, 1)]
        link = folder / "current"
        put_in_place(link, bundles[0])
        model = open_model(link)
        asked = Asked.make(model, plan, folder)
        report.say(
            f"made two bundles of {plan.items:,} items and {plan.queries:,} queries; the load is made by {tool()}"
        )
        if "throughput" in parts:
            throughput(model, asked, link, plan, folder, report)
        del model
        if "servers" in parts:
            http_servers.run(asked, bundles[0], plan, report)
        if "soak" in parts:
            http_soak.run(asked, link, bundles, plan, folder, report)
