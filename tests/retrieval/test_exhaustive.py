"""Exhaustive search by hand and in blocks against sorting."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.data.ragged import Ragged
from pathdex.retrieval import exhaustive
from pathdex.retrieval.exhaustive import rank_exhaustively
from pathdex.retrieval.filters import Filters


def test_a_score_is_the_inner_product_and_the_bias() -> None:
    users, vectors = np.array([[1, 2]], np.float32), np.array([[1, 0], [0, 1], [1, 1]], np.float32)
    ranking = rank_exhaustively(users, vectors, np.array([0, 0.5, -3], np.float32), 2)
    assert ranking.items.tolist() == [[1, 0]]
    assert ranking.scores.tolist() == [[2.5, 1.0]]
    assert ranking.candidates.tolist() == [3]


def test_no_users_have_no_answers() -> None:
    ranking = rank_exhaustively(np.empty((0, 2), np.float32), np.ones((3, 2), np.float32), np.zeros(3, np.float32), 2)
    assert ranking.items.shape == (0, 2)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 15),
    queries=st.integers(1, 5),
    query_block=st.integers(1, 6),
    item_block=st.integers(1, 12),
    seed=st.integers(0, 99),
)
def test_blocks_of_any_size_equal_sorting(n: int, queries: int, query_block: int, item_block: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    # Small whole numbers make exact ties.
    users, vectors = random.integers(-2, 3, (queries, 3)), random.integers(-2, 3, (11, 3))
    bias, exclude = random.integers(-1, 2, 11), [random.integers(0, 11, 4) for _ in range(queries)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exhaustive, "QUERY_BLOCK", query_block)
        patch.setattr(exhaustive, "ITEM_BLOCK", item_block)
        ranking = rank_exhaustively(
            users.astype(np.float32),
            vectors.astype(np.float32),
            bias.astype(np.float32),
            n,
            Filters(exclude=Ragged.from_rows(exclude)),
        )
    for query in range(queries):
        scores = vectors @ users[query] + bias
        best = [item for item in np.argsort(-scores, kind="stable").tolist() if item not in exclude[query]][:n]
        assert ranking.items[query].tolist() == best + [-1] * (n - len(best))
        assert ranking.scores[query, : len(best)].tolist() == scores[best].tolist()
