"""The first tree, and the phases of training and tree learning."""

import numpy as np
import pytest

from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import ConfigError, DataError, QueryError
from pathdex.recommenders.jtm import JTM
from pathdex.recommenders.otm import OTM
from pathdex.recommenders.tdm import TDM
from pathdex.recommenders.tree.training import first_order
from tests.recommender_contract import TEXT_IDS, grouped_data
from tests.recommenders.fakes import RecordedTraining
from tests.recommenders.tree.tiny import TINY

QUICK = {**TINY, "epochs": 1, "batch_size": 2048}


def four_items(times: list[float] | None = None) -> Interactions:
    sequences = Ragged.from_rows([[2, 1], [2, 0, 2]])
    moments = None if times is None else np.array(times)
    return Interactions(sequences, Vocabulary(np.arange(2)), Vocabulary(["a", "b", "c", "d"]), moments)


def order_of(data: Interactions, kind: str, categories: list[str] | None = None) -> list[int]:
    return first_order(data, kind, categories, np.random.default_rng(0)).tolist()


def test_first_order_by_hand() -> None:
    assert order_of(four_items(), "popularity") == [2, 0, 1, 3]
    # Means: item 2 (5 + 9 + 1) / 3 = 5, item 1 2, item 0 3; item 3 never occurs.
    assert order_of(four_items([5, 2, 9, 3, 1]), "time") == [1, 0, 2, 3]
    assert sorted(order_of(four_items(), "random")) == [0, 1, 2, 3]


def test_items_are_grouped_by_category() -> None:
    assert order_of(four_items(), "popularity", ["y", "x", "y", "x"]) == [1, 3, 2, 0]


def test_missing_inputs_of_the_first_tree_are_an_error() -> None:
    with pytest.raises(DataError, match="first_tree='time': the data has no times; choose random or popularity"):
        order_of(four_items(), "time")
    with pytest.raises(DataError, match="categories has 2 entries: must have one for each of the 4 items"):
        order_of(four_items(), "random", ["x", "y"])


def test_empty_data_is_an_error() -> None:
    nothing = Interactions(Ragged.from_rows([]), Vocabulary(np.arange(0)), Vocabulary(["a"]))
    with pytest.raises(DataError, match="data: has no interactions"):
        TDM().fit(nothing)


@pytest.mark.parametrize(
    ("method", "phases"),
    [
        (TDM, ["tree 1", "tree 2"]),
        (JTM, ["tree 1", "tree 2", "tree 3", "tree 4"]),
        (OTM, ["tree 1", "tree 2", "beam", "beam"]),
    ],
)
def test_phases_of_each_method(method: type[TDM], phases: list[str]) -> None:
    notes = RecordedTraining()
    model = method(**QUICK).fit(grouped_data(TEXT_IDS), callbacks=[notes])
    assert [record["phase"] for record in notes.records] == phases
    assert sorted(model.tree.order.tolist()) == list(range(32))


def test_first_tree_stays_without_tree_learning() -> None:
    data = grouped_data(TEXT_IDS)
    categories = [code // 8 for code in range(32)]
    model = TDM(**{**QUICK, "clusterings": 0}).fit(data, categories=categories)
    assert (model.tree.ancestors(2) == np.array(categories)).all()


@pytest.mark.parametrize("method", [TDM, JTM, OTM])
def test_same_seed_gives_the_same_model(method: type[TDM]) -> None:
    states = [method(**QUICK, seed=seed).fit(grouped_data(TEXT_IDS)).get_state() for seed in (3, 3, 4)]
    assert states[0].arrays["order"].tobytes() == states[1].arrays["order"].tobytes()
    assert all(array.tobytes() == states[1].weights[name].tobytes() for name, array in states[0].weights.items())
    assert states[0].weights["vectors"].tobytes() != states[2].weights["vectors"].tobytes()


def test_error_lists_all_invalid_parameters() -> None:
    with pytest.raises(ConfigError) as caught:
        TDM(embedding_dim=0, first_tree="category", beam_size=2.5)
    assert [problem.split(":")[0] for problem in map(str, caught.value.problems)] == [
        "embedding_dim=0",
        "first_tree='category'",
        "beam_size=2.5",
    ]


def test_query_options_are_checked() -> None:
    model = TDM(**QUICK).fit(grouped_data(TEXT_IDS))
    histories = Ragged.from_rows([[0, 5]])
    assert model.rank(histories, 3, beam=2).candidates.tolist() == [4]
    assert model.rank(histories, 3, beam=16).candidates.tolist() == [32]
    for beam in (0, True, 1.5):
        with pytest.raises(QueryError, match=r"beam=.*: must be a whole number of at least 1; .* the default 4"):
            model.rank(histories, 3, beam=beam)
    with pytest.raises(QueryError, match="candidates=9: tdm takes no such option"):
        model.rank(histories, 3, candidates=9)
