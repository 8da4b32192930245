"""Figures are valid SVG and deterministic; `test_reproduce` draws each of them."""

from __future__ import annotations

from xml.etree import ElementTree

from pathdex.experiments.report import figures

ROWS = [
    {"method": "item-cf", "f_measure": 0.2, "f_measure_deviation": 0.01},
    {"method": "brute-force", "f_measure": 0.3, "f_measure_deviation": None},
]


def test_the_same_data_gives_the_same_file() -> None:
    first = figures.comparison_figure(ROWS, 10)
    assert first == figures.comparison_figure(ROWS, 10)
    assert ElementTree.fromstring(first).tag.endswith("svg")


def test_health_without_m_steps_is_drawn_empty() -> None:
    assert figures.health_figure([{"seed": 0, "records": []}]).startswith("<?xml")
