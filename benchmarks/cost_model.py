"""What a catalogue costs: bytes, CPU seconds and network by its size, from constants measured at 10^6 items.

    python -m benchmarks cost-model                 # the tables of docs/scale.md from the stored measurements
    python -m benchmarks cost-model --measure       # measure again first: 10 minutes, 12 GB

Predictions are checked against the measurements at other sizes.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.cost_measure import BATCH, in_process, measure_m_step
from benchmarks.machine import describe_machine
from benchmarks.report import RESULTS

FILE = RESULTS / "cost-model.json"
REFERENCE = "1000000"
"""The catalogue size whose measurements are the constants."""
SMALL = "100000"
"""The size at which scores are timed: each item costs the same."""
GB, DAY = 1e9, 86_400
PATH_SHARE = 0.12
"""Paths in use per item at J = 3 and 25 items per path."""


@dataclass(frozen=True)
class Shape:
    """The sizes of a model, named as in the paper; d is the dimension of an item vector."""

    V: int
    d: int = 64
    J: int = 3
    S: int = 50

    @property
    def row_bytes(self) -> int:
        """An item's vector and bias."""
        return 4 * (self.d + 1)

    @property
    def optimiser_bytes(self) -> int:
        """Item rows with both moments of Adam."""
        return 3 * self.V * self.row_bytes

    @property
    def score_table_bytes(self) -> int:
        """A path and a score per candidate."""
        return 12 * self.S * self.V

    @property
    def bundle_bytes(self) -> int:
        """Per item: row, paths, count, id, two slots, and J postings with a share; per path: code and offset."""
        return round(self.V * (self.row_bytes + 8 * self.J + 8 + 8 + 8 + 8 * self.J + 16 * PATH_SHARE))

    @property
    def m_step_bytes(self) -> int:
        """What an M-step adds to the score table: paths thrice, order, counts, |c|."""
        return self.V * (3 * 8 * self.J + 8 + 4 + 4)


def training_gb(shape: Shape) -> float:
    """GiB of an encoder phase that grow with V: rows, optimiser, paths, counts, codes of the score table."""
    return (shape.optimiser_bytes + shape.V * (8 * shape.J + 8 + 8 * shape.S)) / 2**30


@dataclass(frozen=True)
class Costs:
    """CPU seconds on one core of the machine that measured them."""

    encoder: float
    """A sample of an encoder step."""
    structure: float
    """A sample of a structure step, with its user vector."""
    score: float
    """A sample whose paths are scored for an M-step."""
    m_step: float
    """An item of an M-step at 10^6 items."""
    m_step_growth: float
    """The relative growth of that for ten times the items."""
    out_of_core: float
    """An item of an M-step from disk."""
    query: float
    event: float
    """An event of a stream: training, moving items, publishing, and the threads beside it."""
    open_item: float
    """An item when a live model opens."""
    rows: float
    """Item rows that an encoder step of `BATCH` samples touches."""
    process_gb: float
    """Memory of a training besides its arrays: code, buffers of a step."""
    dense: float
    """Parameters that every worker has."""

    @classmethod
    def measured(cls, figures: dict[str, Any]) -> Costs:
        training, m_step = figures["training"][REFERENCE], figures["m_step"]
        per_item = {int(items): seconds / int(items) for items, seconds in m_step.items()}
        growth = per_item[10**6] / per_item[10**5] - 1
        disk = figures["out_of_core"]
        serving, live, stream = (
            json.loads((RESULTS / f"{one}.json").read_text()) for one in ("query", "live-delta", "stream-throughput")
        )
        return cls(
            encoder=training["encoder_step"] / BATCH,
            structure=training["structure_step"] / BATCH + training["user_vector"],
            score=figures["training"][SMALL]["score"],
            m_step=per_item[10**6],
            m_step_growth=growth,
            out_of_core=disk["cpu"] / disk["items"],
            query=serving["growth"]["sizes"][REFERENCE]["query"]["cpu_microseconds"] / 1e6,
            event=1 / stream["throughput"]["sources"]["file"]["events_per_cpu_second"],
            open_item=live[REFERENCE]["open_seconds"] / int(REFERENCE),
            rows=training["rows_touched"],
            process_gb=training["encoder_gb"] - training_gb(Shape(training["items"])),
            dense=training["dense_parameters"],
        )

    def m_step_seconds(self, items: int) -> float:
        """CPU seconds of an M-step in memory; caches serve a smaller share of a larger catalogue."""
        return items * self.m_step * (1 + self.m_step_growth * math.log10(items / 1e6))

    def step_network_bytes(self, shape: Shape, workers: int) -> float:
        """Bytes that one worker sends in an encoder step of `BATCH` samples of its own."""
        return sent_per_step(self.rows, shape.row_bytes, self.dense, workers)


def sent_per_step(rows: float, row_bytes: int, dense: float, workers: int) -> float:
    """Bytes that one worker sends in a step which takes so many item rows.

    Rows that live elsewhere: their numbers out, rows back, gradients out. Dense gradients: a ring all-reduce.
    """
    elsewhere = (workers - 1) / workers
    return elsewhere * (rows * (8 + 2 * row_bytes) + 2 * 4 * dense)


def checks(figures: dict[str, Any], costs: Costs) -> list[tuple[str, int, float, float, str]]:
    """Predictions beside measurements at sizes that did not give the constants: what, items, both, unit."""
    rows: list[tuple[str, int, float, float, str]] = []
    for name, one in sorted(figures["training"].items(), key=lambda pair: int(pair[0])):
        shape = Shape(one["items"])
        if name != REFERENCE:
            held = training_gb(shape) + costs.process_gb
            rows.append(("encoder phase, memory, GiB", shape.V, held, one["encoder_gb"], ".2f"))
            rows.append(("encoder step, ms", shape.V, 1e3 * BATCH * costs.encoder, 1e3 * one["encoder_step"], ".1f"))
            predicted = 1e3 * BATCH * costs.structure
            measured = 1e3 * (one["structure_step"] + BATCH * one["user_vector"])
            rows.append(("structure step with user vectors, ms", shape.V, predicted, measured, ".1f"))
    for name, seconds in figures["m_step"].items():
        if int(name) > 10**6:
            rows.append(("M-step, s", int(name), costs.m_step_seconds(int(name)), seconds, ".1f"))
    disk = figures["out_of_core_large"]
    rows.append(("M-step from disk, s", disk["items"], costs.out_of_core * disk["items"], disk["cpu"], ".0f"))
    serving = json.loads((RESULTS / "query.json").read_text())
    for name, size in serving["growth"]["sizes"].items():
        if name != REFERENCE:
            rows.append(("query, us", int(name), 1e6 * costs.query, size["query"]["cpu_microseconds"], ".0f"))
    opening = serving["opening"]
    rows.append(
        ("bundle, GB", opening["items"], Shape(opening["items"]).bundle_bytes / GB, opening["bytes"] / GB, ".3f")
    )
    live = json.loads((RESULTS / "live-delta.json").read_text())
    for name, one in live.items():
        if name not in (REFERENCE, "machine"):
            predicted = costs.open_item * one["items"]
            rows.append(("opening a live model, s", one["items"], predicted, one["open_seconds"], ".2f"))
    return rows


def plan(costs: Costs, shape: Shape, events: float, *, workers: int = 16, cores: int = 16) -> list[tuple[str, str]]:
    """What a catalogue with so many events a day needs on `workers` machines of `cores` cores."""
    passes = events * (costs.encoder + costs.structure)
    scored = 8 * shape.V * costs.score
    table = shape.score_table_bytes + shape.m_step_bytes
    m_step = costs.m_step_seconds(shape.V)
    sent = costs.step_network_bytes(shape, workers)
    step = BATCH * costs.encoder
    return [
        ("item rows and optimiser", f"{shape.optimiser_bytes / GB:,.0f} GB"),
        ("score table and M-step", f"{table / GB:,.0f} GB"),
        (f"both, per machine of {workers}", f"{(shape.optimiser_bytes + table) / workers / GB:,.0f} GB"),
        ("bundle", f"{shape.bundle_bytes / GB:,.0f} GB"),
        ("one pass over a day's events, encoder and structure", f"{passes / 3600:,.1f} core-hours"),
        ("the same on all cores, without waiting", f"{passes / 60 / workers / cores:,.1f} min"),
        ("scores of 8 samples per item", f"{scored / 3600:,.1f} core-hours"),
        ("M-step in memory, one core", f"{m_step / 60:,.1f} min"),
        (f"M-step, {cores} cores at half efficiency", f"{m_step / 60 / cores * 2:,.1f} min"),
        ("M-step from disk, one core, CPU only", f"{costs.out_of_core * shape.V / 60:,.1f} min"),
        ("disk read by an M-step from disk", f"{(2 * 12 + 4 * 8) * shape.S * shape.V / GB:,.0f} GB"),
        (f"network, one encoder step of {BATCH:,} samples, sent per worker", f"{sent / 1e6:,.2f} MB"),
        ("network while a core trains without waiting", f"{8 * sent / step / 1e9:,.2f} Gbit/s per core"),
        ("stream, cores for all events at an even rate", f"{events / DAY * costs.event:,.1f}"),
        ("stream, cores at three times that rate", f"{3 * events / DAY * costs.event:,.1f}"),
        ("events per second of one trainer process", f"{1 / costs.event:,.0f}"),
        ("queries per second and core", f"{1 / costs.query:,.0f}"),
        ("opening a live model", f"{costs.open_item * shape.V:,.0f} s"),
    ]


def constants(costs: Costs) -> list[tuple[str, str]]:
    return [
        (f"encoder, one sample (step of {BATCH:,})", f"{1e6 * costs.encoder:.2f} us"),
        ("structure, one sample with its user vector", f"{1e6 * costs.structure:.2f} us"),
        ("scores, one sample, beam of 20", f"{1e6 * costs.score:.1f} us"),
        ("M-step, one item, 10^6 items", f"{1e6 * costs.m_step:.2f} us"),
        ("M-step, growth for ten times the items", f"{costs.m_step_growth:.0%}"),
        ("M-step from disk, one item", f"{1e6 * costs.out_of_core:.2f} us"),
        ("query", f"{1e6 * costs.query:.0f} us"),
        ("stream, one event", f"{1e6 * costs.event:.0f} us"),
        ("opening a live model, one item", f"{1e6 * costs.open_item:.2f} us"),
        (f"item rows touched by an encoder step of {BATCH:,}", f"{costs.rows:,.0f}"),
        ("dense parameters", f"{costs.dense:,.0f}"),
    ]


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def tables(figures: dict[str, Any]) -> dict[str, str]:
    """The tables of docs/scale.md by name."""
    costs = Costs.measured(figures)
    checked = [
        (what, f"{items:,}", f"{predicted:{unit}}", f"{measured:{unit}}", f"{predicted / measured - 1:+.0%}")
        for what, items, predicted, measured, unit in checks(figures, costs)
    ]
    return {
        "constants": markdown(("CPU of one core", "measured"), constants(costs)),
        "checks": markdown(("what", "items", "predicted", "measured", "error"), checked),
        "plan": markdown(
            ("300 million items, a billion events a day", "predicted"), plan(costs, Shape(300 * 10**6), 1e9)
        ),
    }


def measure(previous: dict[str, Any], items: Sequence[int], memory: float) -> dict[str, Any]:
    """Measure training and the M-step at these sizes; what is not measured stays."""
    training = dict(previous.get("training", {}))
    for size in items:
        if (one := in_process(size, memory, scores=str(size) == SMALL)) is not None:
            training[str(size)] = one
    m_step = measure_m_step([size for size in items if size <= 10**6] + [10**7], repeats=3)
    return {**previous, "machine": describe_machine(), "training": training, "m_step": m_step}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="measure training and the M-step again")
    parser.add_argument("--items", type=int, action="append", help="catalogue size to measure; repeat for several")
    parser.add_argument("--memory", type=float, default=12.0, help="GB that a measurement may use")
    parser.add_argument("--file", type=Path, default=FILE, help="the measurements")
    given = parser.parse_args(arguments)
    figures: dict[str, Any] = json.loads(given.file.read_text()) if given.file.exists() else {}
    if given.measure:
        figures = measure(figures, given.items or (10**5, 10**6, 3 * 10**6), given.memory)
        given.file.write_text(json.dumps(figures, indent=1) + "\n")
    for name, text in tables(figures).items():
        print(f"{name}\n\n{text}\n")
