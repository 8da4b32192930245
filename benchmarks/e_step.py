"""A profile of the E-step: one gradient step on the structure model.

    python -m benchmarks e-step --nodes 45

The step is that of training, on random user vectors and paths. Its rate of multiply-adds is compared with that of one
large matrix product, and torch's profiler divides the time between products, element-wise work, the optimiser and
Python.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from benchmarks.machine import describe_machine
from pathdex.config import Config
from pathdex.model.network import Network
from pathdex.training.e_step import StructureStep
from pathdex.training.malloc import keep_freed_memory

PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::linear")
STEPS = 20
BATCH = 4096
"""Interactions per step."""


def run(nodes: int, repeats: int) -> dict[str, Any]:
    keep_freed_memory()
    config = Config(num_nodes=nodes)
    rows = []
    for threads in sorted({1, torch.get_num_threads()}):
        torch.set_num_threads(threads)
        step, users, paths = _step(config)
        for _ in range(3):
            step(users, paths, np.random.default_rng(0))
        seconds, peaks = [], []
        for _ in range(repeats):  # Alternating, so that other load affects both.
            seconds.append(_clock(partial(step, users, paths), STEPS))
            peaks.append(_matrix_rate())
        rate = multiply_adds(config) / np.array(seconds)
        rows.append(
            {
                "threads": threads,
                "step_seconds": seconds,
                "multiply_adds_per_second": rate.tolist(),
                "peak_multiply_adds_per_second": peaks,
                "share_of_peak": (rate / np.array(peaks)).tolist(),
                "profile": _profile(step, users, paths),
            }
        )
    return {"machine": describe_machine(), "config": config.to_dict(), "rows": rows}


def multiply_adds(config: Config) -> float:
    """Multiply-adds of the dense products of one step, if no paths share a prefix."""
    assert config.num_nodes is not None
    width, later = config.structure_hidden, config.depth - 1
    per_sample = 2 * config.embedding_dim * config.depth * width  # W_x x of all layers, and the gradient of W_x
    per_sample += width * config.num_nodes * (1 + later * config.paths_per_item)  # the layers' outputs
    tables = config.num_nodes * config.node_dim * width * sum(range(1, config.depth))
    return float(BATCH * per_sample + 3 * tables)


def _step(config: Config) -> tuple[StructureStep, Tensor, Tensor]:
    assert config.num_nodes is not None
    torch.manual_seed(0)
    users = torch.randn(BATCH, config.embedding_dim)
    paths = torch.randint(config.num_nodes, (BATCH, config.paths_per_item, config.depth))
    return StructureStep(Network(config, 10, config), config), users, paths


def _clock(function: Any, times: int) -> float:
    started = time.perf_counter()
    for _ in range(times):
        function()
    return (time.perf_counter() - started) / times


def _matrix_rate() -> float:
    size = 1024
    first, second = torch.randn(size, size), torch.randn(size, size)
    torch.mm(first, second)
    return float(size**3 / _clock(lambda: torch.mm(first, second), 10))


def _profile(step: StructureStep, users: Tensor, paths: Tensor) -> dict[str, float]:
    """Shares of the wall time of a step, from torch's profiler."""
    with profile(activities=[ProfilerActivity.CPU]) as found:
        started = time.perf_counter()
        for _ in range(STEPS):
            step(users, paths, np.random.default_rng(0))
        whole = 1e6 * (time.perf_counter() - started)
    spent = {event.key: event.self_cpu_time_total for event in found.key_averages()}
    products = sum(spent.get(name, 0.0) for name in PRODUCTS)
    optimiser = sum(time for name, time in spent.items() if "adam" in name.lower() or "Optimizer" in name)
    inside = sum(time for name, time in spent.items() if name.startswith("aten::"))
    return {
        "products": products / whole,
        "optimiser": optimiser / whole,
        "element-wise": max(0.0, inside - products) / whole,
        "python and the rest": max(0.0, whole - inside - optimiser) / whole,
    }


def _show(report: dict[str, Any]) -> None:
    table = Table("threads", "ms per step", "multiply-adds / s", "of one large product", *report["rows"][0]["profile"])
    for row in report["rows"]:
        shares = [f"{100 * share:.0f}%" for share in row["profile"].values()]
        milliseconds = [1000 * one for one in row["step_seconds"]]
        table.add_row(
            str(row["threads"]),
            f"{np.median(milliseconds):.1f} ({min(milliseconds):.1f} to {max(milliseconds):.1f})",
            f"{np.median(row['multiply_adds_per_second']) / 1e9:.1f} billion",
            f"{np.median(row['share_of_peak']):.2f}",
            *shares,
        )
    Console(width=140).print(table)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks e-step", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--nodes", type=int, default=45, help="K; 45 is what #nowplaying gets by default")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    given = parser.parse_args(arguments)
    report = run(given.nodes, given.repeats)
    _show(report)
    if given.out is not None:
        given.out.write_text(json.dumps(report, indent=1) + "\n")
