"""Figures are valid SVG; every arm has a style of its own."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from pathdex.experiments.simulate import figures
from pathdex.experiments.simulate.metrics import measure
from pathdex.experiments.simulate.options import ARM_NAMES
from pathdex.experiments.simulate.simulation import Outcome


@pytest.fixture(scope="module")
def results(outcome: Outcome) -> dict[str, Any]:
    return measure(outcome)


def test_every_figure_names_its_arms(results: dict[str, Any]) -> None:
    drawings = [
        figures.finish_rate_figure(results["arms"], results["differences"]),
        figures.timeline_figure(results["timeline"], 2.0, 1.0),
        figures.waiting_figure(results["waiting"]),
        figures.exposure_figure(results["arms"], results["platform"]),
    ]
    for drawing in drawings:
        assert ElementTree.fromstring(drawing).tag.endswith("svg")
        assert "streaming" in drawing


def test_an_arm_without_a_figure_is_left_out() -> None:
    empty = {"value": None, "low": None, "high": None}
    known = {"value": 0.2, "low": 0.1, "high": 0.3}
    arms = [{"arm": "oracle", "finish_rate": known}, {"arm": "random", "finish_rate": empty}]
    assert figures.finish_rate_figure(arms, []).startswith("<?xml")


def test_every_arm_has_its_own_style() -> None:
    styles = [(figures.arm_style(name)["color"], figures.arm_style(name)["marker"]) for name in ARM_NAMES]
    assert len(set(styles)) == len(ARM_NAMES)
