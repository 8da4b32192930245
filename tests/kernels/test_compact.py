"""Ruling out candidates by compact rows does not change the answer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.kernels.candidates import NO_COMPACT, RULE_OUT, rerank
from pathdex.kernels.compact import HEADER, LARGEST, compact_items, rule_out
from pathdex.kernels.layout import as_readonly


def random_table(items: int, dim: int, seed: int, spread: float) -> np.ndarray:
    """Rows of very different length, as those of popular and rare items; some are equal."""
    generator = np.random.default_rng(seed)
    table = generator.normal(size=(items, 2 * dim + 1)) * np.exp(spread * generator.normal(size=(items, 1)))
    table[generator.integers(0, items, items // 4)] = table[0]
    return as_readonly(table)


@settings(max_examples=100, deadline=None)
@given(
    items=st.integers(2, 80),
    dim=st.sampled_from([1, 5, 16, 33]),
    n=st.integers(1, 20),
    seed=st.integers(0, 10_000),
    spread=st.sampled_from([0.0, 1.0, 8.0]),
    weight=st.sampled_from([0.0, 1.0, 1e4]),
)
def test_the_answer_is_that_of_scoring_all_candidates(
    items: int, dim: int, n: int, seed: int, spread: float, weight: float
) -> None:
    table = random_table(items, dim, seed, spread)
    generator = np.random.default_rng(seed + 1)
    user = generator.normal(size=dim).astype(np.float32)
    candidates = generator.permutation(items)
    prior = (weight * generator.normal(size=items)).astype(np.float32)
    expected = rerank(table, NO_COMPACT, user, candidates, prior, n)
    found = rerank(table, compact_items(table, dim), user, candidates, prior, n)
    assert found[0].tolist() == expected[0].tolist()
    assert found[1].tolist() == expected[1].tolist()


@pytest.mark.parametrize("place", ["vector", "bias", "prior", "user"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, 1e-40])
def test_the_answer_is_the_same_with_values_that_have_no_interval(place: str, value: float) -> None:
    generator = np.random.default_rng(0)
    table = generator.normal(size=(40, 17)).astype(np.float32)
    user, prior = generator.normal(size=16).astype(np.float32), np.zeros(40, np.float32)
    {"vector": table[5, :16], "bias": table[5:6, 16], "prior": prior[5:6], "user": user}[place][0] = value
    table = as_readonly(table)
    expected = rerank(table, NO_COMPACT, user, np.arange(40), prior, 10)
    found = rerank(table, compact_items(table, 16), user, np.arange(40), prior, 10)
    assert found[0].tolist() == expected[0].tolist()
    assert found[1].tolist() == expected[1].tolist()


def test_a_compact_row_by_hand() -> None:
    row = compact_items(as_readonly(np.array([[9.0, 1.0, -0.3, 0.25, 7.0]])), 3)[0]
    scale, error, bias = row[:3].tolist()
    assert scale == pytest.approx(1 / LARGEST)
    assert row[HEADER:].view(np.int8)[:4].tolist() == [127, -38, 32, 0]
    assert error == pytest.approx(np.hypot(0.3 - 38 / 127, 0.25 - 32 / 127), rel=0.01)
    assert bias == 7.0


def test_most_candidates_are_ruled_out() -> None:
    generator = np.random.default_rng(0)
    table = as_readonly(generator.normal(size=(1000, 65)))
    user = generator.normal(size=64).astype(np.float32)
    kept = rule_out(compact_items(table, 64), user, np.arange(1000), np.zeros(1000, np.float32), 100)
    assert 100 <= len(kept) < 130
    assert RULE_OUT * 100 < 1000
