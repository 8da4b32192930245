"""Two versions of Pathdex in one run, in turns: queries, the server, training steps, training.

    python -m benchmarks versions --before ../pathdex-0.1/src
    python -m benchmarks versions --before ../pathdex-0.1/src --parts query,http --repeats 15
    python -m benchmarks versions --before ../pathdex-0.1/src --parts batches
    python -m benchmarks versions --before ../pathdex-0.1/src --parts steps --sets books,ml-1m

`batches` are those of a large synthetic model, in CPU seconds of the process. Each version writes its own bundle with
its own `benchmarks`, so their formats may differ. Steps are timed in CPU seconds of their thread. `books` is a tenth of
the synthetic set of `benchmarks scale`.

Each version runs in its own process with its own source tree, on one thread. Rounds alternate and give one ratio each,
so other load on the machine affects both versions alike. A ratio above 1 means that this version is slower.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.load import RunningLoad
from benchmarks.scale import BOOKS
from benchmarks.sets import SETS, data_folder
from benchmarks.synthetic import save_synthetic
from pathdex.data.synthetic import generate

HERE = Path(__file__).parent
SIZES = {"items": 200_000, "num_nodes": 60, "path_size": 25.0}
QUERY = {"history": 30, "queries": 200, "n": 50, "beam": 50}
LARGE = {"items": 1_480_000, "num_nodes": 100, "depth": 3, "paths_per_item": 3, "embedding_dim": 64, "path_size": 25.0}
LARGE_QUERY = {"history": 69, "queries": 400, "n": 200, "beam": 50}
PARTS = ("query", "batches", "http", "steps", "train")
CONNECTIONS, LOAD_SECONDS = 8, 2.0
STEPS, WARM_ROUNDS = 10, 3
BOOKS_SHARE = 0.1
BOOKS_PARAMETERS = {"num_nodes": 100, "batch_size": 4096}
SAME_STEPS = {"structure_batch_size": 4096}
"""Parameters whose default has changed, so that a step is the same work in both versions."""


class Version:
    """A worker process that runs one source tree."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.process = subprocess.Popen(
            # Not as a script: its folder would be searched first, and benchmarks/http.py hides the standard library's.
            [sys.executable, "-c", (HERE / "version_worker.py").read_text()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment(source),
        )

    def __call__(self, command: str, **arguments: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the worker of {self.source} ended; run benchmarks/version_worker.py by hand to see why")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def environment(source: Path) -> dict[str, str]:
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    return {**os.environ, **threads, "PYTHONPATH": str(source.resolve())}


@contextmanager
def versions(before: Path, after: Path) -> Iterator[tuple[Version, Version]]:
    pair = Version(before), Version(after)
    try:
        yield pair
    finally:
        for one in pair:
            one.close()


def queries(before: Path, after: Path, bundle: Path, repeats: int) -> dict[str, dict[str, list[float]]]:
    """CPU microseconds per query of both versions, one per round, for single queries and for batches."""
    spent: dict[str, dict[str, list[float]]] = {}
    with versions(before, after) as pair:
        for one in pair:
            one("open", bundle=str(bundle), **QUERY)
        for number in range(repeats):
            for label, command in (("query", "query"), ("batch of 200", "batch")):
                times = spent.setdefault(label, {"before": [], "after": []})
                for name, one in list(zip(times, pair, strict=True))[:: 1 if number % 2 == 0 else -1]:
                    times[name].append(1e6 * one(command)["cpu"])
    return spent


def large_batches(before: Path, after: Path, repeats: int) -> dict[str, dict[str, list[float]]]:
    """CPU microseconds per query of both versions, one per round, each on a synthetic model that it made itself.

    So versions compare that cannot read each other's bundles.
    """
    spent: dict[str, dict[str, list[float]]] = {}
    with versions(before, after) as pair:
        for one in pair:
            one("build", sizes=LARGE, **LARGE_QUERY)
        for number in range(repeats):
            for command, label in (("query", "recommend"), ("batch", "recommend_batch"), ("ranks", "rank of a batch")):
                times = spent.setdefault(label, {"before": [], "after": []})
                for name, one in list(zip(times, pair, strict=True))[:: 1 if number % 2 == 0 else -1]:
                    times[name].append(1e6 * one(command)["cpu"])
    return spent


def cpu_table(spent: dict[str, dict[str, list[float]]], title: str) -> Table:
    """Medians and the fastest rounds, which other load on the machine disturbs least."""
    columns = ("CPU microseconds", "before", "fastest", "after", "fastest", "before / after", "range", "fastest")
    table = Table(*columns, title=title)
    for name, times in spent.items():
        cells = [f"{value:.0f}" for one in times.values() for value in (np.median(one), min(one))]
        ratios, best = np.divide(times["before"], times["after"]), min(times["before"]) / min(times["after"])
        spread = f"{ratios.min():.2f} to {ratios.max():.2f}"
        table.add_row(name, *cells, f"{np.median(ratios):.2f}", spread, f"{best:.2f}")
    return table


def requests(before: Path, after: Path, bundle: Path, repeats: int) -> dict[str, dict[str, list[float]]]:
    """CPU microseconds per request of servers with one worker each, one per round, under load from 8 connections."""
    spent: dict[str, list[float]] = {"before": [], "after": []}
    with tempfile.TemporaryDirectory(prefix="pathdex-versions-") as name:
        folder = Path(name)
        bodies = folder / "bodies.jsonl"
        rows = np.random.default_rng(0).integers(0, SIZES["items"], (500, QUERY["history"])).tolist()
        bodies.write_text("".join(json.dumps({"history": row, "n": QUERY["n"]}) + "\n" for row in rows))
        with server(before, bundle) as first, server(after, bundle) as second:
            for url, _ in (first, second):
                RunningLoad(f"{url}/v1/recommend", bodies, 1.0, CONNECTIONS).result()
            for number in range(repeats):
                for name, (url, process) in list(zip(spent, (first, second), strict=True))[
                    :: 1 if number % 2 == 0 else -1
                ]:
                    worked = cpu_seconds(process.pid)
                    load = RunningLoad(f"{url}/v1/recommend", bodies, LOAD_SECONDS, CONNECTIONS).result()
                    if load.failures:
                        raise SystemExit(f"{load.failures} requests failed: {load.failed}")
                    spent[name].append(1e6 * (cpu_seconds(process.pid) - worked) / load.requests)
    return {"request over HTTP": spent}


def cpu_seconds(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def server(source: Path, bundle: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`pathdex serve` of a source tree; yields its address and its process."""
    command = [sys.executable, "-c", "from pathdex.cli import main; main()", "serve", str(bundle), "--port", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment(source)
    )
    try:
        assert process.stdout is not None
        found = re.search(r"http://[\d.:]+", process.stdout.readline())
        if found is None:
            raise SystemExit(f"the server of {source} did not start; run pathdex serve by hand to see why")
        yield found[0], process
    finally:
        process.terminate()
        process.wait()


def steps(before: Path, after: Path, name: str, repeats: int, folder: Path) -> dict[str, list[float]]:
    """Ratios of the CPU time of encoder and structure steps on a data set, one per round."""
    if name == "books":
        file, reading, parameters = folder / "books.parquet", {}, SAME_STEPS | BOOKS_PARAMETERS
        generate(file, **{key: round(value * BOOKS_SHARE) for key, value in BOOKS.items()}, seed=0)
    else:
        file, reading, parameters = (data_folder() / SETS[name].file).resolve(), SETS[name].reading, SAME_STEPS
    ratios: dict[str, list[float]] = {"encoder": [], "structure": []}
    with versions(before, after) as pair:
        for one in pair:
            one("prepare", file=str(file), reading=reading, parameters=parameters, warm=WARM_ROUNDS)
        for number in range(repeats):
            for phase, found in ratios.items():
                order = pair if number % 2 == 0 else pair[::-1]
                seconds = {one: one("steps", phase=phase, number=STEPS)["seconds"] for one in order}
                found.append(seconds[pair[1]] / seconds[pair[0]])
    return {f"{phase} step, {name}": found for phase, found in ratios.items()}


def trainings(before: Path, after: Path, names: list[str]) -> list[list[str]]:
    """Seconds and F of both versions on each data set, trained at the same time of day, one after the other."""
    rows = []
    with versions(before, after) as pair:
        for name in names:
            data = SETS[name]
            arguments = {
                "file": str((data_folder() / data.file).resolve()),
                "reading": data.reading,
                "held_out": data.held_out,
                "n": data.n,
                "candidates": 10 * data.n,
            }
            first, second = (one("train", **arguments) for one in pair)
            same = all(first[key] == second[key] for key in ("deep-retrieval", "brute-force"))
            rows.append(
                [
                    name,
                    *(f"{100 * one['deep-retrieval']:.4f}" for one in (first, second)),
                    *(f"{100 * one['brute-force']:.4f}" for one in (first, second)),
                    "yes" if same else "no",
                    f"{second['seconds'] / first['seconds']:.3f}",
                ]
            )
    return rows


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks versions", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--before", type=Path, required=True, help="the source folder of the other version")
    parser.add_argument("--after", type=Path, default=HERE.parent / "src", help="default: this version")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"comma-separated: {', '.join(PARTS)}")
    parser.add_argument("--sets", default=",".join(SETS), help="data sets to train on")
    parser.add_argument("--repeats", type=int, default=11, help="rounds of queries and of load")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    given = parser.parse_args(arguments)
    console, report = Console(width=120), {}
    parts = given.parts.split(",")
    if {"query", "http"} & set(parts):
        with tempfile.TemporaryDirectory(prefix="pathdex-versions-") as name:
            bundle = Path(name) / "bundle"
            save_synthetic(bundle, **SIZES)
            ratios: dict[str, list[float]] = {}
            if "query" in parts:
                ratios |= queries(given.before, given.after, bundle, given.repeats)
            if "http" in parts:
                ratios |= requests(given.before, given.after, bundle, given.repeats)
        console.print(cpu_table(ratios, f"{SIZES['items']:,} items, one thread"))
        report["cpu_microseconds"] = ratios
    if "batches" in parts:
        report["batches"] = large_batches(given.before, given.after, given.repeats)
        title = f"{LARGE['items']:,} items, batches of {LARGE_QUERY['queries']}, one thread"
        console.print(cpu_table(report["batches"], title))
    if "steps" in parts:
        with tempfile.TemporaryDirectory(prefix="pathdex-versions-") as name:
            taken: dict[str, list[float]] = {}
            for one in given.sets.split(","):
                taken |= steps(given.before, given.after, one, given.repeats, Path(name))
        table = Table("CPU time of", "after / before, median", "range", "speed-up", title="one thread")
        for part, values in taken.items():
            middle = float(np.median(values))
            table.add_row(part, f"{middle:.3f}", f"{min(values):.3f} to {max(values):.3f}", f"{1 / middle:.2f}")
        console.print(table)
        report["steps"] = taken
    if "train" in parts:
        rows = trainings(given.before, given.after, given.sets.split(","))
        head = ["set", "F before", "F after", "brute force before", "after", "equal", "seconds after / before"]
        table = Table(*head, title="Training with the defaults, seed 0, one thread; F in %")
        for row in rows:
            table.add_row(*row)
        console.print(table)
        report["training"] = [dict(zip(head, row, strict=True)) for row in rows]
    if given.out is not None:
        given.out.write_text(json.dumps(report, indent=1) + "\n")
