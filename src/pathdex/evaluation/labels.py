"""Direct labels: names beside what they name, in place of legends, without overlap.

`move_apart` and `best_place` are the geometry; `label_ends` and `label_points` apply it to matplotlib axes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pathdex.evaluation.visual import MUTED, readable

Floats: TypeAlias = NDArray[np.float64]

SIZE = 8.5
"""Points."""
GAP = 6.0
"""Points between a point and its name."""
MARK = 3.5
"""Half the width of a marker, in points."""
_DIRECTIONS = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1))
_RADII = (1.0, 2.0, 3.5, 5.0)


class Box(NamedTuple):
    """A rectangle in pixels."""

    left: float
    bottom: float
    right: float
    top: float

    def overlap(self, other: Box) -> float:
        """The common area."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(0.0, width) * max(0.0, height)

    def near(self, point: Sequence[float], distance: float) -> bool:
        """Whether a point is at most so far away."""
        across = max(self.left - point[0], 0, point[0] - self.right)
        up = max(self.bottom - point[1], 0, point[1] - self.top)
        return bool(np.hypot(across, up) <= distance)

    def holds(self, other: Box) -> bool:
        """Whether the other rectangle is inside this one."""
        lower = self.left <= other.left and self.bottom <= other.bottom
        return lower and other.right <= self.right and other.top <= self.top


def move_apart(wanted: Sequence[float], sizes: Sequence[float], low: float, high: float) -> list[float]:
    """Centres as near to the wanted ones as possible, so that intervals of these sizes do not overlap.

    The sum of squared moves is least. All lie between `low` and `high`; if they do not fit, they begin at `low`.
    """
    if not len(wanted):
        return []
    order = np.argsort(wanted, kind="stable")
    lengths = np.asarray(sizes, np.float64)[order]
    # Without the space that the earlier ones need, the order alone is left: an isotonic regression.
    before = np.cumsum(lengths) - lengths / 2
    blocks: list[list[float]] = []  # [sum, count] of neighbours that touch
    for place in np.asarray(wanted, np.float64)[order] - before:
        blocks.append([float(place), 1.0])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += count
    level = np.concatenate([np.full(int(count), total / count) for total, count in blocks])
    level = np.maximum(np.minimum(level, high - lengths.sum()), low)
    places = np.empty(len(order))
    places[order] = level + before
    found: list[float] = places.tolist()
    return found


def best_place(
    anchor: tuple[float, float],
    size: tuple[float, float],
    obstacles: Sequence[Box],
    bounds: Box,
    *,
    gap: float = GAP,
    radii: Sequence[float] = _RADII,
) -> Box:
    """Where a label of this size covers least: beside its point if that is free, else around it or further away."""
    x, y = anchor
    width, height = size
    best, least = None, np.inf
    for radius in radii:
        for across, up in _DIRECTIONS:
            left = x + across * gap * radius - (width if across < 0 else width / 2 if across == 0 else 0)
            middle = y + up * (gap * radius + height / 2)
            box = Box(left, middle - height / 2, left + width, middle + height / 2)
            outside = width * height - box.overlap(bounds)
            covered = 4 * outside + sum(box.overlap(other) for other in obstacles)
            if covered < least - 1e-9:
                best, least = box, covered
        if least <= 1e-9:
            break
    assert best is not None
    return best


def label_ends(axes: Any, *, size: float = SIZE) -> None:
    """Name each line of the axes where it ends; names that would overlap move apart and keep a thin connection."""
    texts, ends = [], []
    for line in axes.lines:
        points = [(x, y) for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True) if np.isfinite(y)]
        if line.get_label().startswith("_") or not points:
            continue
        colour = _text_colour(line)
        style = {"va": "center", "fontsize": size, "color": colour, "clip_on": False}
        texts.append(axes.text(1.035, 0.5, line.get_label(), transform=axes.transAxes, **style))
        ends.append(points[-1])
    if not texts:
        return
    lay_out(axes)
    frame, to_axes = axes.get_window_extent(), axes.transAxes.inverted()
    heights = [text.get_window_extent().height for text in texts]
    wanted = [float(axes.transData.transform(end)[1]) for end in ends]
    spare = 0.6 * max(heights)
    places = move_apart(wanted, [1.02 * height for height in heights], frame.y0 - spare, frame.y1 + spare)
    for text, (x, y), place in zip(texts, ends, places, strict=True):
        height = float(to_axes.transform((0, place))[1])
        text.set_y(height)
        begin = axes.transData.transform((x, y))
        across, up = to_axes.transform(begin)
        # From the last point to its name, if the name is not right beside it.
        if abs(up - height) > 0.012 or across < 0.9:
            line = axes.plot([across, 1.03], [up, height], transform=axes.transAxes, color=MUTED, linewidth=0.5)[0]
            line.set(alpha=0.6, clip_on=False, zorder=1, label="_connection")


def label_points(axes: Any, points: Sequence[tuple[float, float, str, str]], *, size: float = SIZE) -> None:
    """Name points, each `(x, y, text, colour)`, where the name covers no line, marker, whisker or other name."""
    texts = [axes.text(x, y, text, fontsize=size, color=readable(colour)) for x, y, text, colour in points]
    lay_out(axes)
    frame = axes.get_window_extent()
    obstacles, gap = _drawn_boxes(axes), GAP * _pixels_per_point(axes)
    for text, (x, y, *_) in zip(texts, points, strict=True):
        extent = text.get_window_extent()
        anchor = axes.transData.transform((x, y))
        box = best_place(anchor, (extent.width, extent.height), obstacles, Box(*frame.extents), gap=gap)
        _put(axes, text, box)
        obstacles.append(box)


def label_lines(axes: Any, *, size: float = SIZE) -> None:
    """Name each line of the axes where there is room beside it, as far from the other lines as possible."""
    named = [line for line in axes.lines if not line.get_label().startswith("_")]
    texts = [axes.text(0, 0, line.get_label(), fontsize=size, color=_text_colour(line)) for line in named]
    lay_out(axes)
    frame, obstacles = Box(*axes.get_window_extent().extents), _drawn_boxes(axes)
    gap = GAP * _pixels_per_point(axes)
    pixels = [axes.transData.transform(line.get_xydata()) for line in named]
    dense = [_along(points) for points in pixels]
    for number, (text, points) in enumerate(zip(texts, pixels, strict=True)):
        others = [one for place, one in enumerate(dense) if place != number]
        anchors = clearest_first(_along(points, 12), np.concatenate(others)) if others else points[len(points) // 2 :]
        extent = text.get_window_extent()
        sizes = extent.width, extent.height
        beside = (best_place(tuple(one), sizes, obstacles, frame, gap=gap, radii=_RADII[:1]) for one in anchors)
        free = (box for box in beside if frame.holds(box) and not any(box.overlap(one) for one in obstacles))
        box = next(free, None) or best_place(tuple(anchors[0]), sizes, obstacles, frame, gap=gap)
        _put(axes, text, box)
        if not any(box.near(one, 2 * gap) for one in anchors):
            end = axes.transData.inverted().transform((box.left - 2, (box.bottom + box.top) / 2))
            begin = axes.transData.inverted().transform(anchors[0])
            axes.plot(*zip(begin, end, strict=True), color=MUTED, linewidth=0.5, alpha=0.6, label="_connection")
        obstacles.append(box)


def clearest_first(points: Floats, others: Floats) -> Floats:
    """The points by their distance to the nearest of the others, the furthest first."""
    distances = np.hypot(*(points[:, None] - others[None]).transpose(2, 0, 1)).min(axis=1)
    return points[np.argsort(-distances, kind="stable")]


def _put(axes: Any, text: Any, box: Box) -> None:
    place = axes.transData.inverted().transform((box.left, (box.bottom + box.top) / 2))
    text.set(position=tuple(place), va="center", ha="left")


def _text_colour(line: Any) -> str:
    from matplotlib.colors import to_hex

    return readable(to_hex(line.get_color()))


def lay_out(axes: Any) -> None:
    """Place everything in the figure of the axes, so that texts can be measured."""
    axes.figure.canvas.figure.draw_without_rendering()


def _pixels_per_point(axes: Any) -> float:
    return float(axes.figure.canvas.figure.dpi) / 72


def _drawn_boxes(axes: Any) -> list[Box]:
    """Small boxes along everything that is drawn: lines with their markers, and whiskers."""
    # A line across the axes has coordinates of its own.
    paths = [(one.get_transform().transform(one.get_xydata()), one.get_linestyle() != "None") for one in axes.lines]
    for collection in axes.collections:
        segments: list[Any] = getattr(collection, "get_segments", list)()
        paths += [(axes.transData.transform(segment), True) for segment in segments]
    boxes, half = [], MARK * _pixels_per_point(axes)
    for points, joined in paths:
        pixels = points[np.isfinite(points).all(axis=1)]
        boxes += [Box(x - half, y - half, x + half, y + half) for x, y in (_along(pixels) if joined else pixels)]
    return boxes


def _along(pixels: Floats, step: float = 4.0) -> Floats:
    """Points every few pixels along a line."""
    parts = [pixels[-1:]]
    for begin, end in itertools.pairwise(pixels):
        count = 1 + int(np.hypot(*(end - begin)) / step)
        parts.append(begin + (end - begin) * np.linspace(0, 1, count)[:, None])
    return np.concatenate(parts)
