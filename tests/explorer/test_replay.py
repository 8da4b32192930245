"""Replay of the rounds."""

from __future__ import annotations

import pytest

import pathdex
from pathdex.explorer.change_schemas import ReplayQuery
from pathdex.explorer.explorer import Explorer
from pathdex.explorer.replay import replay


def test_rounds_end_with_the_model(explorer: Explorer) -> None:
    found = replay(explorer, ReplayQuery(items=7))
    assert (found.recorded, found.note, found.sample) == (True, None, len(explorer.model.items))
    assert [one.number for one in found.rounds] == [0, 1, 2]
    last = found.rounds[-1]
    assert last.used_paths == len(explorer.facts)
    assert last.loads == [load.items.tolist() for load in explorer.facts.loads]
    assert last.moved == pytest.approx(1 - last.figures["overlap"])
    assert len(found.items) == 7
    for one in found.items:
        assert [tuple(path) for path in one.paths[-1]] == explorer.model.item_paths(one.id)


def test_without_a_recording_figures_remain(trained: pathdex.DeepRetrieval) -> None:
    found = replay(Explorer(trained, "v"), ReplayQuery())
    assert (found.recorded, found.items, found.sample) == (False, [], 0)
    assert found.note is not None
    assert "--no-recording" in found.note
    assert [one.number for one in found.rounds] == [1, 2]
    assert all("objective" in one.figures for one in found.rounds)
    assert any("structure" in one.figures for one in found.losses)
