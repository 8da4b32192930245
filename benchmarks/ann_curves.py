"""Curves of recall by time: the frontier of an index, Deep Retrieval relative to it, and the plot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.plots import new_axes, style, write

OPERATING_POINTS = {"beam": "B = 50", "budget": "10 n candidates"}
"""Operating points of Deep Retrieval: the paper's beam, and a number of candidates."""
ON = 0.01
"""A recall at most this share below a curve counts as on it."""

Point = tuple[float, float]


def frontier(points: Sequence[Point]) -> list[Point]:
    """The Pareto-optimal points (time, recall), by time."""
    best: list[Point] = []
    for spent, recall in sorted(points, key=lambda point: (point[0], -point[1])):
        if not best or recall > best[-1][1]:
            best.append((spent, recall))
    return best


def recall_at(curve: Sequence[Point], spent: float) -> float | None:
    """The recall of a frontier at a time, interpolated in log time; None before its first point."""
    times, recalls = np.array(curve).T
    if spent < times[0]:
        return None
    return float(np.interp(np.log(spent), np.log(times), recalls))


def verdict(own: dict[str, float], curve: Sequence[Point], encode: float) -> dict[str, Any]:
    """Whether a point of Deep Retrieval lies above, on or below a curve at equal time; `encode` is added to both."""
    spent = own["microseconds"] + encode
    reached = recall_at([(time + encode, recall) for time, recall in curve], spent)
    if reached is None or own["recall"] >= reached:
        word = "above"
    else:
        word = "on" if own["recall"] >= (1 - ON) * reached else "below"
    share = None if not reached else own["recall"] / reached
    return {"microseconds": spent, "recall": own["recall"], "curve_recall": reached, "ratio": share, "verdict": word}


def draw(file: Path, name: str, figures: dict[str, Any]) -> None:
    """Plot all curves of one data set."""
    title = f"{name}: {figures['items']:,} items, one thread, without the encoder"
    figure, axes = new_axes(title, "microseconds per query", f"recall@{figures['n']} of the held-out truth, %")
    axes.set_xscale("log")
    measured = {family: row for family, row in figures["families"].items() if "frontier" in row}
    for number, (family, row) in enumerate(measured.items()):
        times, recalls = np.array(row["frontier"]).T
        axes.plot(times, 100 * recalls, label=family, linewidth=1.1, **style(number))
    points = figures["deep_retrieval"]["points"]
    own = frontier([(one["microseconds"], one["recall"]) for one in points.values()])
    times, recalls = np.array(own).T
    axes.plot(times, 100 * recalls, color="black", linewidth=2.4, label="Deep Retrieval")
    marked = {"beam 50": ("*", "B = 50"), f"candidates {10 * figures['n']}": ("h", "10 n candidates")}
    for point, (marker, label) in marked.items():
        if point in points:
            one = points[point]
            axes.plot(one["microseconds"], 100 * one["recall"], marker, color="black", markersize=12, label=label)
    exact = figures["brute_force"]
    axes.axhline(100 * exact["recall"], color="#888888", linewidth=1, linestyle=":")
    axes.plot(exact["microseconds"], 100 * exact["recall"], "x", color="#555555", markersize=8, label="brute force")
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    write(figure, file)
