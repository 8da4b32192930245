import numpy as np
import pytest
import torch

from pathdex.config import Config
from pathdex.data import Interactions, Queries, Ragged, Vocabulary
from pathdex.errors import DataError
from pathdex.model.network import Network
from pathdex.training.held_out import MIN_QUERIES, describe_sizes, exhaustive_f_measures, f_measures, hold_out, percent


def interactions(users: int, length: int = 4, items: int = 30) -> Interactions:
    random = np.random.default_rng(0)
    rows = Ragged.from_rows(random.integers(0, items, (users, length)))
    return Interactions(rows, Vocabulary(np.arange(users)), Vocabulary(np.arange(items)))


def queries(histories: list[list[int]], truths: list[list[int]]) -> Queries:
    return Queries(Vocabulary(np.arange(len(histories))), Ragged.from_rows(histories), Ragged.from_rows(truths))


def test_enough_validation_queries_are_used_and_nothing_is_left_out() -> None:
    data, given = interactions(2000), queries([[1]] * MIN_QUERIES, [[2]] * MIN_QUERIES)
    train, held_out = hold_out(data, given, 0)
    assert train is data
    assert held_out is not None
    assert len(held_out) == MIN_QUERIES


@pytest.mark.parametrize("given", [None, queries([[1]] * (MIN_QUERIES - 1), [[2]] * (MIN_QUERIES - 1))])
def test_otherwise_one_user_in_ten_loses_the_second_half_of_the_sequence(given: Queries | None) -> None:
    data = interactions(600)
    train, held_out = hold_out(data, given, 0)
    assert held_out is not None
    assert len(held_out) == 60
    assert train.num_users == 600
    assert train.num_interactions == data.num_interactions - 2 * 60
    assert (held_out.history.lengths == 2).all()
    assert (held_out.truth.lengths == 2).all()


def test_few_users_or_nothing_to_choose_hold_nothing_out() -> None:
    few, many = interactions(10 * MIN_QUERIES - 1), interactions(600)
    assert hold_out(few, None, 0) == (few, None)
    assert hold_out(many, None, 0, choosing=False) == (many, None)


def test_f_is_computed_at_each_size() -> None:
    ranked = np.array([[1, 2, 3, 4], [5, 6, 7, 8]])
    f = f_measures(ranked, queries([[0], [0]], [[1, 9], [8]]), sizes=(1, 4))
    # First user: P = 1, R = 1/2 at 1; P = 1/4, R = 1/2 at 4. Second user: nothing at 1; P = 1/4, R = 1 at 4.
    np.testing.assert_allclose(f, [[2 / 3, 1 / 3], [0, 0.4]])


def test_exhaustive_search_leaves_out_seen_items_and_applies_the_map() -> None:
    torch.manual_seed(0)
    network = Network(Config(num_nodes=2, embedding_dim=4), 60)
    asked = queries([[3, 4], [5]], [[7], [8]])
    users = network.user_vectors(asked.history)
    for change in (lambda one: one, lambda one: -one):
        scores = (change(users) @ network.items.rows[:, :4].T + network.items.rows[:, 4]).numpy()
        scores[0, [3, 4]] = scores[1, 5] = -np.inf
        ranked = np.argsort(-scores, axis=1)[:, :50]
        np.testing.assert_allclose(exhaustive_f_measures(network, asked, change), f_measures(ranked, asked))


def test_a_small_catalogue_gives_no_seen_items() -> None:
    torch.manual_seed(0)
    network = Network(Config(num_nodes=2, embedding_dim=4), 3)
    assert (exhaustive_f_measures(network, queries([[0, 1, 2]], [[1]])) == 0).all()


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ("x", "must be queries, not str"),
        (interactions(3), "must be queries, not Interactions"),
        (queries([[99]], [[1]]), "holds items that are not in the catalogue of 30 items"),
        (queries([[1]], [[-7]]), "holds items that are not in the catalogue of 30 items"),
    ],
)
def test_validation_that_does_not_fit_is_refused(given: object, rule: str) -> None:
    with pytest.raises(DataError, match=rule):
        hold_out(interactions(600), given, 0)  # type: ignore[arg-type]


def test_queries_without_a_truth_do_not_count() -> None:
    given = queries([[1]] * (MIN_QUERIES + 1), [[2]] * MIN_QUERIES + [[]])
    held_out = hold_out(interactions(20), given, 0).held_out
    assert held_out is not None
    assert len(held_out) == MIN_QUERIES


def test_figures_read_as_a_sentence() -> None:
    assert f"{describe_sizes()}: {percent([0.1, 0.25])}" == "F@10 and F@50: 10.00% and 25.00%"
