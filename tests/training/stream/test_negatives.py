"""Negatives of a stream."""

import numpy as np

from pathdex.training.stream.negatives import StreamNegatives


def drawn(number, used, seed=0):
    negatives = StreamNegatives(number)
    negatives.used = np.array(used, np.bool_)
    return negatives.draw(np.empty(0, np.int64), np.random.default_rng(seed))


def test_few_items_are_all_negatives_without_a_correction():
    found = drawn(10, [True, False, True])
    assert found.items.tolist() == [0, 2]
    assert found.log_inclusion.tolist() == [0, 0]


def test_free_slots_are_never_drawn():
    used = np.arange(1000) % 3 > 0
    found = drawn(500, used)
    assert used[found.items].all()
    assert (np.diff(found.items) > 0).all()


def test_the_correction_is_the_share_of_batches_that_draw_an_item():
    used = np.ones(40, np.bool_)
    share = np.mean([np.isin(7, drawn(30, used, seed).items) for seed in range(2000)])
    assert abs(np.exp(drawn(30, used).log_inclusion[0]) - share) < 0.03
