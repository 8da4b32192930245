"""The figures of a simulation as SVG (extra `plot`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pathdex.experiments.report.drawing import COLOURS, DASHES, MARKS, label_lines, subplots, to_svg
from pathdex.experiments.simulate.options import ARM_NAMES

Row = Mapping[str, Any]


def finish_rate_figure(arms: Sequence[Row], differences: Sequence[Row]) -> str:
    """Finish rate of each arm, the best first, and the difference to the baseline, with intervals."""
    arms = sorted(arms, key=lambda row: -(row["finish_rate"]["value"] or 0.0))
    figure, (left, right) = subplots(0.4 * len(arms) + 1.3, 1, 2, sharey=True)
    places = list(range(len(arms), 0, -1))
    names = [row["arm"] for row in arms]
    _intervals(left, places, names, [row["finish_rate"] for row in arms])
    left.set_yticks(places, names)
    left.set_xlabel("videos finished per video shown, in %")
    by_arm = {row["arm"]: row for row in differences if row["metric"] == "finish_rate"}
    known = [(place, name) for place, name in zip(places, names, strict=True) if name in by_arm]
    _intervals(right, [place for place, _ in known], [name for _, name in known], [by_arm[name] for _, name in known])
    right.axvline(0, color="black", linewidth=0.7, linestyle=":")
    right.set_xlabel("difference to ffm-hnsw in %")
    left.set_ylim(0.5, len(arms) + 0.5)
    return to_svg(figure)


def timeline_figure(timeline: Row, retrain_minutes: float, build_minutes: float) -> str:
    """Finish rate and mean age of the shown videos over time."""
    figure, (left, right) = subplots(3.8, 1, 2)
    for axes, key, scale, words in (
        (left, "finish_rate", 100, "videos finished per video shown, in %"),
        (right, "age_minutes", 1, "mean age of the videos shown, in minutes"),
    ):
        for name, values in timeline[key].items():
            known = [(x, scale * y) for x, y in zip(timeline["minutes"], values, strict=True) if y is not None]
            if known:
                axes.plot(*zip(*known, strict=True), label=name, **arm_style(name))
        axes.set(xlabel="minutes since the experiment began", ylabel=words)
        axes.set_ylim(bottom=0)
    end = max(timeline["minutes"])
    served = retrain_minutes + build_minutes
    while served < end:
        left.axvline(served, color="grey", linewidth=0.6, linestyle=":")
        served += retrain_minutes
    label_lines(left)
    label_lines(right)
    return to_svg(figure)


def waiting_figure(waiting: Sequence[Row]) -> str:
    """The share of new videos that an arm has shown, and that its users have finished, by minutes since upload."""
    figure, (left, right) = subplots(3.6, 1, 2, sharey=True)
    for axes, until in ((left, "shown"), (right, "finished")):
        for row in waiting:
            if row["until"] == until:
                known = [(x, 100 * y) for x, y in row["curve"] if y is not None]
                style = {**arm_style(row["arm"]), "markevery": 10}
                axes.plot(*zip(*known, strict=True), label=row["arm"], **style)
        axes.set(xlabel="minutes since the upload", title=f"first {until}")
    left.set(ylabel="share of the new videos, in %")
    left.set_ylim(bottom=0)
    label_lines(left)
    label_lines(right)
    return to_svg(figure)


def exposure_figure(arms: Sequence[Row], platform: Row) -> str:
    """The share of new and of small creators' videos in what each arm shows."""
    figure, (left, right) = subplots(0.4 * len(arms) + 1.2, 1, 2, sharey=True)
    places = list(range(len(arms), 0, -1))
    names = [row["arm"] for row in arms]
    # Before the limits are set, so that the line is within them.
    right.axvline(100 * platform["small_share_of_videos"], color="black", linewidth=0.7, linestyle=":")
    for axes, key, words in (
        (left, "new_share", "new videos, in % of those shown"),
        (right, "small_share", "small creators' videos, in % of those shown"),
    ):
        _intervals(axes, places, names, [row[key] for row in arms])
        axes.set_xlabel(words)
        axes.set_xlim(left=0)
    left.set_yticks(places, names)
    left.set_ylim(0.5, len(arms) + 0.5)
    return to_svg(figure)


def arm_style(name: str) -> dict[str, Any]:
    """Colour, marker and dash of an arm's line, the same in all figures."""
    place = ARM_NAMES.index(name)
    return {"color": COLOURS[place], "marker": MARKS[place], "linestyle": DASHES[place % 4], "markersize": 4}


def _intervals(axes: Any, places: Sequence[int], names: Sequence[str], estimates: Sequence[Row]) -> None:
    """A point with its interval per arm, in percent."""
    for place, name, one in zip(places, names, estimates, strict=True):
        if one["value"] is None:
            continue
        value = 100 * one["value"]
        errors = [[value - 100 * one["low"]], [100 * one["high"] - value]]
        style = arm_style(name)
        axes.errorbar([value], [place], xerr=errors, color=style["color"], marker=style["marker"], capsize=3)
    axes.grid(axis="x", alpha=0.25)
