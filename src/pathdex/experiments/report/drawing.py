"""What all figures share: lines that differ in marker and dash as well as colour, whiskers, plain axes, SVG."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pathdex.evaluation.visual import INK, LINE, MUTED, method_colour, palette
from pathdex.experiments.report.document import Figure
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.registry import ESTIMATORS

COLOURS = [INK, *palette()["series"], "#9A9A9A"]
MARKS = "os^DvPX<>*"
TITLE = 9.5
"""Points of the title of one of several axes."""
DASHES = ("-", "--", "-.", ":")


@dataclass(frozen=True)
class Chart:
    """A drawn figure, and the sentences under it."""

    figure: Any
    caption: str

    def part(self, name: str) -> Figure:
        """The chart as a part of a report."""
        return Figure(name, to_svg(self.figure), self.caption)


def sentences(*parts: str) -> str:
    """A caption of the sentences that are not empty."""
    return " ".join(part for part in parts if part)


def line_style(line: int | str) -> dict[str, Any]:
    """Colour, marker and dash of a line by its number or its method; the colour of a method is the same everywhere."""
    names = list(ESTIMATORS)
    place = (names.index(line) if line in names else len(names)) if isinstance(line, str) else line % len(MARKS)
    colour = method_colour(line) if isinstance(line, str) else COLOURS[place % len(COLOURS)]
    mark, dash = MARKS[place % len(MARKS)], DASHES[place % len(DASHES)]
    return {"color": colour, "marker": mark, "linestyle": dash, "markersize": 5}


def seed_style(number: int) -> dict[str, Any]:
    """A line of Deep Retrieval with one seed: its colour, with a marker and a dash of the seed."""
    return {**line_style(number), "color": method_colour(DeepRetrieval.name), "markersize": 4, "linewidth": 1.3}


def whiskers(
    axes: Any,
    xs: Sequence[float],
    ys: Sequence[float],
    halves: Sequence[float | None],
    colour: str,
    *,
    across: bool = False,
) -> None:
    """A thin whisker at each point whose interval is known, along y or, with `across`, along x."""
    from matplotlib.patheffects import withStroke

    known = [(x, y, half) for x, y, half in zip(xs, ys, halves, strict=True) if half is not None]
    if known:
        zorder = 2.5 if across else 1.5
        x, y, half = zip(*known, strict=True)
        errors = {"xerr" if across else "yerr": half}
        drawn = axes.errorbar(x, y, **errors, fmt="none", ecolor=colour, elinewidth=0.9, capsize=2, zorder=zorder)
        for one in (*drawn[1], *drawn[2]):
            # A light rim, so that a whisker is seen on a dark bar.
            one.set_path_effects([withStroke(linewidth=2.0, foreground="#FFFFFF")] if across else [])


def band(axes: Any, xs: Sequence[float], ys: Sequence[float], halves: Sequence[float | None], colour: str) -> None:
    """A light band along a line, where its intervals are known: for lines with more points than whiskers have room."""
    known = [(x, y - half, y + half) for x, y, half in zip(xs, ys, halves, strict=True) if half is not None]
    if known:
        axes.fill_between(*zip(*known, strict=True), color=colour, alpha=0.14, linewidth=0)


def plain_log(axis: Any, subs: Sequence[float] = (1.0, 2.0, 5.0)) -> None:
    """Label a logarithmic axis with 0.1, 1, 10 instead of powers."""
    from matplotlib.ticker import LogLocator

    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")


def values_as_ticks(axis: Any, values: Sequence[float], most: int = 6) -> None:
    """The values themselves as ticks, some left out where they would be too many."""
    step = -(-len(values) // most)
    axis.set_ticks(values[::step], [_plain_number(value) for value in values[::step]])
    axis.set_minor_locator(_no_ticks())


def _plain_number(value: float) -> str:
    """1,000, 0.31 and 3.1e-6."""
    if value >= 1:
        return f"{value:,}"
    return f"{value:.2g}" if value >= 1e-4 else np.format_float_scientific(value, 1, trim="-", exp_digits=1)


def _no_ticks() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def subplots(height: float, rows: int = 1, columns: int = 1, *, width: float = 9.5, **sharing: Any) -> Any:
    """A figure and its axes."""
    from matplotlib.figure import Figure as Canvas

    figure: Any = Canvas(figsize=(width, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.06)
    axes = figure.subplots(rows, columns, **sharing)
    for one in figure.axes:
        _plain(one)
    return figure, axes


def _plain(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(LINE)
    axes.tick_params(which="both", color=LINE, labelcolor=MUTED, labelsize=9, length=3)
    axes.tick_params(which="minor", length=2)
    for axis in (axes.xaxis, axes.yaxis):
        axis.label.set(color=INK, fontsize=9.5)
    axes.title.set(color=INK, fontsize=10.5)


def bar_rows(axes: Any, places: Sequence[float], names: Sequence[str]) -> None:
    """Name the rows of a chart; there is no axis line beside names."""
    axes.set_yticks(places, names)
    axes.tick_params(axis="y", length=0, labelcolor=INK, labelsize=9.5)
    axes.spines["left"].set_visible(False)


def to_svg(figure: Any) -> str:
    """The figure as SVG text; the same data gives the same text."""
    from matplotlib import rc_context

    stream = io.StringIO()
    with rc_context({"svg.hashsalt": "pathdex"}):
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()
