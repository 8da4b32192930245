"""The YouTube DNN: the contract, and that it ranks by its vectors."""

from typing import Any

import numpy as np
import pytest

from pathdex.data.ragged import Ragged
from pathdex.errors import ConfigError, QueryError
from pathdex.recommenders.youtube_dnn import YouTubeDNN
from tests.recommender_contract import TEXT_IDS, RecommenderContract, ResumeContract, grouped_data

TINY: dict[str, Any] = {
    "epochs": 3,
    "embedding_dim": 8,
    "batch_size": 64,
    "learning_rate": 0.02,
    "item_learning_rate": 0.02,
    "threads": 1,
}


class TestContract(RecommenderContract, ResumeContract):
    def make(self) -> YouTubeDNN:
        return YouTubeDNN(**TINY)


@pytest.fixture(scope="module")
def model() -> YouTubeDNN:
    return YouTubeDNN(**TINY).fit(grouped_data(TEXT_IDS))


def test_the_score_is_the_inner_product_and_the_bias(model: YouTubeDNN) -> None:
    histories = Ragged.from_rows([[0, 5], []])
    scores = model.user_vectors(histories) @ model.item_vectors.T + model.item_bias
    ranking = model.rank(histories, 32)
    for row in range(2):
        np.testing.assert_allclose(ranking.scores[row], np.sort(scores[row])[::-1], rtol=1e-5)
        np.testing.assert_allclose(ranking.scores[row], scores[row, ranking.items[row]], rtol=1e-5)


def test_seeds_differ(model: YouTubeDNN) -> None:
    other = YouTubeDNN(**TINY, seed=1).fit(grouped_data(TEXT_IDS))
    assert not np.allclose(other.item_vectors, model.item_vectors)


def test_every_wrong_setting_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        YouTubeDNN(embedding_dim=0, dropout=2.0, softmax="hierarchical")
    assert [problem.split(":")[0] for problem in map(str, caught.value.problems)] == [
        "embedding_dim=0",
        "dropout=2.0",
        "softmax='hierarchical'",
    ]


def test_it_takes_no_query_options(model: YouTubeDNN) -> None:
    with pytest.raises(QueryError, match="beam=3: youtube-dnn takes no such option"):
        model.recommend([TEXT_IDS[0]], beam=3)
