from pathdex.config import Config
from pathdex.retrieval.score_weights import ScoreWeights


def test_weights_that_are_not_set_have_a_default() -> None:
    weights = ScoreWeights.from_config(Config(path_weight=0.25, neighbour_share=0.0))
    assert (weights.path, weights.share) == (0.25, 0.0)
    assert (weights.neighbour, weights.smoothing, weights.popularity) == (1.0, 0.02, 0.0)


def test_a_configuration_holds_all_weights() -> None:
    weights = ScoreWeights(path=0.1, neighbour=2.0, smoothing=0.3, share=0.4, popularity=0.5)
    assert ScoreWeights.from_config(Config(**weights.to_config())) == weights
