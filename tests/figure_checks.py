"""What is checked on every figure: texts apart, nothing cut off, whiskers as the caption says."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from pathdex.evaluation.labels import Box

TOLERANCE = 1.0
"""Pixels by which the boxes of texts may touch: a box is a little larger than its letters."""


def texts(figure: Any) -> Iterator[tuple[str, Box]]:
    """Every visible text of a figure with its rectangle."""
    figure.draw_without_rendering()
    found = [*figure.texts, *(one for part in figure.subfigs for one in part.texts)]
    for axes in figure.axes:
        found += [*axes.texts, axes.title, axes._left_title, axes.xaxis.label, axes.yaxis.label]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            found += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    for text in found:
        if text.get_visible() and text.get_text().strip():
            box = text.get_window_extent()
            yield text.get_text(), Box(box.x0 + TOLERANCE, box.y0 + TOLERANCE, box.x1 - TOLERANCE, box.y1 - TOLERANCE)


def overlapping(figure: Any) -> list[tuple[str, str]]:
    """The pairs of texts that cover each other."""
    return [(one, two) for (one, a), (two, b) in itertools.combinations(texts(figure), 2) if a.overlap(b) > 0]


def cut_off(figure: Any) -> list[str]:
    """The texts that leave the figure."""
    page = Box(*figure.bbox.extents)
    return [text for text, box in texts(figure) if not page.holds(box)]


def assert_readable(figure: Any) -> None:
    """Nothing overlaps, nothing is cut off, nothing is too small, no axes are empty, and there is no legend."""
    assert overlapping(figure) == []
    assert cut_off(figure) == []
    for axes in figure.axes:
        assert axes.lines or axes.patches or axes.collections
        assert axes.get_legend() is None
        assert min((text.get_fontsize() for text in axes.texts), default=8.5) >= 8
    assert not figure.legends


def whisker_ends(axes: Any, *, across: bool = False) -> list[tuple[float, float]]:
    """Both ends of every whisker of the axes, by their order."""
    side = 0 if across else 1
    ends = []
    for container in axes.containers:
        if type(container).__name__ == "ErrorbarContainer":
            for bars in container.lines[2]:
                ends += [(float(segment[0][side]), float(segment[1][side])) for segment in bars.get_segments()]
    return ends


def assert_caption_says_whiskers(chart: Any, *, across: bool = False) -> None:
    """The caption speaks of whiskers if and only if some are drawn."""
    drawn = any(whisker_ends(axes, across=across) for axes in chart.figure.axes)
    assert ("hiskers" in chart.caption) is drawn
