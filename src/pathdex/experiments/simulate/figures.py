"""The figures of a simulation as SVG (extra `plot`); every figure comes with a caption made from what is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pathdex.evaluation.labels import label_ends
from pathdex.evaluation.visual import MUTED, arm_colour
from pathdex.experiments.report.drawing import (
    DASHES,
    MARKS,
    TITLE,
    Chart,
    bar_rows,
    sentences,
    subplots,
    whiskers,
)
from pathdex.experiments.simulate.options import ARM_NAMES, BASELINE

Row = Mapping[str, Any]
WHISKERS = "Whiskers: 95% intervals over users (bootstrap)."


def finish_rate_figure(arms: Sequence[Row], differences: Sequence[Row]) -> Chart:
    """Finish rate of each arm, the best first, and the difference to the baseline, with intervals."""
    arms = _sorted(arms, "finish_rate")
    by_arm = {row["arm"]: row for row in differences if row["metric"] == "finish_rate"}
    figure, axes = subplots(0.36 * len(arms) + 1.0, 1, 2 if by_arm else 1, sharey=True, squeeze=False)
    left, *rest = axes[0]
    places = list(range(len(arms), 0, -1))
    drawn = _intervals(left, places, arms, "finish_rate")
    bar_rows(left, places, [row["arm"] for row in arms])
    left.set_xlabel("videos finished per video shown, in %")
    for right in rest:
        right.axvline(0, color=MUTED, linewidth=0.8, linestyle=":")
        known = [
            (place, {**row, "gain": by_arm[row["arm"]]})
            for place, row in zip(places, arms, strict=True)
            if row["arm"] in by_arm
        ]
        drawn += _intervals(right, [place for place, _ in known], [row for _, row in known], "gain")
        right.set_xlabel(f"difference to {BASELINE}, in % of its rate")
        _rows_only(right)
    left.set_ylim(0.5, len(arms) + 0.5)
    words = f"Finish rate by arm, the highest first{f'; right: the difference to {BASELINE}' if rest else ''}."
    return Chart(figure, sentences(words, WHISKERS if drawn else ""))


def timeline_figure(timeline: Row, retrain_minutes: float, build_minutes: float) -> Chart:
    """Finish rate and mean age of the shown videos over time."""
    figure, (left, right) = subplots(3.8, 1, 2)
    for axes, key, scale, words in (
        (left, "finish_rate", 100, "Videos finished per video shown, in %"),
        (right, "age_minutes", 1, "Mean age of the videos shown, in minutes"),
    ):
        for name, values in timeline[key].items():
            known = [(x, scale * y) for x, y in zip(timeline["minutes"], values, strict=True) if y is not None]
            if known:
                axes.plot(*zip(*known, strict=True), label=name, **{**arm_style(name), "markersize": 3.5})
        axes.set_title(words, fontsize=TITLE)
        axes.set_xlabel("minutes since the experiment began")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_ylim(bottom=0)
    end, swaps = max(timeline["minutes"]), 0
    served = retrain_minutes + build_minutes
    while served < end:
        left.axvline(served, color=MUTED, linewidth=0.7, linestyle=":")
        served, swaps = served + retrain_minutes, swaps + 1
    label_ends(left)
    label_ends(right)
    dotted = "Dotted: a rebuilt model is served." if swaps else ""
    return Chart(figure, sentences("Finish rate and age of what each arm shows, over time.", dotted))


def waiting_figure(waiting: Sequence[Row]) -> Chart:
    """The share of new videos that an arm has shown, and that its users have finished, by minutes since upload."""
    figure, (left, right) = subplots(3.6, 1, 2, sharey=True)
    for axes, until in ((left, "shown"), (right, "finished")):
        for row in waiting:
            if row["until"] == until:
                known = [(x, 100 * y) for x, y in row["curve"] if y is not None]
                style = {**arm_style(row["arm"]), "markevery": 10}
                axes.plot(*zip(*known, strict=True), label=row["arm"], **style)
        axes.set_title(f"First {until}", fontsize=TITLE)
        axes.set_xlabel("minutes since the upload")
    left.set(ylabel="share of the new videos, in %")
    left.set_ylim(bottom=0)
    label_ends(left)
    label_ends(right)
    return Chart(figure, "How many of the new videos each arm has shown, and its users have finished, by their age.")


def exposure_figure(arms: Sequence[Row], platform: Row) -> Chart:
    """The share of new and of small creators' videos in what each arm shows, the newest first."""
    arms = _sorted(arms, "new_share")
    figure, (left, right) = subplots(0.36 * len(arms) + 1.0, 1, 2, sharey=True)
    places = list(range(len(arms), 0, -1))
    # Before the limits are set, so that the line is within them.
    right.axvline(100 * platform["small_share_of_videos"], color=MUTED, linewidth=0.8, linestyle=":")
    drawn = []
    for axes, key, words in (
        (left, "new_share", "new videos, in % of those shown"),
        (right, "small_share", "small creators' videos, in % of those shown"),
    ):
        drawn += _intervals(axes, places, arms, key)
        axes.set_xlabel(words)
        axes.set_xlim(left=min(0.0, -0.02 * axes.get_xlim()[1]))
    bar_rows(left, places, [row["arm"] for row in arms])
    _rows_only(right)
    left.set_ylim(0.5, len(arms) + 0.5)
    words = "Exposure of new videos and of small creators; the arm with the most new videos first."
    dotted = "Dotted: small creators' share of all videos."
    return Chart(figure, sentences(words, WHISKERS if drawn else "", dotted))


def arm_style(name: str) -> dict[str, Any]:
    """Colour, marker and dash of an arm's line, the same in all figures."""
    place = ARM_NAMES.index(name)
    return {"color": arm_colour(name), "marker": MARKS[place], "linestyle": DASHES[place % 4], "markersize": 4}


def _sorted(arms: Sequence[Row], key: str) -> list[Row]:
    return sorted(arms, key=lambda row: -(row[key]["value"] or 0.0))


def _rows_only(axes: Any) -> None:
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _intervals(axes: Any, places: Sequence[int], rows: Sequence[Row], key: str) -> list[str]:
    """A point with its interval per arm, in percent; returns the arms that are drawn."""
    drawn = []
    for place, row in zip(places, rows, strict=True):
        one, style = row[key], arm_style(row["arm"])
        if one["value"] is None:
            continue
        value, low, high = (100 * one[name] for name in ("value", "low", "high"))
        # A whisker is symmetric, an interval need not be.
        whiskers(axes, [(low + high) / 2], [place], [(high - low) / 2], style["color"], across=True)
        axes.plot([value], [place], color=style["color"], marker=style["marker"], markersize=5, zorder=3)
        drawn.append(row["arm"])
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    return drawn
