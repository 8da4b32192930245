"""Figures are valid SVG; every arm has a style of its own."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from pathdex.experiments.report.drawing import Chart
from pathdex.experiments.simulate import figures
from pathdex.experiments.simulate.metrics import measure
from pathdex.experiments.simulate.options import ARM_NAMES
from pathdex.experiments.simulate.simulation import Outcome
from tests.figure_checks import assert_caption_says_whiskers, assert_readable, texts, whisker_ends


@pytest.fixture(scope="module")
def results(outcome: Outcome) -> dict[str, Any]:
    return measure(outcome)


def charts(results: dict[str, Any]) -> dict[str, Chart]:
    return {
        "finish-rate": figures.finish_rate_figure(results["arms"], results["differences"]),
        "timeline": figures.timeline_figure(results["timeline"], 2.0, 1.0),
        "waiting": figures.waiting_figure(results["waiting"]),
        "exposure": figures.exposure_figure(results["arms"], results["platform"]),
    }


@pytest.mark.parametrize("name", ["finish-rate", "timeline", "waiting", "exposure"])
def test_every_figure_names_its_arms_and_can_be_read(results: dict[str, Any], name: str) -> None:
    chart = charts(results)[name]
    assert_readable(chart.figure)
    assert "streaming" in {text for text, _ in texts(chart.figure)}
    assert ElementTree.fromstring(chart.part(name).svg).tag.endswith("svg")
    across = name in ("finish-rate", "exposure")
    assert_caption_says_whiskers(chart, across=across)
    assert ("over users (bootstrap)" in chart.caption) is across


def test_arms_are_sorted_by_what_is_shown(results: dict[str, Any]) -> None:
    for chart, key in ((charts(results)["finish-rate"], "finish_rate"), (charts(results)["exposure"], "new_share")):
        shown = [label.get_text() for label in chart.figure.axes[0].get_yticklabels()]
        values = {row["arm"]: row[key]["value"] or 0.0 for row in results["arms"]}
        assert [values[name] for name in shown] == sorted(values.values(), reverse=True)


def test_a_whisker_spans_its_interval() -> None:
    arms = [{"arm": "oracle", "finish_rate": {"value": 0.2, "low": 0.1, "high": 0.25}}]
    chart = figures.finish_rate_figure(arms, [])
    assert whisker_ends(chart.figure.axes[0], across=True) == [pytest.approx((10, 25))]
    assert "difference" not in chart.caption


def test_only_a_drawn_rebuild_is_explained() -> None:
    timeline = {"minutes": [1, 2], "finish_rate": {"streaming": [0.1, 0.2]}, "age_minutes": {"streaming": [1, 2]}}
    assert "Dotted" in figures.timeline_figure(timeline, 1.0, 0.5).caption
    assert "Dotted" not in figures.timeline_figure(timeline, 10.0, 5.0).caption


def test_an_arm_without_a_figure_is_left_out() -> None:
    empty = {"value": None, "low": None, "high": None}
    known = {"value": 0.2, "low": 0.1, "high": 0.3}
    arms = [{"arm": "oracle", "finish_rate": known}, {"arm": "random", "finish_rate": empty}]
    chart = figures.finish_rate_figure(arms, [])
    assert len(whisker_ends(chart.figure.axes[0], across=True)) == 1


def test_every_arm_has_its_own_style() -> None:
    styles = [figures.arm_style(name) for name in ARM_NAMES]
    for key in ("color", "marker"):
        assert len({style[key] for style in styles}) == len(ARM_NAMES)
