"""The plot of an index."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from pathdex.errors import MissingExtraError, StorageError
from pathdex.evaluation import plots
from pathdex.evaluation.plots import ShownPath, m_step_records, plot_index
from pathdex.index.health import IndexHealth, health
from pathdex.system import Feature
from tests.figure_checks import assert_readable, texts

HEALTH = health(np.array([[0, 3], [1, 3], [2, 3]]), 2, 2)
RECORDS = [
    {"phase": "encoder", "number": 1, "softmax": 2.0},
    {"phase": "structure", "number": 1, "objective": 1.0, "overlap": None},
    {"phase": "structure", "number": 2, "objective": 2.0, "overlap": 0.5},
    {"phase": "structure", "number": 3, "structure": 1.0},
]


def test_only_m_steps_have_an_objective() -> None:
    assert [record["number"] for record in m_step_records(RECORDS)] == [1, 2]


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_the_ending_selects_the_format(tmp_path: Path, ending: str, start: bytes) -> None:
    assert plot_index(HEALTH, RECORDS, tmp_path / f"index.{ending}").read_bytes().startswith(start)


def test_an_index_without_m_steps_can_be_drawn(tmp_path: Path) -> None:
    assert plot_index(HEALTH, [], tmp_path / "index.svg").exists()


def test_the_plot_shows_the_figures(tmp_path: Path) -> None:
    import matplotlib as mpl

    with mpl.rc_context({"svg.fonttype": "none"}):
        text = plot_index(HEALTH, RECORDS, tmp_path / "index.svg").read_text()
    for words in ("3 items, each on 2 of 4 paths", "3 on the fullest", "Paths that items kept", "50%"):
        assert words in text


def test_the_largest_paths_have_labels_and_items(tmp_path: Path) -> None:
    import matplotlib as mpl

    largest = [ShownPath((0, 1), 3, "red · fruit", ["apple", "costs $5"]), ShownPath((1, 1), 1, None, ["pear"])]
    with mpl.rc_context({"svg.fonttype": "none"}):
        loads = [np.array([4, 2]), np.array([1, 5])]
        text = plot_index(HEALTH, RECORDS, tmp_path / "index.svg", largest=largest, loads=loads).read_text()
    for words in ("0-1", "1-1", "red · fruit", "apple", "costs $5", "pear", "layer 1", "layer 2"):
        assert words in text


def test_an_unknown_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"unknown ending '.bmp'; use .png, .pdf, .svg$"):
        plot_index(HEALTH, RECORDS, tmp_path / "index.bmp")


def test_matplotlib_is_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "PLOTTING", Feature("drawing figures", "no_such_package", "plot"))
    with pytest.raises(MissingExtraError, match=r"pip install 'pathdex\[plot\]'$"):
        plot_index(HEALTH, RECORDS, tmp_path / "index.png")


def drawn_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: IndexHealth = HEALTH, **parts: Any) -> Any:
    """The figure that `plot_index` saves."""
    figures = []
    save = Figure.savefig

    def keep(figure: Any, *given: Any, **options: Any) -> None:
        figures.append(figure)
        save(figure, *given, **options)

    monkeypatch.setattr(Figure, "savefig", keep)
    plot_index(shown, RECORDS, tmp_path / "index.svg", **parts)
    return figures[0]


def test_no_text_of_the_plot_covers_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    title = "A title that is much longer than any other of them"
    label = "a long label · of a path · with words"
    largest = [ShownPath((9, place), 30 - place, label, 4 * [title]) for place in range(10)]
    loads = [np.array([9, 5, 2, 1]), np.array([6, 5, 4, 3]), np.array([8, 6, 2, 0])]
    three_layers = replace(HEALTH, dead_nodes=(0, 0, 1))
    figure = drawn_figure(tmp_path, monkeypatch, three_layers, largest=largest, loads=loads)
    assert_readable(figure)
    shown = {text for text, _ in texts(figure)}
    assert {"layer 1", "layer 2", "layer 3, 1 unused"} <= shown
    assert any(text.endswith("…") for text in shown)


def test_the_paths_are_sorted_by_their_items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    largest = [ShownPath((0, 1), 1, None, ["pear"]), ShownPath((1, 1), 3, None, ["apple"])]
    axes = drawn_figure(tmp_path, monkeypatch, largest=largest).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["1-1", "0-1"]
    assert "in common" not in axes.get_title(loc="left")
