"""Inner-product baselines: no index is pretended, and bundles of earlier versions with one still open."""

import numpy as np

from pathdex.data.ragged import Ragged
from pathdex.recommenders.base import EstimatorState
from pathdex.recommenders.youtube_dnn import YouTubeDNN
from pathdex.storage.bundle import Bundle
from tests.recommender_contract import HISTORIES, TEXT_IDS, grouped_data, same_answers

SMALL = {"embedding_dim": 8, "epochs": 1, "batch_size": 256, "threads": 1}


def test_no_structure_model_is_made_or_saved() -> None:
    model = YouTubeDNN(**SMALL).fit(grouped_data(TEXT_IDS), callbacks=())
    assert not model.network.has_structure
    assert not [name for name in model.get_state().weights if name.startswith("structure.")]
    assert "num_nodes" not in model.get_params()


def test_the_untrained_structure_model_of_old_bundles_is_ignored() -> None:
    model = YouTubeDNN(**SMALL).fit(grouped_data(TEXT_IDS), callbacks=())
    bundle = model.to_bundle()
    weights = {**bundle.weights, "structure.user.weight": np.zeros((1, 8), np.float32)}
    opened = YouTubeDNN.from_bundle(Bundle(bundle.estimator, bundle.settings, bundle.arrays, weights))
    assert same_answers(opened.recommend(HISTORIES, 5), model.recommend(HISTORIES, 5))


def test_vectors_have_one_row_per_query_and_item() -> None:
    model = YouTubeDNN(**SMALL).fit(grouped_data(TEXT_IDS), callbacks=())
    assert model.user_vectors(Ragged.from_rows([[0], [], [1, 2]])).shape == (3, 8)
    assert model.item_vectors.shape == (32, 8)
    assert model.item_bias.shape == (32,)
    assert isinstance(model.get_state(), EstimatorState)
