"""The time and memory to check the content of a bundle, its checksums, and to open it again from the cache.

`python -m benchmarks verification --items 1000000,10000000`. Ten million items need about 5 GB of temporary disk.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.synthetic import save_synthetic
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.server.model_loader import ModelLoader
from pathdex.storage.bundle import read_bundle
from pathdex.storage.verified import VARIABLE

NODES = {1_000_000: 100, 10_000_000: 150}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks verification", description=__doc__)
    parser.add_argument("--items", default="1000000,10000000", help="comma-separated")
    parser.add_argument("--dim", type=int, default=64)
    given = parser.parse_args(arguments)
    for items in map(int, given.items.split(",")):
        with tempfile.TemporaryDirectory(prefix="pathdex-") as folder:
            os.environ[VARIABLE] = str(Path(folder) / "cache")
            nodes = NODES.get(items, 100)
            path = save_synthetic(Path(folder) / "model", items, path_size=16, num_nodes=nodes, embedding_dim=given.dim)
            size = sum(file.stat().st_size for file in path.iterdir())
            print(f"{items:,} items, {size / 1e9:.2f} GB", flush=True)
            measure("content", lambda path=path: DeepRetrieval.bundle_problems(read_bundle(path, verify=False)))
            measure("checksums", lambda path=path: ModelLoader(path).verify())
            measure("first open", lambda path=path: DeepRetrieval.load(path))
            measure("open again", lambda path=path: DeepRetrieval.load(path))


def measure(name: str, work: Callable[[], object]) -> None:
    """Print the seconds of the processor and of the clock, and the most memory in use besides pages of mapped files."""
    done, peak = threading.Event(), [0]

    def watch() -> None:
        while not done.wait(0.05):
            peak[0] = max(peak[0], _own_memory())

    before, watcher = _own_memory(), threading.Thread(target=watch)
    watcher.start()
    began, used = time.perf_counter(), time.process_time()
    work()
    seconds, used = time.perf_counter() - began, time.process_time() - used
    done.set()
    watcher.join()
    memory = max(0, peak[0] - before) / 1e6
    print(f"  {name:<12}{used:8.2f} s CPU {seconds:8.2f} s {memory:8.0f} MB", flush=True)


def _own_memory() -> int:
    """Resident memory that is not mapped from a file, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) * 1024
