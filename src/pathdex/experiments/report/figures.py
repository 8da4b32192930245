"""The figures that compare methods (extra `plot`): accuracy, accuracy by time, popularity of what is recommended.

Every figure comes with a caption made from what is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pathdex.evaluation.intervals import half_width, interval_words
from pathdex.evaluation.labels import label_points
from pathdex.evaluation.visual import DECILES, INK, MUTED, method_colour, shades
from pathdex.experiments.report.drawing import (
    Chart,
    bar_rows,
    line_style,
    plain_log,
    sentences,
    subplots,
    whiskers,
)
from pathdex.recommenders.brute_force import BruteForce
from pathdex.recommenders.deep_retrieval import DeepRetrieval

Row = Mapping[str, Any]
NARROWEST = 2.6
"""Percent of the bar that its number needs."""


def comparison_figure(rows: Sequence[Row], n: int, seeds: int) -> Chart:
    """F of every method, the best first, with its interval."""
    rows = sorted(rows, key=lambda row: -row["f_measure"])
    figure, axes = subplots(0.34 * len(rows) + 0.8)
    places = range(len(rows), 0, -1)
    means = [100 * row["f_measure"] for row in rows]
    halves = [_half(row, "f_measure", seeds) for row in rows]
    names = [row["method"] for row in rows]
    hatches = ["//" if name == BruteForce.name else "" for name in names]
    colours = [method_colour(name) for name in names]
    axes.barh(places, means, color=colours, hatch=hatches, edgecolor="white", linewidth=0.6, height=0.66)
    whiskers(axes, means, places, halves, INK, across=True)
    for place, value, half in zip(places, means, halves, strict=True):
        end = (value + (half or 0.0), place)
        axes.annotate(f"{value:.1f}", end, (5, 0), textcoords="offset points", va="center", fontsize=9, color=INK)
    bar_rows(axes, places, names)
    axes.set_xlabel(f"F@{n} in %, seen items removed")
    axes.set_xlim(0, 1.1 * max(value + (half or 0.0) for value, half in zip(means, halves, strict=True)) or 1)
    ceiling = {BruteForce.name, DeepRetrieval.name} <= set(names)
    hatched = "Hatched: brute force over Deep Retrieval's vectors, a ceiling rather than a system." if ceiling else ""
    return Chart(figure, sentences(f"F@{n} of each method, the best first.", interval_words(seeds, halves), hatched))


def curve_figure(curves: Mapping[str, Sequence[Row]], n: int, seed: int) -> Chart:
    """F against the time of a query: a line for methods with a curve, a marker for the others."""
    figure, axes = subplots(4.6)
    drawn, named = [], []
    for name, points in curves.items():
        style = line_style(name) | ({"linestyle": "none"} if len(points) == 1 else {"linewidth": 1.4})
        times = [1e3 * point["seconds_per_query"] for point in points]
        accuracy = [100 * point["f_measure"] for point in points]
        halves = [_half(point, "f_measure", 1) for point in points]
        axes.plot(times, accuracy, label=name, **style)
        # One whisker per method: on a curve they would cover each other, and they are nearly equal.
        best = int(np.argmax(accuracy))
        whiskers(axes, [times[best]], [accuracy[best]], [halves[best]], style["color"])
        drawn.append(halves[best])
        named.append((times[best], accuracy[best], name, style["color"]))
    axes.set(xscale="log", xlabel="milliseconds per query, one by one on one thread")
    axes.set_ylabel(f"F@{n} in %, seen items removed")
    axes.margins(x=0.08, y=0.12)
    plain_log(axes.xaxis)
    label_points(axes, named)
    lines = "; lines: as the beam or efSearch grows" if any(len(points) > 1 for points in curves.values()) else ""
    where = "On the best point of each method, w" if any(len(points) > 1 for points in curves.values()) else "W"
    words = interval_words(1, drawn, f"{where}hiskers")
    return Chart(figure, sentences(f"Accuracy against time, seed {seed}{lines}.", words))


def popularity_figure(truth: Row, methods: Sequence[Row], n: int, seeds: int) -> Chart:
    """The share of each popularity decile in the recommendations of each method and in the truth; and the long tail."""
    rows = sorted([*methods, {"method": "truth", **truth}], key=lambda row: -row["tail"])
    names = [row["method"] for row in rows]
    shares = 100 * np.array([row["deciles"] for row in rows])  # (method, decile)
    figure, (left, right) = subplots(0.34 * len(rows) + 1.3, 1, 2, sharey=True, width_ratios=[3, 1.3])
    places = range(len(rows), 0, -1)
    _draw_deciles(left, places, shares)
    bar_rows(left, places, names)
    left.set(xlabel=f"share of the top {n} in %, by popularity decile of the catalogue", xlim=(0, 100))
    tails, halves = [100 * row["tail"] for row in rows], [_half(row, "tail", seeds) for row in rows]
    for place, name, tail, half in zip(places, names, tails, halves, strict=True):
        style = {"color": INK, "marker": "o"} if name == "truth" else line_style(name)
        right.plot([tail], [place], **{**style, "linestyle": "none", "markersize": 5, "zorder": 3})
        whiskers(right, [tail], [place], [half], style["color"], across=True)
    right.set_xlabel("long tail, deciles 3 to 10, in %")
    right.tick_params(axis="y", length=0)
    right.spines["left"].set_visible(False)
    right.grid(axis="x", alpha=0.3)
    right.set_axisbelow(True)
    right.set_xlim(left=min(0.0, right.get_xlim()[0]))
    left.set_ylim(0.5, len(rows) + 0.9)
    drawn = [half for name, half in zip(names, halves, strict=True) if name != "truth"]
    words = interval_words(seeds, drawn)
    return Chart(
        figure,
        sentences(
            "Recommendations by popularity decile, 1 to 10 from the most popular, beside the test users' truth; the "
            "longest tail first.",
            words,
        ),
    )


def _draw_deciles(axes: Any, places: Sequence[int], shares: Any) -> None:
    """One stacked bar per row; the deciles are named above the row in which they are widest in all."""
    ends = shares.cumsum(axis=1)
    # The most popular decile is most of every bar, so it is the lightest shade.
    for decile, shade in enumerate(shades(DECILES)):
        style = {"color": shade, "edgecolor": "white", "linewidth": 0.7, "height": 0.66}
        axes.barh(places, shares[:, decile], left=(ends - shares)[:, decile], **style)
    row = 0
    for decile in range(DECILES):
        if shares[row, decile] >= NARROWEST:
            middle = ends[row, decile] - shares[row, decile] / 2
            axes.text(middle, places[row] + 0.38, f"{decile + 1}", ha="center", va="bottom", fontsize=8.5, color=MUTED)


def _half(row: Row, key: str, seeds: int) -> float | None:
    """Half of the interval in percent."""
    half = half_width(seeds, row.get(f"{key}_deviation"), row.get(f"{key}_standard_error"))
    return None if half is None else 100 * half
