"""How items came to their paths, of a live model: over its publishes."""

from __future__ import annotations

import numpy as np
import pytest

from pathdex.explorer.explorer import Explorer
from pathdex.explorer.live_rounds import read_live_rounds
from pathdex.explorer.rounds import item_rounds, path_rounds
from pathdex.recommenders.live_model import LiveModel
from pathdex.recommenders.live_reader import LiveReader
from tests.explorer.test_live_rounds import feed, states_of
from tests.random_model import random_model
from tests.recommenders.test_live_reader import Feed

__all__ = ["feed"]


def live_explorer(feed: Feed) -> Explorer:
    return Explorer(LiveReader(feed.path).load(), "v", folder=feed.path)


def test_an_item_is_followed_over_the_publishes(feed: Feed) -> None:
    states = states_of(feed, 4)
    explorer = live_explorer(feed)
    followed = read_live_rounds(feed.path, np.arange(20))
    assert followed is not None
    code = int(followed.items[0])
    rounds, sample = item_rounds(explorer, code)
    assert rounds is not None
    assert sample == len(followed.items)
    assert [one.number for one in rounds] == [0, 1, 2, 3, 4]
    assert all(one.time for one in rounds)
    for one, state in zip(rounds, states, strict=True):
        assert one.paths == [explorer.nodes_of(path) for path in state[code].tolist() if path >= 0]


def test_an_item_that_came_later_was_not_followed(feed: Feed) -> None:
    states_of(feed, 4)
    explorer = live_explorer(feed)
    followed = read_live_rounds(feed.path, np.arange(20))
    assert followed is not None
    [missing, *_] = sorted(set(range(len(explorer.model.items))) - set(followed.items.tolist()))
    assert item_rounds(explorer, missing) == (None, len(followed.items))


def test_a_path_is_followed_over_the_publishes(feed: Feed) -> None:
    states = states_of(feed, 4)
    explorer = live_explorer(feed)
    followed = read_live_rounds(feed.path, np.arange(20))
    assert followed is not None
    moved = False
    for path in explorer.facts.paths.tolist():
        rounds, sample = path_rounds(explorer, path)
        assert rounds is not None
        assert sample == len(followed.items)
        assert [one.items for one in rounds] == [int((state[followed.items] == path).sum()) for state in states]
        moved |= any(one.entered or one.left for one in rounds)
    assert moved


@pytest.mark.parametrize("model", [random_model(), LiveModel(random_model())], ids=["model", "live"])
def test_nothing_is_known_of_a_model_that_was_not_recorded(model: LiveModel) -> None:
    explorer = Explorer(model, "v")
    assert path_rounds(explorer, 0) == (None, 0)
    assert item_rounds(explorer, 0) == (None, 0)
