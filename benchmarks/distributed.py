"""Training on 1, 2 and 3 workers of this machine: equality, memory, bytes and time in collectives.

The curve is compared step by step, with drawn gradients and without.

Two cores cannot show speed-up; these figures show cost. `--parts lookup` compares the lookup of rows with TorchRec's,
which is not a dependency: pip install --no-deps torchrec==1.8.0 fbgemm-gpu-cpu==1.8.0, and what they import.
TorchRec updates with row-wise Adagrad there, which does less than our Adam.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from typing import Any

from benchmarks.cost_model import Shape, sent_per_step
from benchmarks.report import CACHE, RESULTS, Report

WORKERS = (1, 2, 3)
FULL: dict[str, dict[str, Any]] = {
    "memory": {"items": 2_000_000, "users": 20_000, "batch": 1024, "steps": 20},
    "curve": {"items": 300, "users": 300, "batch": 128},
    "curve-whole-gradients": {"items": 300, "users": 300, "batch": 128, "exact": True},
    "curve-whole-gradients-no-dropout": {
        "items": 300,
        "users": 300,
        "batch": 128,
        "exact": True,
        "parameters": {"dropout": 0.0},
    },
    "curve-bfloat16": {"items": 300, "users": 300, "batch": 1024},
    "lookup": {"items": 200_000, "rows": 4_000, "steps": 60},
    "bundle": {"items": 500_000, "users": 50_000, "sharded": False},
    "bundle-sharded": {"items": 500_000, "users": 50_000, "sharded": True},
}
QUICK: dict[str, dict[str, Any]] = {
    "memory": {"items": 20_000, "users": 500, "batch": 256, "steps": 3},
    "curve": {"items": 100, "users": 60, "batch": 128},
    "curve-whole-gradients": {"items": 100, "users": 60, "batch": 128, "exact": True},
    "curve-whole-gradients-no-dropout": {
        "items": 100,
        "users": 60,
        "batch": 128,
        "exact": True,
        "parameters": {"dropout": 0.0},
    },
    "curve-bfloat16": {"items": 100, "users": 60, "batch": 1024},
    "lookup": {"items": 2_000, "rows": 200, "steps": 5},
    "bundle": {"items": 2_000, "users": 600, "sharded": False},
    "bundle-sharded": {"items": 2_000, "users": 600, "sharded": True},
}
LIMITS = (1e-6, 1e-5, 1e-3)
"""Relative differences of single steps."""
SECONDS = 1200.0


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks distributed", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes; results go to the cache")
    parser.add_argument(
        "--parts", default="memory,curve", help="of memory, curve, lookup, bundle [default: memory,curve]"
    )
    given = parser.parse_args(arguments)
    report = Report("distributed", CACHE if given.quick else RESULTS)
    wanted = given.parts.split(",")
    for part in (part for part in FULL if part.partition("-")[0] in wanted or part in wanted):
        options = (QUICK if given.quick else FULL)[part]
        found = {
            size: run(part.partition("-")[0], size, options)
            for size in WORKERS
            if size > 1 or part not in ("lookup", "bundle-sharded")
        }
        if part == "memory":
            add_predictions(found)
        figures = compared(found) if part.startswith("curve") else {str(size): each for size, each in found.items()}
        report.add(part, {"options": options, "workers": figures})
        print(json.dumps({part: figures}, indent=1), flush=True)


def run(part: str, size: int, options: dict[str, Any]) -> list[dict[str, Any]]:
    """The figures of every worker."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size)] if size > 1 else []
    command = [sys.executable, *launch, "-m", "benchmarks.distributed_worker", part, json.dumps(options)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{size} workers failed:\n{done.stderr[-3000:]}")
    line = next(line for line in done.stdout.splitlines() if line.startswith("[{"))
    found: list[dict[str, Any]] = json.loads(line)
    return found


def add_predictions(found: dict[int, list[dict[str, Any]]]) -> None:
    """What the cost model says that a worker sends, from the rows that its step takes."""
    for size, each in found.items():
        for one in each:
            sent = sent_per_step(one["rows_taken_per_step"], Shape(0).row_bytes, one["dense_parameters"], size)
            one["predicted_kb_sent_per_step"] = sent / 1024


def compared(found: dict[int, list[dict[str, Any]]]) -> dict[str, Any]:
    """How far the curves and the paths of several workers are from those of one process."""
    alone = found[1][0]
    figures: dict[str, Any] = {
        "losses": alone["losses"],
        "steps": len(alone["steps"]),
        "seconds": {size: each[0]["seconds"] for size, each in found.items()},
    }
    for size, each in found.items():
        if size > 1:
            own = each[0]
            steps = differences(own["steps"], alone["steps"])
            rows = [a == b for a, b in zip(own["paths"], alone["paths"], strict=True)]
            figures[f"against_{size}_workers"] = {
                "largest_difference_of_an_epoch": max(differences(own["losses"], alone["losses"])),
                "largest_difference_of_a_step": max(steps),
                "steps_within": {str(limit): steps_within(steps, limit) for limit in LIMITS},
                "share_of_items_with_equal_paths": sum(rows) / len(rows),
            }
    return figures


def differences(losses: list[float], others: list[float]) -> list[float]:
    """Relative differences."""
    return [abs(a / b - 1) for a, b in zip(losses, others, strict=True)]


def steps_within(steps: list[float], limit: float) -> int:
    """How many steps pass before the first that differs by more."""
    return next((number for number, one in enumerate(steps) if one > limit), len(steps))
