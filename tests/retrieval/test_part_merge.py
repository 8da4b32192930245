"""Merging what shards found, by hand; tests/server/test_routed_queries.py compares with the whole model."""

from __future__ import annotations

import numpy as np

from pathdex.retrieval.part_merge import merge_parts, rank_chosen
from pathdex.retrieval.part_search import PartFound
from pathdex.retrieval.score_weights import ScoreWeights

WEIGHTS = ScoreWeights(path=1.0, neighbour=1.0, smoothing=1.0, share=0.5)


def part(items: list[int], log_p: list[float], similarity: list[float], total: int, least: float) -> PartFound:
    values = [np.array(one, np.float32) for one in (log_p, similarity, [0.0] * len(items))]
    return PartFound(np.array(items, np.int64), *values, total, least)


def test_the_most_probable_of_all_shards_are_kept() -> None:
    parts = [part([0, 2], [-1, -3], [0, 0], 2, -3), part([1, 3], [-2, -3], [0, 0], 9, -8)]
    chosen = merge_parts(parts, WEIGHTS, 3, neighbours=False, listed=False)
    assert sorted(chosen.items) == [0, 1, 2]  # Items 2 and 3 are equally probable: the first comes first.
    assert chosen.total == 3
    items, scores = rank_chosen(chosen, WEIGHTS, 2, neighbours=False)
    assert items.tolist() == [0, 1]
    assert scores.tolist() == [-1, -2]


def test_without_a_limit_the_counts_of_the_shards_decide_how_many_neighbours_join() -> None:
    # Four items were found on paths, so two neighbours join, with the lowest log probability of all shards.
    parts = [part([0, 4, 6], [-1], [0, 0.9, 0.2], 1, -1), part([1, 5], [-2], [0, 0.5], 3, -7)]
    chosen = merge_parts(parts, WEIGHTS, 0, neighbours=True, listed=False)
    assert sorted(chosen.items) == [0, 1, 4, 5]
    assert chosen.total == 6
    assert set(chosen.log_probability[np.isin(chosen.items, [4, 5])]) == {-7}


def test_nothing_at_all() -> None:
    empty = part([], [], [], 0, np.inf)
    chosen = merge_parts([empty, empty], WEIGHTS, 5, neighbours=True, listed=False)
    assert chosen.total == 0
    assert len(rank_chosen(chosen, WEIGHTS, 5, neighbours=True)[0]) == 0
