"""Which methods are compared, and with which query options."""

from __future__ import annotations

import pytest

from pathdex.data import Interactions, Ragged, Split, Vocabulary, split_leave_last
from pathdex.errors import QueryError
from pathdex.evaluation.comparison import METHODS, comparison_methods, held_out_queries, search_options
from pathdex.recommenders.deep_retrieval import DeepRetrieval


@pytest.fixture(scope="module")
def split() -> Split:
    rows = Ragged.from_rows([[0, 1, 2, 3], [1, 2, 3], [3, 0, 1]])
    return split_leave_last(Interactions(rows, Vocabulary(["a", "b", "c"]), Vocabulary(["w", "x", "y", "z"])))


@pytest.fixture(scope="module")
def model(split: Split) -> DeepRetrieval:
    small = {"num_nodes": 2, "depth": 2, "paths_per_item": 1, "embedding_dim": 4, "epochs": 1, "rounds": 0}
    return DeepRetrieval(**small, threads=1).fit(split.train)


def test_one_set_of_options_per_beam_and_number_of_candidates() -> None:
    named = search_options(10, beams=[5], candidates=[20, 50])
    assert named == [{"beam": 5}, {"candidates": 20}, {"candidates": 50}]


def test_the_default_candidates_are_multiples_of_n() -> None:
    assert search_options(10) == [{"candidates": 50}, {"candidates": 100}, {"candidates": 200}]


def test_fewer_candidates_than_n_are_refused() -> None:
    with pytest.raises(
        QueryError, match=r"^candidates=5: must be at least n=10, or n items cannot be found; ask for fewer items or"
    ):
        search_options(10, candidates=[5, 9, 20])


def test_deep_retrieval_appears_once_per_set_of_options_and_the_others_once(model: DeepRetrieval, split: Split) -> None:
    methods = comparison_methods(model, split.train, options=[{"beam": 1}, {"beam": 2}])
    assert [(one.name, dict(one.options)) for one in methods] == [
        ("deep-retrieval", {"beam": 1}),
        ("deep-retrieval", {"beam": 2}),
        ("brute-force", {}),
        ("item-cf", {}),
        ("popularity", {}),
    ]
    assert tuple(dict.fromkeys(one.name for one in methods)) == METHODS
    chosen = comparison_methods(model, split.train, options=[], names=["popularity"])
    assert [one.name for one in chosen] == ["popularity"]


def test_an_unknown_method_is_refused(model: DeepRetrieval, split: Split) -> None:
    with pytest.raises(QueryError, match=r"^methods='brute': must be among deep-retrieval, brute-force, item-cf"):
        comparison_methods(model, split.train, options=[], names=["brute"])


def test_the_held_out_queries_are_test_or_valid(split: Split) -> None:
    assert held_out_queries(split, "test") is split.test
    assert held_out_queries(split, "valid") is split.valid
    with pytest.raises(QueryError, match=r"^on='all': must be test or valid$"):
        held_out_queries(split, "all")
