"""Lines can be told apart, and drawings are deterministic SVG."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from pathdex.evaluation.visual import INK
from pathdex.experiments.report.drawing import line_style, plain_log, subplots, to_svg


@pytest.mark.parametrize("name", ["popularity", "deep-retrieval"])
def test_every_method_has_its_own_style(name: str) -> None:
    styles = [line_style(other) for other in ("popularity", "item-cf", "deep-retrieval", "brute-force")]
    assert styles.count(line_style(name)) == 1


def test_a_number_chooses_a_style_too() -> None:
    assert line_style(0)["color"] == INK
    assert line_style(10) == line_style(0)


def test_a_drawing_is_the_same_svg_each_time() -> None:
    def draw() -> str:
        figure, axes = subplots(2.0)
        axes.plot([1, 10, 100], [1, 2, 3])
        axes.set_xscale("log")
        plain_log(axes.xaxis)
        return to_svg(figure)

    assert draw() == draw()
    assert ElementTree.fromstring(draw()).tag.endswith("svg")
