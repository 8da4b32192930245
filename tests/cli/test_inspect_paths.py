"""Paths in the terminal and in the plot."""

from __future__ import annotations

from pathlib import Path

import pytest

import pathdex as package
from pathdex.cli import inspect_paths
from pathdex.cli.answers import label
from pathdex.cli.inspect_paths import explorer_of, near_table, parse_nodes, paths_table, plot_model
from pathdex.errors import QueryError
from pathdex.recommenders.capabilities import HasIndex, require
from pathdex.system import Feature
from tests.cli.conftest import Pathdex


@pytest.fixture(scope="module")
def model(titled_run: Path) -> HasIndex:
    return require(package.load(titled_run), HasIndex)  # type: ignore[type-abstract]


def test_commas_and_hyphens_are_the_same(pathdex: Pathdex, titled_run: Path, model: HasIndex) -> None:
    nodes = model.item_paths(model.items.id(0))[0]
    one, other = (pathdex("inspect", titled_run, "--path", mark.join(map(str, nodes))).stdout for mark in "-,")
    assert one == other
    assert "Neighbouring paths" in one


def test_a_path_is_checked() -> None:
    with pytest.raises(QueryError, match="--path='3-x': must be one node per layer; write it as 3-17-5"):
        parse_nodes("3-x")


def test_without_msgspec_there_are_no_labels(model: HasIndex, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(inspect_paths, "MESSAGES", Feature("x", "no_such_package", "server"))
    nodes = model.item_paths(model.items.id(0))[0]
    assert explorer_of(model) is None
    assert near_table(model, nodes) is None
    assert paths_table("Paths", model, [nodes]).rows[0][1] == ""
    plot_model(model, [], tmp_path / "x.svg")
    assert (tmp_path / "x.svg").exists()


def test_the_item_itself_is_always_shown(model: HasIndex) -> None:
    for code in range(len(model.items)):
        item = model.items.id(code)
        table = paths_table("Paths", model, model.item_paths(item), item)
        assert all(str(item) in row[2] for row in table.rows)


def test_the_most_popular_items_come_first(model: HasIndex) -> None:
    explorer = explorer_of(model)
    assert explorer is not None
    paths = sorted({path for item in model.items.ids(range(len(model.items))) for path in model.item_paths(item)})
    for path, row in zip(paths, paths_table("Paths", model, paths).rows, strict=True):
        codes = explorer.most_popular(model.items.codes(model.path_items(path)), inspect_paths.SHOWN_ITEMS)
        wanted = [label(model.details, item) for item in model.items.ids(codes)]
        assert row[2].split("; ")[: len(wanted)] == wanted


def test_the_plot_names_items(model: HasIndex, tmp_path: Path) -> None:
    import matplotlib as mpl

    with mpl.rc_context({"svg.fonttype": "none"}):
        plot_model(model, [], tmp_path / "x.svg")
    assert "Item " in (tmp_path / "x.svg").read_text()
