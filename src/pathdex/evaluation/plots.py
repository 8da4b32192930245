"""One plot of an index: the largest paths with their items, items per path, the load of the nodes, and the M-steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pathdex.errors import StorageError
from pathdex.evaluation.labels import label_lines, label_points, lay_out
from pathdex.evaluation.visual import INK, MUTED, PANEL, method_colour, plain, series_colour
from pathdex.index.health import IndexHealth
from pathdex.kernels.types import Ints
from pathdex.storage.atomic import atomic_write
from pathdex.system import PLOTTING

FORMATS = (".png", ".pdf", ".svg")
SHOWN_PATHS = 10
"""Paths that are drawn with their items."""
LONGEST_ITEM, LONGEST_LABEL = 28, 36
"""Characters of an item's title and of a label in a chart."""
MARGIN = 12.0
"""Pixels between columns of words, and beside the last one."""
OWN = method_colour("deep-retrieval")
OFFSET: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": 8.5}


class ShownPath(NamedTuple):
    """A path in the chart: what it is called, how many items it has, and the first of them."""

    nodes: Sequence[int]
    size: int
    label: str | None
    items: Sequence[str]


def m_step_records(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The records of a training log that belong to an M-step."""
    return [dict(record) for record in records if "objective" in record]


def check_plot_file(path: Path) -> None:
    """Raise if matplotlib is missing or the ending of `path` is unknown."""
    PLOTTING.require()
    if path.suffix.lower() not in FORMATS:
        raise StorageError(f"{path}: unknown ending {path.suffix!r}; use {', '.join(FORMATS)}")


def plot_index(
    health: IndexHealth,
    records: Sequence[Mapping[str, Any]],
    path: str | Path,
    *,
    largest: Sequence[ShownPath] = (),
    loads: Sequence[Ints] = (),
) -> Path:
    """Draw an index; the ending of `path` selects PNG, PDF or SVG.

    `largest` are its largest paths with their items, and `loads` the items by node of each layer.
    """
    path = Path(path)
    check_plot_file(path)
    from matplotlib.figure import Figure

    largest = sorted(largest, key=lambda one: -one.size)[:SHOWN_PATHS]
    above = 0.9 + 0.36 * len(largest) if largest else 0.0
    figure: Any = Figure(figsize=(11, 4.4 + above), layout="constrained")
    lower: Any = figure
    if largest:
        upper, lower = figure.subfigures(2, 1, height_ratios=[above, 4.0])
        _draw_largest(upper.subplots(), largest)
    sizes, nodes, steps = lower.subplots(1, 3, width_ratios=[1, 1.15, 1.15])
    _draw_sizes(sizes, health)
    _draw_loads(nodes, health, loads)
    _draw_steps(steps, m_step_records(records))
    figure.suptitle(
        f"{health.num_items:,} items, each on {health.paths_per_item} of {health.used_paths:,} paths "
        f"through {health.depth} layers of {health.num_nodes:,} nodes",
        x=0.01,
        ha="left",
        fontsize=13,
        color=INK,
    )
    with atomic_write(path) as stream:
        figure.savefig(stream, format=path.suffix.lower()[1:], dpi=150)
    return path


def _draw_largest(axes: Any, paths: Sequence[ShownPath]) -> None:
    common = ", what their items have in common," if any(one.label for one in paths) else ""
    plain(axes, f"The paths with the most items: how many{common} and the most popular of them")
    places = list(range(len(paths), 0, -1))
    widest = max(one.size for one in paths)
    axes.barh(places, [one.size for one in paths], color=OWN, height=0.62)
    axes.set_yticks(places, ["-".join(map(str, one.nodes)) for one in paths])
    axes.tick_params(axis="y", labelcolor=INK)
    axes.set_xlim(0, 5.0 * widest)
    axes.set_xticks([])
    axes.spines[["left", "bottom"]].set_visible(False)
    for place, one in zip(places, paths, strict=True):
        axes.annotate(f"{one.size:,}", (one.size, place), (4, 0), **OFFSET, color=INK)
    labels = [_cut(one.label or "", LONGEST_LABEL) for one in paths]
    begin = _column(axes, 1.14 * widest, places, labels, color=INK, fontweight="bold")
    _column(axes, begin, places, [_listed(one.items) for one in paths], color=MUTED)


def _column(axes: Any, begin: float, places: Sequence[int], words: Sequence[str], **style: Any) -> float:
    """Write a column of words, cut at the edge of the figure; returns where the next one begins."""
    texts = [
        axes.text(begin, place, text, va="center", fontsize=8.5, in_layout=False, **style)
        for place, text in zip(places, words, strict=True)
        if text
    ]
    if not texts:
        return begin
    lay_out(axes)
    edge = axes.figure.canvas.figure.bbox.x1 - MARGIN
    for text in texts:
        words_left = text.get_text()
        while text.get_window_extent().x1 > edge and len(words_left) > 1:
            words_left = words_left[:-1].rstrip()
            text.set_text(words_left + "…")
    right = max(text.get_window_extent().x1 for text in texts)
    return float(axes.transData.inverted().transform((right + MARGIN, 0))[0])


def _listed(items: Sequence[str]) -> str:
    return ", ".join(_cut(item, LONGEST_ITEM) for item in items)


def _cut(text: str, most: int) -> str:
    # A dollar sign would begin mathematics.
    text = text if len(text) <= most else text[: most - 1].rstrip(" (,") + "…"
    return text.replace("$", r"\$")


def _draw_sizes(axes: Any, health: IndexHealth) -> None:
    plain(axes, f"Items per path: {health.median_size:g} in the median,\n{health.top_size:,} on the fullest")
    names = list(health.size_histogram)
    values = list(health.size_histogram.values())
    bars = axes.bar(names, values, color=OWN, width=0.75)
    axes.bar_label(bars, fmt="{:,.0f}", fontsize=8, color=MUTED, padding=2)
    axes.set_xlabel("items on the path", color=INK, fontsize=9)
    axes.set_ylabel("paths", color=INK, fontsize=9)
    axes.tick_params(axis="x", rotation=30)
    axes.margins(y=0.12)


def _draw_loads(axes: Any, health: IndexHealth, loads: Sequence[Ints]) -> None:
    """Each layer as a curve over its nodes, the busiest first; the even share is the rule."""
    plain(axes, "How evenly the nodes of each layer are used,\nthe busiest node first", grid="y")
    if not len(loads):
        names = [f"layer {layer}" for layer in range(1, health.depth + 1)]
        bars = axes.barh(names[::-1], [100 * share for share in health.entropy_share][::-1], color=OWN)
        axes.bar_label(bars, fmt="{:.0f}%%", fontsize=8.5, padding=3)
        axes.set_xlabel("entropy as a share of log K, in %", color=INK, fontsize=9)
        axes.set_xlim(0, 112)
        return
    for layer, load in enumerate(loads, start=1):
        ordered = np.sort(load)[::-1] / max(1, load.sum()) * len(load)
        places = 100 * (np.arange(len(ordered)) + 0.5) / len(ordered)
        colour = series_colour(layer - 1)
        unused = health.dead_nodes[layer - 1]
        words = f"layer {layer}" + (f", {unused:,} unused" if unused else "")
        dash = ("-", "--", "-.", ":")[(layer - 1) % 4]
        axes.plot(places, ordered, color=colour, linewidth=2, linestyle=dash, label=words)
    axes.axhline(1, color=MUTED, linewidth=0.8, linestyle=":")
    axes.text(99, 1, "even share", ha="right", va="bottom", fontsize=8, color=MUTED)
    axes.set(xlim=(0, 100), ylim=(0, None))
    axes.set_xlabel("nodes, in %", color=INK, fontsize=9)
    axes.set_ylabel("items relative to an even share", color=INK, fontsize=9)
    label_lines(axes)


def _draw_steps(axes: Any, steps: Sequence[Mapping[str, Any]]) -> None:
    """The share of the paths that items kept, after each M-step."""
    plain(axes, "Paths that items kept from one M-step\nto the next", grid="y")
    overlaps = [(number, step.get("overlap")) for number, step in enumerate(steps, start=1)]
    known = [(number, 100 * overlap) for number, overlap in overlaps if overlap is not None]
    axes.set(xlim=(0.7, max(2, len(steps)) + 0.6), ylim=(0, 105))
    axes.set_xlabel("M-step", color=INK, fontsize=9)
    axes.set_ylabel("% of the paths", color=INK, fontsize=9)
    axes.set_xticks(range(1, len(steps) + 1))
    if not known:
        axes.set_facecolor(PANEL)
        axes.text(0.5, 0.5, "no M-step was recorded", transform=axes.transAxes, ha="center", color=MUTED)
        return
    numbers, values = zip(*known, strict=True)
    axes.plot(numbers, values, "o-", color=OWN, linewidth=2)
    label_points(axes, [(number, value, f"{value:.0f}%", OWN) for number, value in known])
