"""The base class: ids, filters, options and bundles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pathdex
from pathdex.data.attributes import Attributes
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import BundleError, QueryError
from pathdex.recommenders.base import EstimatorState
from pathdex.recommenders.bundle_checks import check_names
from pathdex.recommenders.item_list import ScoredItem
from pathdex.recommenders.query import Query
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.ranking import Ranking
from pathdex.storage.array_spec import index_spec
from pathdex.storage.bundle_rules import BundleRules
from tests.bundle_edits import change_manifest, read_json
from tests.fakes import FakeRecommender


class Recorder(FakeRecommender):
    """Returns the first eligible codes and records its queries."""

    name = "recorder"

    def __init__(self, ids: Any = None) -> None:
        self.marks = np.arange(3)
        self.calls: list[tuple[list[list[int]], int, Filters, dict[str, Any]]] = []
        if ids is not None:
            self._items = Vocabulary(ids)

    def rank(self, histories: Ragged, n: int, filters: Filters = NO_FILTERS, **options: Any) -> Ranking:
        self.calls.append(([row.tolist() for row in histories], n, filters, options))
        items = np.full((len(histories), n), -1)
        scores = np.full((len(histories), n), -np.inf, np.float32)
        for query in range(len(histories)):
            found = np.flatnonzero(filters.eligible(query, len(self.items)))[:n]
            items[query, : len(found)] = found
            scores[query, : len(found)] = -found
        return Ranking(items, scores, np.zeros(len(histories), np.int64))

    def get_state(self) -> EstimatorState:
        return EstimatorState({"greeting": "hello"}, {"marks": self.marks})

    @classmethod
    def bundle_rules(cls, settings: Mapping[str, Any], num_items: int) -> BundleRules:
        check_names("settings", settings, ["greeting"])
        return BundleRules({"marks": index_spec(3, below=9, dtype="int64")})

    def set_state(self, state: EstimatorState) -> None:
        self.calls = []
        self.greeting = state.settings["greeting"]
        self.marks = state.arrays["marks"]


@pytest.fixture
def model() -> Recorder:
    return Recorder(["a", "b", "c", "d", "e"])


def excluded(model: Recorder) -> list[list[int]] | None:
    exclude = model.calls[-1][2].exclude
    return None if exclude is None else [sorted(set(row.tolist())) for row in exclude]


def test_answers_are_pairs_of_id_and_score(model: Recorder) -> None:
    answer = model.recommend(["a"], n=2)
    assert answer == [ScoredItem("b", -1.0), ScoredItem("c", -2.0)]
    assert answer[0].id == "b"
    assert answer[0].score == -1.0


def test_answer_has_at_most_the_eligible_items(model: Recorder) -> None:
    assert [item for item, _ in model.recommend(["a"], n=9)] == ["b", "c", "d", "e"]


def test_seen_and_denied_items_are_excluded(model: Recorder) -> None:
    model.recommend([["b", "b"], ["a", "d"]], deny=["d", "unknown"])
    assert excluded(model) == [[1, 3], [0, 3]]


def test_seen_items_can_be_kept(model: Recorder) -> None:
    model.recommend([["b"], ["a"]], exclude_seen=False)
    assert excluded(model) is None
    model.recommend([["b"], ["a"]], exclude_seen=False, deny=["c"])
    assert excluded(model) == [[2], [2]]


def test_allow_is_sorted_and_distinct(model: Recorder) -> None:
    model.recommend(["a"], allow=["e", "b", "e", "unknown"])
    allow = model.calls[-1][2].allow
    assert allow is not None
    assert [None if one is None else one.tolist() for one in allow] == [[1, 4]]


def test_query_has_its_own_filters(model: Recorder) -> None:
    model.recommend_batch([["a"], Query(["b"], exclude_seen=False, deny=["c"], allow=["d", "b"])], deny=["e"])
    assert excluded(model) == [[0, 4], [2]]
    allow = model.calls[-1][2].allow
    assert allow is not None
    assert [None if one is None else one.tolist() for one in allow] == [None, [1, 3]]


def test_deny_can_be_an_iterator(model: Recorder) -> None:
    model.recommend_batch([["a"], ["b"]], deny=iter(["e"]), allow=iter(["c"]))
    assert excluded(model) == [[0, 4], [1, 4]]


def test_where_needs_a_catalogue_table(model: Recorder) -> None:
    with pytest.raises(QueryError, match=r"where=\{'colour': 'red'\}: needs a catalogue table; attach one"):
        model.recommend(["a"], where={"colour": "red"})
    with pytest.raises(QueryError, match=r"where=\['red'\]: must map columns to values"):
        model.recommend(["a"], where=["red"])  # type: ignore[arg-type]
    assert model.recommend(["a"], where={}) == model.recommend(["a"])


def test_where_keeps_items_with_matching_attributes(model: Recorder) -> None:
    table = pl.DataFrame({"item": ["a", "b", "c"], "colour": ["red", "blue", "red"]})
    model.attach(Attributes.read(table))
    model.recommend_batch([["a"], Query(["b"], where={"colour": "red"})])
    where = model.calls[-1][2].where
    assert where is not None
    assert where[0] is None
    assert where[1] is not None
    assert where[1].tolist() == [True, False, True, False, False]
    model.attach(None)
    with pytest.raises(QueryError, match="needs a catalogue table"):
        model.recommend(["a"], where={"colour": "red"})


def test_filters_apply_to_their_own_query() -> None:
    mask = np.array([True, False])
    filters = Filters(Ragged.from_rows([[0], [1], []]), [None, np.array([1]), None], [mask, None, None])
    some = filters.take(np.array([2, 0]))
    assert [some.eligible(query, 2).tolist() for query in (0, 1)] == [[True, True], [False, False]]


def test_empty_allow_list_gives_an_empty_answer(model: Recorder) -> None:
    assert model.recommend(["a"], allow=[]) == []


def test_options_are_passed_to_rank(model: Recorder) -> None:
    model.recommend(["a"], n=3, beam=7)
    assert model.calls[-1][1] == 3
    assert model.calls[-1][3] == {"beam": 7}


@pytest.mark.parametrize("history", [["a", "b"], ("a", "b"), np.array(["a", "b"])])
def test_history_can_be_any_sequence(model: Recorder, history: Any) -> None:
    model.recommend(history)
    assert model.calls[-1][0] == [[0, 1]]


@pytest.mark.parametrize("histories", [[["a"], ["b", "c"]], [("a",), ("b", "c")], [np.array(["a"]), ["b", "c"]]])
def test_histories_can_be_any_sequences(model: Recorder, histories: Any) -> None:
    assert len(model.recommend(histories)) == 2
    assert model.calls[-1][0] == [[0], [1, 2]]


def test_first_of_many_histories_can_be_empty(model: Recorder) -> None:
    assert len(model.recommend([[], ["a"]])) == 2


def test_no_histories_give_no_answers(model: Recorder) -> None:
    assert model.recommend_batch([]) == []


def test_history_can_be_a_frame_column(model: Recorder) -> None:
    pandas = pytest.importorskip("pandas")
    model.recommend(pandas.Series(["a", "b"], index=[7, 8]))
    assert model.calls[-1][0] == [[0, 1]]


@pytest.mark.parametrize("history", ["abc", b"abc"])
def test_string_is_not_a_history(model: Recorder, history: Any) -> None:
    with pytest.raises(QueryError, match=r"^history=.*abc.*: must be a list of ids, not a string; pass \["):
        model.recommend(history)


def test_list_of_strings_is_not_many_histories(model: Recorder) -> None:
    with pytest.raises(QueryError, match=r"^history='abc': must be a list of ids, not a string"):
        model.recommend_batch([["a"], "abc"])


def test_long_unknown_history_is_truncated_in_the_message(model: Recorder) -> None:
    with pytest.raises(
        QueryError, match=r"history 0 \('v', 'w', 'x', \.\.\.\) has no item of the catalogue of 5 items"
    ):
        model.recommend(["v", "w", "x", "y"])


def test_numpy_integers_match_integer_ids(model: Recorder) -> None:
    numbered = Recorder(np.array([10, 20, 30]))
    numbered.recommend(np.array([30, 10]))
    assert numbered.calls[-1][0] == [[2, 0]]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (NO_FILTERS, [True, True, True, True]),
        (Filters(exclude=Ragged.from_rows([[0], [1, 1]])), [True, False, True, True]),
        (Filters(allow=[None, np.array([1, 2])]), [False, True, True, False]),
        (Filters(Ragged.from_rows([[], [2, 3]]), [None, np.array([1, 2])]), [False, True, False, False]),
        (Filters(where=[None, np.array([True, False, True, False])]), [True, False, True, False]),
        (
            Filters(None, [None, np.array([1, 2])], [None, np.array([True, False, True, False])]),
            [False, False, True, False],
        ),
    ],
)
def test_filters_give_an_eligibility_mask(filters: Filters, expected: list[bool]) -> None:
    assert filters.eligible(1, 4).tolist() == expected


def test_bundle_round_trip_keeps_settings_arrays_and_ids(model: Recorder, tmp_path: Path) -> None:
    opened = Recorder.load(model.save(tmp_path / "bundle"))
    assert opened.greeting == "hello"
    assert opened.marks.tolist() == [0, 1, 2]
    assert opened.items.ids(range(5)) == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize(("part", "name"), [("settings", "greeting"), ("files", "marks.npy")])
def test_incomplete_bundle_is_rejected(model: Recorder, tmp_path: Path, part: str, name: str) -> None:
    path = model.save(tmp_path / "bundle")
    rest = {key: value for key, value in read_json(path)[part].items() if key != name}
    change_manifest(path, **{part: rest})
    lacking = {"settings": "settings: 'greeting' is missing", "files": "marks: is missing"}[part]
    with pytest.raises(BundleError, match=f"is damaged: .*{lacking}; copy or save the model again"):
        Recorder.load(path)


@pytest.mark.parametrize("argument", ["deny", "allow"])
def test_a_string_is_not_a_list_of_ids_in_a_filter(model: Recorder, argument: str) -> None:
    with pytest.raises(QueryError, match=rf"^{argument}='ab': must be a list of ids, not a string; pass \['ab'\]"):
        model.recommend(["a"], **{argument: "ab"})
    with pytest.raises(QueryError, match=rf"^{argument}='ab'"):
        Query(["a"], **{argument: "ab"})


@pytest.mark.parametrize("history", [None, 3])
def test_a_history_that_is_no_list_is_refused(model: Recorder, history: Any) -> None:
    with pytest.raises(QueryError, match=rf"^history={history}: must be a list of ids"):
        model.recommend(history)


def test_exclude_seen_is_true_or_false(model: Recorder) -> None:
    with pytest.raises(QueryError, match=r"^exclude_seen='no': must be true or false"):
        model.recommend(["a"], exclude_seen="no")  # type: ignore[arg-type]


def test_the_repr_shows_parameters_and_state() -> None:
    model = pathdex.ItemCF(neighbours=7)
    assert repr(model) == "ItemCF(neighbours=7): not fitted"
    model.fit(pl.DataFrame({"user": [1, 1], "item": ["a", "b"]}), items=pl.DataFrame({"item": ["a"], "title": ["A"]}))
    assert repr(model) == "ItemCF(neighbours=7): fitted on 2 items with details"
    assert "<tr><th>neighbours</th><td>7</td></tr>" in model._repr_html_()
    assert repr(pathdex.DeepRetrieval(depth=2)) == "DeepRetrieval(depth=2): not fitted"


def test_a_single_id_instead_of_a_history_explains_itself() -> None:
    model = pathdex.Popularity().fit(pl.DataFrame({"user": [1, 1], "item": [1, 2]}))
    with pytest.raises(QueryError, match=r"history=1: must be a list of ids; pass \[1\] for a history of that"):
        model.recommend(1)  # type: ignore[arg-type]
