"""What is computed before the first request."""

from __future__ import annotations

import pytest

from pathdex.explorer.explorer import Explorer
from pathdex.explorer.overview import overview
from pathdex.explorer.overview_schemas import PathQuery
from pathdex.explorer.path_card import path_card
from pathdex.explorer.prepare import STEPS, prepare


def test_after_preparing_the_first_views_compute_nothing(explorer: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(explorer)
    path = "-".join(map(str, explorer.nodes_of(int(explorer.facts.paths[0]))))
    known = set(explorer._kept)
    overview(explorer)
    path_card(explorer, PathQuery(path))
    assert explorer.waits_for("search", 0) is None
    assert set(explorer._kept) == known


def test_each_step_has_a_name_that_a_page_can_show() -> None:
    assert all(name.startswith("the ") for name in STEPS)
