"""What all figures share: lines that differ in marker and dash as well as colour, plain axes, SVG."""

from __future__ import annotations

import io
from typing import Any

from pathdex.evaluation.visual import INK, MUTED, method_colour, palette
from pathdex.recommenders.registry import ESTIMATORS

COLOURS = [INK, *palette()["series"], "#9A9A9A"]
MARKS = "os^DvPX<>*"
DASHES = ("-", "--", "-.", ":")
LEGEND: dict[str, Any] = {"fontsize": 8.5, "frameon": False}


def line_style(line: int | str) -> dict[str, Any]:
    """Colour, marker and dash of a line by its number or its method; the colour of a method is the same everywhere."""
    place = list(ESTIMATORS).index(line) if isinstance(line, str) else line % len(MARKS)
    colour = method_colour(line) if isinstance(line, str) else COLOURS[place]
    return {"color": colour, "marker": MARKS[place], "linestyle": DASHES[place % 4], "markersize": 5}


def label_lines(axes: Any, gap: float = 0.055) -> None:
    """Name each line at its end, in place of a legend; names that would overlap move apart."""
    low, high = axes.get_ylim()
    ends = [(float(line.get_ydata()[-1]), line) for line in axes.lines if not line.get_label().startswith("_")]
    least = low
    for y, line in sorted(ends, key=lambda end: end[0]):
        place = max(y, least)
        least = place + gap * (high - low)
        offset = {"xytext": (1.02, (place - low) / (high - low)), "textcoords": "axes fraction", "va": "center"}
        axes.annotate(line.get_label(), (line.get_xdata()[-1], y), **offset, fontsize=8.5, color=line.get_color())


def plain_log(axis: Any) -> None:
    """Label a logarithmic axis with 0.1, 1, 10 instead of powers."""
    from matplotlib.ticker import LogLocator

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")


def subplots(height: float, rows: int = 1, columns: int = 1, *, width: float = 9.5, **sharing: Any) -> Any:
    """A figure and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, **sharing)


def to_svg(figure: Any) -> str:
    """The figure as SVG text; the same data gives the same text."""
    from matplotlib import rc_context

    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=MUTED)
        axes.xaxis.label.set_color(INK)
        axes.yaxis.label.set_color(INK)
    stream = io.StringIO()
    with rc_context({"svg.hashsalt": "pathdex"}):
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()
