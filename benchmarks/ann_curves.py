"""Curves of recall by time: the frontier of an index, Deep Retrieval relative to it at every time, and the plot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.plots import new_axes, style, write
from benchmarks.report import Report
from pathdex.evaluation.intervals import half_width
from pathdex.evaluation.labels import label_lines
from pathdex.evaluation.visual import MUTED
from pathdex.experiments.report.drawing import plain_log, whiskers

FASTEST = 50.0
"""Curves are compared from so many microseconds per query on."""
ON = 0.005
"""A recall at most this share below a curve counts as on it."""
TIMES = (50, 70, 100, 150, 200, 300, 500, 1000)
"""Microseconds at which both recalls are recorded."""

Point = tuple[float, float]
Figures = Mapping[str, Any]


def time_and_recall(points: Iterable[Figures]) -> list[Point]:
    """Points of a curve. CPU time of the one thread is its time on a quiet machine and hardly depends on other load."""
    return [(one["cpu_microseconds"], one["recall"]) for one in points]


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


def verdict(own: Sequence[Point], curve: Sequence[Point]) -> dict[str, Any]:
    """Whether a frontier lies above, on or below a curve at every time from FASTEST on, and where it is lowest.

    Between their points both are linear in log time, so their ratio is lowest at a point of one of them.
    """
    times = sorted({FASTEST, *(spent for spent, _ in (*own, *curve) if spent > FASTEST)})
    compared = [row for spent in times if (row := _compare(own, curve, spent))["ratio"] is not None]
    at_times = {str(spent): _compare(own, curve, spent) for spent in TIMES}
    if not compared:
        return {"verdict": "above", "lowest": None, "at": at_times}
    lowest = min(compared, key=lambda row: float(row["ratio"]))
    word = "above" if lowest["ratio"] >= 1 else "on" if lowest["ratio"] >= 1 - ON else "below"
    return {"verdict": word, "lowest": lowest, "at": at_times}


def worst(verdicts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The least favourable of the verdicts over several builds, with its number as `build`."""
    numbered = [{**one, "build": number} for number, one in enumerate(verdicts)]
    return min(numbered, key=lambda one: np.inf if one["lowest"] is None else one["lowest"]["ratio"])


def _compare(own: Sequence[Point], curve: Sequence[Point], spent: float) -> dict[str, Any]:
    """The recall of both at a time; a curve without an answer by then has no recall, and there is no ratio to it."""
    recall, other = recall_at(own, spent), recall_at(curve, spent)
    ratio = None if not other else (recall or 0.0) / other
    return {"microseconds": spent, "recall": recall, "curve_recall": other, "ratio": ratio}


def draw(file: Path, name: str, figures: dict[str, Any]) -> None:
    """Plot all curves of one data set."""
    users, exact = figures["users"], figures["brute_force"]
    caption = (
        f"Up and to the left is better. Whisker at brute force: 95% interval over {users:,} users; all methods share "
        "these users, so their differences are surer than it."
    )
    title = f"{name}: {figures['items']:,} items, one thread, without the encoder"
    y = f"recall@{figures['n']} of the held-out truth, in %"
    figure, axes = new_axes(title, "CPU microseconds per query", y, caption, height=5.0)
    axes.set_xscale("log")
    brute = {**style("brute force"), "marker": "X", "markersize": 7, "linestyle": "none"}
    time, recall = exact["cpu_microseconds"], 100 * exact["recall"]
    axes.axhline(recall, color=MUTED, linewidth=0.8, linestyle=":", label="_")
    axes.plot([time], [recall], label="brute force", **brute)
    half = half_width(1, None, exact["standard_error"])
    whiskers(axes, [time], [recall], [None if half is None else 100 * half], brute["color"])
    measured = {family: row for family, row in figures["families"].items() if "frontier" in row}
    for family, row in measured.items():
        times, recalls = np.array(row["frontier"]).T
        axes.plot(times, 100 * recalls, label=family, linewidth=1.1, **style(family))
    own = {**style("Deep Retrieval"), "marker": "", "linewidth": 2.6}
    for key, label, dash in (
        ("deep_retrieval", "Deep Retrieval", "-"),
        ("index_alone", "Deep Retrieval without neighbours", "--"),
    ):
        if points := figures.get(key, {}).get("points"):
            times, recalls = np.array(frontier(time_and_recall(points.values()))).T
            axes.plot(times, 100 * recalls, **{**own, "linestyle": dash}, label=label)
    plain_log(axes.xaxis)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    label_lines(axes)
    write(figure, file)


def redraw(report: Report) -> None:
    """Draw the plots of the stored results again."""
    for name, figures in report.parts.items():
        if "families" in figures:
            draw(report.plot_file(f"-{name}"), name, figures)
