"""The plots of the benchmarks, from the stored results."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from benchmarks import plots
from benchmarks.query_plots import draw_growth, draw_parts
from benchmarks.report import RESULTS, Report

from pathdex.evaluation.visual import arm_colour, method_colour
from tests.figure_checks import assert_readable, texts, whisker_ends


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The figures that are drawn, by file name; nothing is written."""
    found: dict[str, Any] = {}
    for module in ("plots", "ann_curves", "http_soak", "stream_soak"):
        monkeypatch.setattr(
            importlib.import_module(f"benchmarks.{module}"), "write", lambda one, file: found.update({file.name: one})
        )
    return found


def stored(name: str, tmp_path: Path) -> Report:
    """A copy of stored results whose plots go elsewhere."""
    (tmp_path / f"{name}.json").write_bytes((RESULTS / f"{name}.json").read_bytes())
    return Report(name, tmp_path)


@pytest.mark.parametrize("name", sorted({*plots.REDRAWN} - {"ann"}))
def test_stored_plots_can_be_read(name: str, drawn: dict[str, Any], tmp_path: Path) -> None:
    importlib.import_module(plots.REDRAWN[name]).redraw(stored(name, tmp_path))
    assert set(drawn) <= {file.name for file in RESULTS.glob("*.png")}
    assert drawn
    for figure in drawn.values():
        assert_readable(figure)


def test_curves_are_named_and_explain_their_only_whisker(drawn: dict[str, Any], tmp_path: Path) -> None:
    report = stored("ann", tmp_path)
    report.parts = {"synthetic": report.parts["synthetic"]}
    importlib.import_module("benchmarks.ann_curves").redraw(report)
    (figure,) = drawn.values()
    assert_readable(figure)
    assert {*plots.FAMILIES, "Deep Retrieval", "brute force"} <= {text for text, _ in texts(figure)}
    assert len(whisker_ends(figure.axes[0])) == 1
    assert "Whisker at brute force: 95% interval over 2,000 users" in " ".join(figure.get_supxlabel().split())


def test_parts_are_sorted_and_growth_has_the_colours_of_the_methods(drawn: dict[str, Any], tmp_path: Path) -> None:
    report = Report("query", tmp_path)
    parts = {
        name: {"microseconds": time, "range": [time - 1, time + 2], "limit": 5}
        for name, time in {"a": 3, "b": 9}.items()
    }
    draw_parts({"flat": {"parts": parts}}, 1000, report)
    axes = drawn["query-breakdown.png"].axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["b, 9", "a, 3"]
    assert whisker_ends(axes, across=True) == [(8, 11), (2, 5)]
    row = {"query": {"microseconds": 300}, "brute_force": {"microseconds": 2000}}
    draw_growth({"1000": row, "10000": row}, report)
    colours = {line.get_label(): line.get_color() for line in drawn["query-growth.png"].axes[0].lines}
    assert colours["Deep Retrieval, whole query"] == method_colour("deep-retrieval")
    assert colours["brute force, without encoding"] == method_colour("brute-force")


def test_every_curve_has_one_style_in_every_plot() -> None:
    names = [*plots.METHODS, *plots.FAMILIES]
    styles = [plots.style(name) for name in names]
    assert len({style["color"] for style in styles}) == len({style["marker"] for style in styles}) == len(names)
    assert plots.style("frozen")["color"] == arm_colour("frozen")
