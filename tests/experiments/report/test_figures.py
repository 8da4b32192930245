"""Figures that compare methods: what they draw, how they look, and what their captions say."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest
from matplotlib.colors import to_hex

from pathdex.evaluation.visual import method_colour
from pathdex.experiments.report import figures
from pathdex.experiments.report.drawing import line_style
from pathdex.recommenders.registry import ESTIMATORS
from tests.figure_checks import assert_caption_says_whiskers, assert_readable, texts, whisker_ends

F = {"item-cf": 0.2, "brute-force": 0.3, "deep-retrieval": 0.25, "popularity": 0.1, "tdm": 0.22, "otm": 0.21}


def rows(deviation: float | None = None, error: float | None = None) -> list[dict[str, Any]]:
    measured = {"f_measure_deviation": deviation, "f_measure_standard_error": error}
    return [{"method": name, "f_measure": value, **measured} for name, value in F.items()]


def bars(axes: Any) -> list[Any]:
    """The bars from top to bottom."""
    return sorted(axes.patches, key=lambda bar: -bar.get_y())


def test_bars_are_sorted_and_have_the_colour_of_their_method() -> None:
    chart = figures.comparison_figure(rows(error=0.02), 10, 1)
    axes = chart.figure.axes[0]
    ordered = sorted(F, key=lambda name: -F[name])
    assert [bar.get_width() for bar in bars(axes)] == pytest.approx([100 * F[name] for name in ordered])
    assert [to_hex(bar.get_facecolor()).upper() for bar in bars(axes)] == [method_colour(name) for name in ordered]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ordered
    assert_readable(chart.figure)


def test_one_seed_has_whiskers_over_its_users() -> None:
    chart = figures.comparison_figure(rows(error=0.02), 10, 1)
    low, high = whisker_ends(chart.figure.axes[0], across=True)[0]
    assert (low, high) == pytest.approx((30 - 3.92, 30 + 3.92), abs=0.01)
    assert "Whiskers: 95% intervals over the test users of one seed." in chart.caption


def test_several_seeds_have_whiskers_over_the_seeds() -> None:
    chart = figures.comparison_figure(rows(deviation=0.01, error=0.5), 10, 3)
    low, high = whisker_ends(chart.figure.axes[0], across=True)[0]
    assert (high - low) / 2 == pytest.approx(4.3027 * 1 / 3**0.5, rel=1e-3)
    assert "Whiskers: 95% intervals over 3 seeds (Student's t)." in chart.caption


def test_without_an_interval_there_is_no_whisker_and_no_word_of_one() -> None:
    chart = figures.comparison_figure(rows(), 10, 1)
    assert_caption_says_whiskers(chart, across=True)
    assert "hiskers" not in chart.caption


def test_only_a_drawn_ceiling_is_explained() -> None:
    assert "Hatched" in figures.comparison_figure(rows(), 10, 1).caption
    assert "Hatched" not in figures.comparison_figure(rows()[:1], 10, 1).caption


def test_the_same_data_gives_the_same_file() -> None:
    first = figures.comparison_figure(rows(), 10, 1).part("comparison").svg
    assert first == figures.comparison_figure(rows(), 10, 1).part("comparison").svg
    assert ElementTree.fromstring(first).tag.endswith("svg")


def curve(*points: tuple[float, float], error: float | None = 0.01) -> list[dict[str, Any]]:
    found = [{"seconds_per_query": 1e-3 * ms, "f_measure": f, "f_measure_standard_error": error} for ms, f in points]
    return found if error is not None else [{**one, "f_measure_standard_error": None} for one in found]


CURVES = {
    "popularity": curve((0.02, 0.06)),
    "item-cf": curve((0.3, 0.11)),
    "deep-retrieval": curve((0.05, 0.11), (0.07, 0.12), (0.3, 0.119)),
    "brute-force": curve((0.29, 0.118)),
}


def test_methods_are_named_beside_their_points() -> None:
    chart = figures.curve_figure(CURVES, 10, 0)
    assert_readable(chart.figure)
    assert {text for text, _ in texts(chart.figure)} >= set(CURVES)


def test_each_method_has_the_whisker_of_its_best_point() -> None:
    chart = figures.curve_figure(CURVES, 10, 0)
    middles = sorted((low + high) / 2 for low, high in whisker_ends(chart.figure.axes[0]))
    assert middles == pytest.approx([6, 11, 11.8, 12])
    assert "On the best point of each method, whiskers: 95% intervals over the test users of one seed." in chart.caption
    assert "as the beam or efSearch grows" in chart.caption


def test_a_figure_without_curves_or_intervals_speaks_of_neither() -> None:
    chart = figures.curve_figure({"item-cf": curve((0.3, 0.1), error=None)}, 10, 0)
    assert_caption_says_whiskers(chart)
    assert chart.caption == "Accuracy against time, seed 0."


def tails(error: float | None) -> list[dict[str, Any]]:
    spread = {"tail_deviation": None, "tail_standard_error": error}
    return [
        {"method": "popularity", "deciles": [1.0] + 9 * [0.0], "tail": 0.0, **spread},
        {
            "method": "item-cf",
            "deciles": [0.6, 0.1, 0.1, 0.05, 0.05, 0.02, 0.02, 0.02, 0.02, 0.02],
            "tail": 0.3,
            **spread,
        },
        {"method": "deep-retrieval", "deciles": [0.8, 0.1, 0.05, 0.05] + 6 * [0.0], "tail": 0.1, **spread},
    ]


TRUTH = {"deciles": 10 * [0.1], "tail": 0.8}


def test_the_longest_tail_comes_first_and_deciles_are_named() -> None:
    chart = figures.popularity_figure(TRUTH, tails(0.02), 10, 1)
    left, right = chart.figure.axes
    assert [label.get_text() for label in left.get_yticklabels()] == [
        "truth",
        "item-cf",
        "deep-retrieval",
        "popularity",
    ]
    assert [text.get_text() for text in left.texts] == [str(decile) for decile in range(1, 11)]
    assert [line.get_xdata()[0] for line in right.lines if line.get_marker() not in "|"] == pytest.approx(
        [80, 30, 10, 0]
    )
    assert_readable(chart.figure)
    assert_caption_says_whiskers(chart, across=True)
    assert "over the test users of one seed" in chart.caption
    assert_caption_says_whiskers(figures.popularity_figure(TRUTH, tails(None), 10, 1), across=True)


def test_every_method_has_a_line_of_its_own_in_grey() -> None:
    styles = [(line_style(name)["marker"], line_style(name)["linestyle"]) for name in ESTIMATORS]
    assert len(set(styles)) == len(styles)
    assert len({line_style(name)["marker"] for name in ESTIMATORS}) == len(styles)
    assert line_style("deep-retrieval (no neighbours)")["color"] == method_colour("deep-retrieval")
