"""The tree estimators: what a beam scores, and what a bundle restores."""

import numpy as np

from pathdex.data.ragged import Ragged
from pathdex.recommenders.tdm import TDM
from tests.recommender_contract import TEXT_IDS, grouped_data
from tests.recommenders.tree.tiny import TINY


def test_a_beam_of_all_nodes_scores_every_item_once() -> None:
    model = TDM(**TINY).fit(grouped_data(TEXT_IDS), callbacks=())
    ranking = model.rank(Ragged.from_rows([[0, 5]]), 32, beam=32)
    assert ranking.candidates.tolist() == [32]
    assert sorted(ranking.items[0].tolist()) == list(range(32))


def test_an_opened_model_has_the_same_tree_and_vectors() -> None:
    model = TDM(**TINY).fit(grouped_data(TEXT_IDS), callbacks=())
    opened = TDM.from_bundle(model.to_bundle())
    np.testing.assert_array_equal(opened.tree.order, model.tree.order)
    np.testing.assert_array_equal(opened.network.item_vectors, model.network.item_vectors)
    assert opened.history_length == model.history_length
