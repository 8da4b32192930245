import numpy as np
import pytest

from pathdex.training.negatives import NegativeSampler

COUNTS = np.array([50, 30, 10, 5, 3, 2, 0, 0])


@pytest.mark.parametrize("kind", ["uniform", "popularity", "in-batch", "mixed"])
def test_correction_is_the_inclusion_probability(kind: str) -> None:
    sampler, random = NegativeSampler(kind, COUNTS, 4), np.random.default_rng(0)
    seen, log_inclusion = np.zeros(8), np.full(8, -np.inf)
    draws = 4000
    for _ in range(draws):
        targets = random.choice(8, size=4, p=COUNTS / COUNTS.sum())
        drawn = sampler.draw(targets, random)
        seen[drawn.items] += 1
        assert drawn.log_inclusion is not None
        log_inclusion[drawn.items] = drawn.log_inclusion
        assert (np.diff(drawn.items) > 0).all()
    met = seen > 50
    np.testing.assert_allclose(np.exp(log_inclusion[met]), seen[met] / draws, rtol=0.15)


def test_uniform_draws_items_without_interactions() -> None:
    sampler, random = NegativeSampler("uniform", COUNTS, 4), np.random.default_rng(0)
    drawn = np.concatenate([sampler.draw(np.array([0]), random).items for _ in range(50)])
    assert set(drawn.tolist()) == set(range(8))


def test_as_many_negatives_as_items_is_the_full_softmax() -> None:
    drawn = NegativeSampler("uniform", COUNTS, 8).draw(np.array([0]), np.random.default_rng(0))
    assert drawn.items.tolist() == list(range(8))
    assert drawn.log_inclusion is None
