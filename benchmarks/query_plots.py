"""The plots of the query benchmark: the parts of a query, and query time by size of the catalogue."""

from __future__ import annotations

from typing import Any

from benchmarks.plots import Curve, bars, curves
from benchmarks.report import Report

RANGE = "Whiskers: the fastest and the slowest round."


def draw_parts(figures: dict[str, Any], items: int, report: Report) -> None:
    """The parts of one query beside the limits of the machine."""
    rows = {
        part: (row["microseconds"], (row["range"][0], row["range"][1]), row["limit"])
        for part, row in figures["flat"]["parts"].items()
    }
    bars(
        report.plot_file("-breakdown"),
        rows,
        "microseconds",
        f"The parts of one query of {items:,} items, one thread",
        f"Bars: mean time, the longest first. Black marks: the limit of the machine for that work. {RANGE}",
    )


def draw_growth(sizes: dict[str, Any], report: Report) -> None:
    """Time of a query by number of items, beside exhaustive search."""
    xs = [int(name) for name in sizes]
    lines = {
        "Deep Retrieval, whole query": Curve(xs, [row["query"]["microseconds"] for row in sizes.values()]),
        "brute force, without encoding": Curve(xs, [row["brute_force"]["microseconds"] for row in sizes.values()]),
    }
    caption = "Mean time of a query on one thread. Paths grow with the items, so their size stays the same."
    curves(report.plot_file("-growth"), lines, "Query time by size of the catalogue", "items", "microseconds", caption)


def redraw(report: Report) -> None:
    """Draw the plots of the stored results again."""
    parts = report.parts
    if "breakdown" in parts:
        draw_parts(parts["breakdown"], parts["whole"]["items"], report)
    if "growth" in parts:
        draw_growth(parts["growth"]["sizes"], report)
