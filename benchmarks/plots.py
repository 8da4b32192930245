"""Plots that stay readable in grey print: colour never carries the meaning alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pathdex.evaluation.visual import INK, MUTED, palette

STYLES = (("o", "-"), ("s", "--"), ("^", "-."), ("D", ":"), ("v", "-"), ("P", "--"), ("X", "-."), ("*", ":"))
COLOURS = (*palette()["series"][:6], MUTED, INK)


def new_axes(title: str, x: str, y: str) -> tuple[Any, Any]:
    """A figure and its axes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7.0, 4.5))
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(True, which="both", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def style(number: int) -> dict[str, Any]:
    """Marker, line and colour of curve `number`."""
    marker, line = STYLES[number % len(STYLES)]
    return {"marker": marker, "linestyle": line, "color": COLOURS[number % len(COLOURS)], "markersize": 5}


def write(figure: Any, file: Path) -> None:
    from matplotlib import pyplot

    figure.savefig(file, dpi=150, bbox_inches="tight")
    pyplot.close(figure)


def curves(
    file: Path, lines: Mapping[str, tuple[Sequence[float], Sequence[float]]], title: str, x: str, y: str
) -> None:
    """Curves on two logarithmic axes."""
    figure, axes = new_axes(title, x, y)
    for number, (name, (xs, ys)) in enumerate(lines.items()):
        axes.loglog(xs, ys, label=name, **style(number))
    axes.legend(frameon=False)
    write(figure, file)


def lines(
    file: Path, curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], title: str, x: str, y: str
) -> None:
    """Curves on two linear axes, the second one from 0."""
    figure, axes = new_axes(title, x, y)
    for number, (name, (xs, ys)) in enumerate(curves.items()):
        axes.plot(xs, ys, label=name, **style(number))
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    write(figure, file)


def bars(file: Path, groups: Sequence[str], series: Mapping[str, Sequence[float]], y: str, title: str) -> None:
    """Groups of bars with their values above them."""
    figure, axes = new_axes(title, "", y)
    width = 0.8 / len(series)
    for number, (name, values) in enumerate(series.items()):
        places = [group + (number - (len(series) - 1) / 2) * width for group in range(len(groups))]
        drawn = axes.bar(
            places,
            values,
            width,
            label=name,
            color=COLOURS[number],
            edgecolor="black",
            linewidth=0.6,
            hatch="" if number == 0 else "//",
        )
        axes.bar_label(drawn, fmt="%.0f", fontsize=8)
    axes.set_xticks(range(len(groups)), groups)
    axes.legend(frameon=False)
    write(figure, file)
