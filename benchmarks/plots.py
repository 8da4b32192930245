"""Plots in the visual language of the package: direct labels, one colour per method, a sentence under each.

`python -m benchmarks plots` draws all of them again from the stored results.
"""

from __future__ import annotations

import argparse
import importlib
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.report import RESULTS, Report
from pathdex.evaluation.labels import label_ends, label_lines
from pathdex.evaluation.visual import INK, MUTED, arm_colour, method_colour, palette, plain
from pathdex.experiments.report.drawing import plain_log, whiskers

METHODS = {"Deep Retrieval": "deep-retrieval", "brute force": "brute-force"}
FAMILIES = ("hnswlib", "faiss HNSW", "faiss IVF-Flat", "faiss IVF-PQ", "usearch", "scann")
"""Indexes of other libraries; each has its own colour in every plot."""
MARKS, DASHES = "osD^vPX*", ("-", "--", "-.", ":")
COLUMNS = 105
"""Characters of a line under a plot."""


class Curve(NamedTuple):
    """A named line, and half of each of its intervals."""

    xs: Sequence[float]
    ys: Sequence[float]
    halves: Sequence[float | None] = ()


def new_axes(title: str, x: str, y: str, caption: str = "", *, rows: int = 1, height: float = 4.4) -> tuple[Any, Any]:
    """A figure and its axes; with several rows, one above the other with the same x."""
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(7.4, height), layout="constrained", dpi=150)
    axes = figure.subplots(rows, 1, sharex=True)
    for one in [axes] if rows == 1 else axes:
        plain(one, grid="y")
    first, last = (axes, axes) if rows == 1 else (axes[0], axes[-1])
    plain(first, title)
    last.set_xlabel(x, color=INK, fontsize=9.5)
    first.set_ylabel(y, color=INK, fontsize=9.5)
    if caption:
        words = textwrap.fill(caption, COLUMNS)
        figure.supxlabel(words, x=0.01, ha="left", fontsize=8.5, color=MUTED)
    return figure, axes


def style(name: str) -> dict[str, Any]:
    """Marker, dash and colour of a method, an arm or an index, the same in every plot."""
    known = [*METHODS, *FAMILIES, *palette()["arms"]]
    place = known.index(name) if name in known else len(known)
    if name in FAMILIES:
        # The first colour of the series is that of Deep Retrieval.
        colour = palette()["series"][1 + FAMILIES.index(name)]
    else:
        colour = method_colour(METHODS[name]) if name in METHODS else arm_colour(name)
    return {"marker": MARKS[place % len(MARKS)], "linestyle": DASHES[place % 4], "color": colour, "markersize": 5}


def write(figure: Any, file: Path) -> None:
    figure.savefig(file)


def curves(file: Path, named: Mapping[str, Curve], title: str, x: str, y: str, caption: str = "") -> None:
    """Curves on two logarithmic axes."""
    figure, axes = new_axes(title, x, y, caption)
    axes.set(xscale="log", yscale="log")
    for name, curve in named.items():
        axes.plot(curve.xs, curve.ys, label=name, linewidth=1.6, **style(name.partition(",")[0]))
    for axis in (axes.xaxis, axes.yaxis):
        plain_log(axis, (1.0,))
        axis.set_major_formatter("{x:,.0f}")
    label_lines(axes)
    write(figure, file)


def lines(file: Path, named: Mapping[str, Curve], title: str, x: str, y: str, caption: str = "") -> None:
    """Curves on two linear axes, the second one from 0, with their intervals."""
    figure, axes = new_axes(title, x, y, caption)
    for number, (name, curve) in enumerate(named.items()):
        own = style(name)
        # Beside each other, so that whiskers of close lines are seen.
        xs = [one + 0.06 * (number - (len(named) - 1) / 2) for one in curve.xs]
        axes.plot(xs, curve.ys, label=name, linewidth=1.6, **own)
        if curve.halves:
            whiskers(axes, xs, curve.ys, curve.halves, own["color"])
    axes.set_ylim(bottom=0)
    axes.xaxis.get_major_locator().set_params(integer=True)
    label_ends(axes)
    write(figure, file)


def bars(
    file: Path,
    values: Mapping[str, tuple[float, tuple[float, float], float]],
    x: str,
    title: str,
    caption: str,
) -> None:
    """A bar per name and its value, the longest first, with its lowest and highest round, and a mark at its limit."""
    ordered = sorted(values.items(), key=lambda one: -one[1][0])
    figure, axes = new_axes(title, x, "", caption, height=0.5 * len(ordered) + 1.5)
    axes.grid(visible=False)
    places = range(len(ordered), 0, -1)
    axes.barh(places, [value for _, (value, *_) in ordered], height=0.6, color=method_colour("deep-retrieval"))
    for place, (_, (_, (low, high), limit)) in zip(places, ordered, strict=True):
        whiskers(axes, [(low + high) / 2], [place], [(high - low) / 2], INK, across=True)
        axes.plot([limit, limit], [place - 0.38, place + 0.38], color=INK, linewidth=2.2)
    axes.set_yticks(places, [f"{name}, {value:.0f}" for name, (value, *_) in ordered])
    axes.tick_params(axis="y", labelcolor=INK)
    axes.spines["left"].set_visible(False)
    write(figure, file)


REDRAWN = {
    "ann": "benchmarks.ann_curves",
    "query": "benchmarks.query_plots",
    "http": "benchmarks.http_soak",
    "stream": "benchmarks.stream",
    "stream-soak": "benchmarks.stream_soak",
}
"""Stored results with plots, and the module whose `redraw(parts, report)` makes them."""


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks plots", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results [default: benchmarks/results]")
    folder: Path = parser.parse_args(arguments).out
    for name, module in REDRAWN.items():
        if (folder / f"{name}.json").exists():
            redraw: Callable[[Report], None] = importlib.import_module(module).redraw
            redraw(Report(name, folder))
