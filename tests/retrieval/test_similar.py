"""Similar items against the cosine of all items."""

import numpy as np
import pytest

from pathdex.retrieval.similar import similar_items
from tests.random_model import random_model

ITEMS = 30


@pytest.mark.parametrize("item", [0, 3, 29])
def test_all_items_come_by_cosine(item: int) -> None:
    retriever = random_model(ITEMS).retriever
    found, cosine = similar_items(retriever, item, ITEMS)
    vectors = retriever.item_vectors / np.linalg.norm(retriever.item_vectors, axis=1, keepdims=True)
    exact = vectors @ vectors[item]
    assert sorted(found.tolist()) == sorted(set(range(ITEMS)) - {item})
    np.testing.assert_allclose(cosine, exact[found], rtol=1e-4, atol=1e-5)
    assert (np.diff(cosine) <= 0).all()


@pytest.mark.parametrize("item", [0, 3, 29])
def test_few_items_come_from_the_same_paths(item: int) -> None:
    retriever = random_model(ITEMS).retriever
    own = set(retriever.paths[item].tolist())
    sharing = {other for other in range(ITEMS) if other != item and own & set(retriever.paths[other].tolist())}
    assert sharing
    found, _ = similar_items(retriever, item, len(sharing))
    assert set(found.tolist()) == sharing
    assert set(similar_items(retriever, item, 1)[0].tolist()) <= sharing


def test_a_prefix_is_shared_where_paths_are_not() -> None:
    retriever = random_model(6, num_nodes=8, depth=3, paths_per_item=1).retriever
    assert len(set(retriever.paths.ravel().tolist())) == 6  # no two items share a path
    found, _ = similar_items(retriever, 0, 5)
    assert sorted(found.tolist()) == [1, 2, 3, 4, 5]


def test_an_item_without_a_vector_is_similar_to_nothing() -> None:
    model = random_model(ITEMS)
    model.model_state.rows[4] = 0
    _, cosine = similar_items(model.retriever, 4, ITEMS)
    assert (cosine == 0).all()
