"""`python -m benchmarks` runs the training benchmarks; `python -m benchmarks NAME ...` runs one with its options.

`python -m benchmarks serving ...` runs all serving benchmarks with the same options.
"""

from __future__ import annotations

import importlib
import os
import sys

TRAINING = {
    "accuracy": "benchmarks.accuracy",
    "robustness": "benchmarks.robustness",
    "e-step": "benchmarks.e_step",
    "m-step": "benchmarks.m_step",
    "scale": "benchmarks.scale",
}
SERVING = {"query": "benchmarks.query", "ann": "benchmarks.ann", "http": "benchmarks.http"}
NAMES = {
    **TRAINING,
    **SERVING,
    "cost-model": "benchmarks.cost_model",
    "shards": "benchmarks.shards",
    "live-delta": "benchmarks.live_delta",
    "explorer": "benchmarks.explorer",
    "verification": "benchmarks.verification",
    "versions": "benchmarks.versions",
    "peers": "benchmarks.peers",
    "warm-start": "benchmarks.warm_start",
    "sample-order": "benchmarks.sample_order",
    "prepare": "benchmarks.prepare",
    "stream": "benchmarks.stream",
    "stream-freshness": "benchmarks.stream_freshness",
    "stream-throughput": "benchmarks.stream_throughput",
    "stream-faults": "benchmarks.stream_faults",
    "stream-soak": "benchmarks.stream_soak",
    "stream-cold-start": "benchmarks.stream_cold_start",
    "distributed": "benchmarks.distributed",
    "plots": "benchmarks.plots",
}
GROUPS = {"serving": SERVING}


def main(arguments: list[str]) -> None:
    chosen = arguments[0] if arguments else None
    if chosen is not None and chosen not in NAMES and chosen not in GROUPS:
        raise SystemExit(f"{chosen!r} is not a benchmark; choose one of {', '.join([*NAMES, *GROUPS])}")
    # Threads that spin while waiting distort the times on a shared machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")
    names = TRAINING if chosen is None else GROUPS.get(chosen, [chosen])
    for name in names:
        print(f"== {name}", flush=True)
        importlib.import_module(NAMES[name]).main(arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
