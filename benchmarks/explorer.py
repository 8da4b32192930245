"""The explorer over HTTP: the time of each interaction, the first time and afterwards.

    python -m benchmarks explorer --items 1000000
    python -m benchmarks explorer --quick            # a check of the benchmark itself

One server process, one connection, one request at a time, each for another path, item, search or history. The first
overview is asked for as soon as the server is ready; the other kinds when all is prepared. The model is synthetic (see
`benchmarks.synthetic`), with titles and categories, sample histories and recorded rounds.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from rich.table import Table

import pathdex
from benchmarks.report import arguments_parser, open_report
from benchmarks.server_process import ServerProcess
from benchmarks.synthetic import save_synthetic
from pathdex.data.demo_catalogue import INTERESTS
from pathdex.data.item_details import ItemDetails
from pathdex.data.ragged import Ragged
from pathdex.explorer.samples import sample_answers
from pathdex.recommenders.capabilities import require
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.server.explorers import open_explorer
from pathdex.storage.run_folder import BUNDLE, RECORDING
from pathdex.training.recording import MAX_HISTORIES, MAX_ITEMS, Recording

ROUNDS, LENGTH = 4, 30
PATIENCE = 300.0
"""Seconds to wait for what is computed for the first time."""


def main(arguments: list[str]) -> None:
    parser = arguments_parser("explorer", __doc__)
    parser.add_argument("--items", type=int, default=1_000_000, help="items of the catalogue [default: 1000000]")
    parser.add_argument("--requests", type=int, default=200, help="requests of each kind [default: 200]")
    given = parser.parse_args(arguments)
    items, requests = (5_000, 10) if given.quick else (given.items, given.requests)
    report = open_report("explorer", given)
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        started = time.monotonic()
        model = save_run(run, items)
        report.say(f"wrote {items:,} items in {time.monotonic() - started:.0f} s")
        with ServerProcess(run, workers=1, log=Path(folder) / "log") as server:
            measured, prepared = measure(server.url, server.process.pid, model, requests)
            memory = resident(server.process.pid)
        first = builds(run)
    table = Table("interaction", "first ms", "median ms", "p95 ms", "cpu ms", title=f"{items:,} items")
    for name, one in measured.items():
        table.add_row(
            name, f"{one['first_ms']:.0f}", f"{one['median_ms']:.1f}", f"{one['p95_ms']:.1f}", f"{one['cpu_ms']:.0f}"
        )
    values = {
        "items": items,
        "requests": requests,
        "memory_mb": memory,
        "prepared_s": prepared,
        "times": measured,
        "build_cpu_s": first,
    }
    report.say(f"prepared {prepared:.1f} s after the first request")
    report.say("processor seconds, once per version: " + ", ".join(f"{name} {one:.1f}" for name, one in first.items()))
    report.add(f"{items}", values, table)


def save_run(run: Path, items: int) -> DeepRetrieval:
    """A run folder with a synthetic model, titles, and a recording."""
    run.mkdir()
    nodes = max(8, round((items * 3 / 25 * 8) ** (1 / 3)))
    parameters = {"num_nodes": nodes, "depth": 3, "paths_per_item": 3, "embedding_dim": 64}
    bare = save_synthetic(run.parent / "bare", items, path_size=25.0, **parameters)
    model = require(pathdex.load(bare), DeepRetrieval)
    random = np.random.default_rng(0)
    products = (
        product for one in INTERESTS.values() for theme in one["themes"].values() for product in theme["products"]
    )
    words = sorted({word for product in products for word in product.split()})
    chosen = np.array(words)[random.integers(0, len(words), (items, 3))]
    titles = [f"{a} {b} {c} {number}" for number, (a, b, c) in enumerate(chosen)]
    categories = np.array(sorted(INTERESTS))[random.integers(0, len(INTERESTS), items)]
    frame = pl.DataFrame({"item": np.arange(items), "title": titles, "category": categories})
    model.describe_items(ItemDetails.read(frame))
    model.save(run / BUNDLE)
    sampled = np.sort(random.permutation(items)[:MAX_ITEMS])
    last = np.asarray(model.paths)[sampled]
    rounds = np.stack([*(np.roll(last, shift, axis=0) for shift in range(ROUNDS, 0, -1)), last])
    histories = Ragged.from_rows(random.integers(0, items, LENGTH) for _ in range(MAX_HISTORIES))
    following = random.integers(0, items, MAX_HISTORIES)
    Recording(items, nodes, 3, sampled, rounds, histories, following).save(run / RECORDING)
    return model


def builds(run: Path) -> dict[str, float]:
    """Processor seconds of what is computed once per version, each on its own."""
    explorer, found = open_explorer(run), dict[str, float]()
    makes: dict[str, Callable[[], Any]] = {
        "sums": lambda: explorer.facts,
        "order by popularity": lambda: explorer.popularity_rank,
        "labels": lambda: explorer.labels,
        "search index": lambda: explorer.search,
        "sample histories": lambda: sample_answers(explorer),
    }
    for name, make in makes.items():
        started = time.process_time()
        make()
        found[name] = time.process_time() - started
    return found


def measure(url: str, pid: int, model: DeepRetrieval, count: int) -> tuple[dict[str, dict[str, float]], float]:
    """Milliseconds of each kind of request, the first and the others; and the seconds until all was prepared."""
    random = np.random.default_rng(1)
    items = len(model.items)
    codes = random.integers(0, items, count + 1)
    nodes = model.num_nodes
    words = sorted({word for one in INTERESTS.values() for word in one["themes"]})

    def path_of(code: int) -> str:
        return "-".join(map(str, model.item_paths(int(code))[0]))

    def query(code: int, **more: Any) -> bytes:
        history = [int(one) for one in random.integers(0, items, 20)]
        return json.dumps({"history": history, **more}).encode()

    prefix = "/v1/explore"
    kinds: dict[str, Callable[[int], tuple[str, bytes | None]]] = {
        "overview": lambda _: (f"{prefix}/overview", None),
        "nodes and paths under a node": lambda code: (f"{prefix}/paths?prefix={code % nodes}&size=25", None),
        "all paths, by interactions": lambda code: (
            f"{prefix}/paths?sort=interactions&page={code % 1000 + 1}&size=25",
            None,
        ),
        "paths through a node of layer 2": lambda code: (f"{prefix}/nodes/{code % nodes}?layer=2&size=25", None),
        "path card": lambda code: (f"{prefix}/paths/{path_of(code)}", None),
        "item card": lambda code: (f"{prefix}/items/{code}", None),
        "search, one letter": lambda code: (f"{prefix}/items?search={chr(97 + code % 26)}", None),
        "search, a word and a letter": lambda code: (
            f"{prefix}/items?search={words[code % len(words)]}%20{chr(97 + code % 26)}",
            None,
        ),
        "query": lambda code: (f"{prefix}/query", query(code)),
        "query, beam 400": lambda code: (f"{prefix}/query", query(code, beam=400)),
        "query, where": lambda code: (f"{prefix}/query", query(code, where={"category": sorted(INTERESTS)[0]})),
        "why": lambda code: (f"{prefix}/why", query(code, item=int(code))),
        "replay, 200 items": lambda _: (f"{prefix}/replay", None),
    }
    ticks = os.sysconf("SC_CLK_TCK")
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    found, prepared, started = {}, 0.0, time.perf_counter()
    for name, make in kinds.items():
        requests = (make(int(code)) for code in codes)
        times = list(_times(connection, itertools.islice(requests, 1)))
        if not found:
            wait_until_prepared(connection)
            prepared = time.perf_counter() - started
        before = cpu_ticks(pid)
        later = np.array(list(_times(connection, requests)))
        found[name] = {
            "first_ms": times[0],
            "median_ms": float(np.median(later)),
            "p95_ms": float(np.percentile(later, 95)),
            "max_ms": float(later.max()),
            "cpu_ms": (cpu_ticks(pid) - before) / ticks / len(later) * 1000,
        }
    return found, prepared


def wait_until_prepared(connection: http.client.HTTPConnection) -> None:
    while True:
        connection.request("GET", "/v1/explore/status")
        if json.loads(connection.getresponse().read())["preparing"] is None:
            return
        time.sleep(0.05)


def _times(connection: http.client.HTTPConnection, requests: Iterator[tuple[str, bytes | None]]) -> Iterator[float]:
    for path, body in requests:
        started = time.perf_counter()
        headers = {} if body is None else {"Content-Type": "application/json"}
        connection.request("GET" if body is None else "POST", path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        while answer.status in (503, 504) and time.perf_counter() - started < PATIENCE:
            time.sleep(0.2)  # Something is computed for the first time.
            connection.request("GET" if body is None else "POST", path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status} {content[:300]!r}")
        yield (time.perf_counter() - started) * 1000


def cpu_ticks(pid: int) -> int:
    """The time that a process has had on a core, in clock ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def resident(pid: int) -> float:
    """The resident memory of a process in MB, with the pages of mapped files that it has read."""
    line = next(one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("VmRSS"))
    return int(line.split()[1]) / 1024
