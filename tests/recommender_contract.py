"""The contract of every recommender, as tests that each estimator's own test class inherits.

    class TestContract(RecommenderContract):
        def make(self) -> Recommender: ...

The data has four groups of eight items, and every user stays within one group, so whoever has seen two items of a group
should be shown the other six.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pathdex
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Id, Vocabulary
from pathdex.errors import BundleError, ConfigError, DataError, NotFittedError, QueryError, RunError, StorageError
from pathdex.recommenders.base import Recommender
from pathdex.recommenders.item_list import ScoredItem
from pathdex.retrieval.filters import Filters
from pathdex.storage.bundle import Bundle, write_bundle
from pathdex.training.callbacks import Callback, StepProgress
from tests.bundle_contract import BundleContract
from tests.recommenders.fakes import RecordedTraining

GROUPS, GROUP_SIZE, USERS = 4, 8, 160
NUM_ITEMS = GROUPS * GROUP_SIZE
TEXT_IDS = [f"item {code}" for code in range(NUM_ITEMS)]
INTEGER_IDS = [1000 + 3 * code for code in range(NUM_ITEMS)]
HISTORIES: list[list[Id]] = [[TEXT_IDS[0], TEXT_IDS[5]], [], [TEXT_IDS[31]], [TEXT_IDS[9], TEXT_IDS[9], TEXT_IDS[12]]]


def grouped_data(ids: list[Any]) -> Interactions:
    random = np.random.default_rng(0)
    rows = [random.integers(0, GROUP_SIZE, 12) + GROUP_SIZE * (user % GROUPS) for user in range(USERS)]
    items = Vocabulary(np.array(ids) if isinstance(ids[0], int) else ids)
    return Interactions(Ragged.from_rows(rows), Vocabulary(np.arange(USERS)), items)


def ids_of(answer: list[ScoredItem]) -> list[Id]:
    return [item for item, _ in answer]


def same_answers(first: list[list[ScoredItem]], second: list[list[ScoredItem]]) -> bool:
    return all(
        ids_of(one) == ids_of(other)
        and np.allclose([score for _, score in one], [score for _, score in other], rtol=1e-4, atol=1e-5)
        for one, other in zip(first, second, strict=True)
    )


queries = st.fixed_dictionaries(
    {
        "history": st.lists(st.sampled_from(TEXT_IDS), max_size=6),
        "n": st.integers(1, NUM_ITEMS + 5),
        "exclude_seen": st.booleans(),
        "deny": st.lists(st.sampled_from([*TEXT_IDS, "unknown"]), max_size=NUM_ITEMS),
        "allow": st.none() | st.lists(st.sampled_from([*TEXT_IDS, "unknown"]), max_size=NUM_ITEMS),
    }
)
# A method of a mixin runs in several classes; that is the point here.
shared = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.differing_executors])


class QueryContract:
    """What can be asked of a model, here or over HTTP. Inherit, and give a `model` of `grouped_data(TEXT_IDS)`."""

    personal = True
    """Whether the history changes the answer."""

    def test_it_finds_the_obvious_answer(self, model: Recommender) -> None:
        if not self.personal:
            pytest.skip("the answer does not depend on the history")
        for group in range(GROUPS):
            members = TEXT_IDS[GROUP_SIZE * group : GROUP_SIZE * (group + 1)]
            answer = model.recommend([members[2], members[6]], n=GROUP_SIZE - 2)
            assert set(ids_of(answer)) == set(members) - {members[2], members[6]}

    @shared
    @given(query=queries)
    def test_it_returns_exactly_the_best_eligible_items(self, model: Recommender, query: dict[str, Any]) -> None:
        eligible = set(TEXT_IDS if query["allow"] is None else query["allow"]) & set(TEXT_IDS)
        eligible -= set(query["deny"])
        if query["exclude_seen"]:
            eligible -= set(query["history"])
        answer = model.recommend(**query)
        scores = [score for _, score in answer]
        assert len(answer) == len(set(ids_of(answer))) == min(query["n"], len(eligible))
        assert set(ids_of(answer)) <= eligible
        assert scores == sorted(scores, reverse=True)
        assert np.isfinite(scores).all()

    @shared
    @given(histories=st.lists(st.lists(st.sampled_from(TEXT_IDS), max_size=6), max_size=6), n=st.integers(1, NUM_ITEMS))
    def test_a_batch_equals_one_by_one(self, model: Recommender, histories: list[list[Id]], n: int) -> None:
        together = model.recommend_batch(histories, n)
        assert same_answers(together, [model.recommend(history, n) for history in histories])

    def test_recommend_takes_many_histories(self, model: Recommender) -> None:
        assert same_answers(model.recommend(HISTORIES, 5), model.recommend_batch(HISTORIES, 5))

    def test_the_same_question_has_the_same_answer(self, model: Recommender) -> None:
        assert model.recommend(HISTORIES, 20) == model.recommend(HISTORIES, 20)

    def test_an_empty_history_has_an_answer(self, model: Recommender) -> None:
        assert len(model.recommend([], n=7)) == 7

    def test_unknown_ids_are_left_out_with_a_warning(self, model: Recommender) -> None:
        with pytest.warns(UserWarning, match="left out 2 history items that the catalogue does not have"):
            answer = model.recommend(["nothing", TEXT_IDS[3], "no one"], n=5)
        assert answer == model.recommend([TEXT_IDS[3]], n=5)

    def test_a_history_of_unknown_ids_only_is_an_error(self, model: Recommender) -> None:
        with pytest.raises(QueryError, match=r"history 1 \('nothing'\) has no item of the catalogue of 32 items"):
            model.recommend([[TEXT_IDS[3]], ["nothing"]])

    @pytest.mark.parametrize("n", [0, -1, 2.5, True, "3"])
    def test_n_is_a_positive_whole_number(self, model: Recommender, n: Any) -> None:
        with pytest.raises(QueryError, match=r"n=.*: must be a whole number of at least 1"):
            model.recommend([TEXT_IDS[3]], n)

    def test_similar_items_leave_out_the_item_itself(self, model: Recommender) -> None:
        answer = ids_of(model.similar_items(TEXT_IDS[17], n=NUM_ITEMS))
        assert set(answer) == set(TEXT_IDS) - {TEXT_IDS[17]}
        if self.personal:
            assert set(answer[: GROUP_SIZE - 1]) < set(TEXT_IDS[16:24])

    def test_similar_items_of_an_unknown_item_is_an_error(self, model: Recommender) -> None:
        with pytest.raises(QueryError, match="'nothing'"):
            model.similar_items("nothing")


class RecommenderContract(QueryContract, BundleContract):
    """Inherit, and say how an unfitted estimator is made."""

    def make(self) -> Recommender:
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def model(cls) -> Recommender:
        return cls().make().fit(grouped_data(TEXT_IDS))

    def test_it_has_a_name_that_load_knows(self, model: Recommender) -> None:
        from pathdex.recommenders.registry import ESTIMATORS

        assert ESTIMATORS[model.name].endswith(f":{type(model).__name__}")

    def test_fit_returns_the_estimator(self) -> None:
        unfitted = self.make()
        assert unfitted.fit(grouped_data(TEXT_IDS)) is unfitted

    def test_params_make_an_equal_estimator(self, model: Recommender) -> None:
        params = json.loads(json.dumps(self.make().get_params()))
        again = type(model).from_params(params, seed=self.make().options.seed, threads=1)
        assert again.get_params() == self.make().get_params()
        assert same_answers(again.fit(grouped_data(TEXT_IDS)).recommend(HISTORIES, 20), model.recommend(HISTORIES, 20))

    def test_a_saved_model_keeps_its_params(self, model: Recommender, tmp_path: Path) -> None:
        opened = type(model).load(model.save(tmp_path / "bundle"))
        assert opened.get_params() == model.get_params() or model.name == "brute-force"

    def test_an_unknown_parameter_is_refused(self, model: Recommender) -> None:
        with pytest.raises(ConfigError, match="no_such_parameter"):
            type(model).from_params({"no_such_parameter": 1}).fit(grouped_data(TEXT_IDS))

    def test_what_is_not_interactions_is_refused(self) -> None:
        with pytest.raises(DataError, match=r"ratings\.csv does not exist"):
            self.make().fit("ratings.csv")
        with pytest.raises(DataError, match="source=3: a int cannot be read; pass a path"):
            self.make().fit(3)  # type: ignore[arg-type]

    def test_titles_come_back_with_every_answer_and_travel_in_the_bundle(self, tmp_path: Path) -> None:
        titles = pl.DataFrame({"item_id": TEXT_IDS[1:], "title": [f"The {one}" for one in TEXT_IDS[1:]], "price": 3})
        rows = grouped_data(TEXT_IDS)
        users = np.repeat(np.arange(rows.num_users), rows.sequences.lengths)
        frame = pl.DataFrame({"user": users, "item": rows.items.ids(rows.sequences.values)})
        model = self.make().fit(frame, items=titles)
        opened = type(model).load(model.save(tmp_path / "bundle"))
        for one in (model, opened):
            answer = one.recommend([TEXT_IDS[3]], NUM_ITEMS)
            expected = {item: None if item == TEXT_IDS[0] else f"The {item}" for item in ids_of(answer)}
            assert {item.id: item.title for item in answer} == expected
            assert {item.id: item.details for item in answer if item.id == TEXT_IDS[0]} == {TEXT_IDS[0]: {}}
            assert answer.to_frame()["price"].drop_nulls().unique().to_list() == [3]
            assert {item.title for item in one.similar_items(TEXT_IDS[3], 2)} != {None}
            cheap = one.recommend([], NUM_ITEMS, where={"price": {"max": 3}})
            assert set(ids_of(cheap)) == set(TEXT_IDS[1:])
        assert model.fit(rows).recommend([TEXT_IDS[3]], 1)[0].title is None

    def test_an_unknown_query_option_is_refused(self, model: Recommender) -> None:
        with pytest.raises(QueryError, match=rf"no_such_option=3: {model.name} takes no such option") as caught:
            model.recommend([TEXT_IDS[0]], no_such_option=3)
        assert (caught.value.argument, caught.value.value) == ("no_such_option", 3)

    @pytest.mark.parametrize("wrong", [0, -1, 2.5, True, "5", float("nan"), 2**63])
    def test_numbers_of_a_query_are_positive_whole_numbers(self, model: Recommender, wrong: Any) -> None:
        for name in ("n", *model.query_options):
            with pytest.raises(
                QueryError, match=f"{name}=.*: must be (a whole number of at least 1|below 2)"
            ) as caught:
                model.recommend([TEXT_IDS[0]], **{name: wrong})
            assert caught.value.argument == name
            assert caught.value.value is wrong

    def test_n_is_capped_by_the_catalogue(self, model: Recommender) -> None:
        everything = model.recommend([TEXT_IDS[3]], 2**31)
        assert everything == model.recommend([TEXT_IDS[3]], NUM_ITEMS)
        assert len(model.similar_items(TEXT_IDS[3], 2**31)) == NUM_ITEMS - 1

    def test_large_numbers_of_a_query_change_no_answer(self, model: Recommender) -> None:
        everything = dict.fromkeys(model.query_options, NUM_ITEMS**2)
        large = dict.fromkeys(model.query_options, 2**62)
        assert same_answers(model.recommend(HISTORIES, 9, **large), model.recommend(HISTORIES, 9, **everything))

    def test_rank_refuses_more_places_than_it_can_fill(self, model: Recommender) -> None:
        with pytest.raises(QueryError, match=r"n=2147483648: must be at most 10,000; ask for fewer items"):
            model.rank(Ragged.from_rows([[0]]), 2**31)

    def test_callbacks_see_the_training_begin_and_end(self) -> None:
        seen = RecordedTraining()
        model = self.make().fit(grouped_data(TEXT_IDS), callbacks=[seen])
        assert seen.calls == ["begin", "end"]
        assert seen.records == model.records
        assert all({"phase", "number", "seconds"} <= record.keys() for record in seen.records)

    def test_threads_and_warmup_change_no_answer(self, model: Recommender, tmp_path: Path) -> None:
        opened = type(model).load(model.save(tmp_path / "bundle"))
        assert opened.warmup() is opened
        for threads in (2, 1, None):
            opened.set_threads(threads)
            assert same_answers(opened.recommend(HISTORIES, 20), model.recommend(HISTORIES, 20))

    def test_nothing_that_is_passed_in_is_changed(self) -> None:
        data = grouped_data(TEXT_IDS)
        model = self.make().fit(data)
        histories = Ragged.from_rows([[9, 3, 3, 1], [], [2]])
        filters = Filters(exclude=Ragged.from_rows([[5, 4, 4], [7], []]), allow=[np.arange(20)] * 3)
        model.rank(histories, 5, filters)
        assert data.sequences.values.tolist() == grouped_data(TEXT_IDS).sequences.values.tolist()
        assert data.sequences.offsets.tolist() == grouped_data(TEXT_IDS).sequences.offsets.tolist()
        assert (histories.values.tolist(), histories.offsets.tolist()) == ([9, 3, 3, 1, 2], [0, 4, 4, 5])
        assert filters.exclude is not None
        assert filters.exclude.values.tolist() == [5, 4, 4, 7]

    def test_it_says_that_it_is_not_fitted(self, tmp_path: Path) -> None:
        unfitted = self.make()
        rule = rf"{type(unfitted).__name__} is not fitted; call {type(unfitted).__name__}.fit\(data\)"
        for ask in (
            lambda: unfitted.items,
            lambda: unfitted.recommend([TEXT_IDS[0]]),
            lambda: unfitted.recommend([]),
            lambda: unfitted.similar_items(TEXT_IDS[0]),
            lambda: unfitted.rank(Ragged.from_rows([[0]]), 3),
            lambda: unfitted.save(tmp_path / "bundle"),
        ):
            with pytest.raises(NotFittedError, match=rule):
                ask()
        assert not list(tmp_path.iterdir())

    def test_the_same_data_gives_the_same_model(self, model: Recommender) -> None:
        again = self.make().fit(grouped_data(TEXT_IDS))
        assert again.recommend(HISTORIES, 20) == model.recommend(HISTORIES, 20)

    def test_integer_ids_come_back_as_integers(self, model: Recommender) -> None:
        numbered = self.make().fit(grouped_data(INTEGER_IDS))
        answer = ids_of(numbered.recommend([INTEGER_IDS[0], INTEGER_IDS[5]], n=40))
        assert all(type(one) is int for one in answer)
        named = ids_of(model.recommend([TEXT_IDS[0], TEXT_IDS[5]], n=40))
        assert all(type(one) is str for one in named)
        assert [INTEGER_IDS.index(one) for one in answer] == [TEXT_IDS.index(one) for one in named]

    def test_a_saved_model_answers_the_same(self, model: Recommender, tmp_path: Path) -> None:
        path = model.save(tmp_path / "bundle")
        for opened in (type(model).load(path), pathdex.load(path), pathdex.load(tmp_path)):
            assert type(opened) is type(model)
            assert opened.history_length == model.history_length
            assert same_answers(opened.recommend(HISTORIES, 20), model.recommend(HISTORIES, 20))

    def test_an_opened_model_can_be_saved_again(self, model: Recommender, tmp_path: Path) -> None:
        opened = type(model).load(model.save(tmp_path / "first"))
        again = type(model).load(opened.save(tmp_path / "second"))
        assert same_answers(again.recommend(HISTORIES, 20), model.recommend(HISTORIES, 20))

    def test_a_saved_model_is_only_replaced_when_asked(self, model: Recommender, tmp_path: Path) -> None:
        path = model.save(tmp_path / "bundle")
        with pytest.raises(StorageError, match="exists; choose another path, remove it, or save with overwrite=True"):
            model.save(path)
        model.save(path, overwrite=True)
        assert same_answers(type(model).load(path).recommend(HISTORIES), model.recommend(HISTORIES))

    def test_the_bundle_of_another_estimator_is_refused(self, tmp_path: Path) -> None:
        path = write_bundle(tmp_path / "bundle", Bundle("another", {}))
        with pytest.raises(BundleError, match=r"holds a 'another' model, not .*; open it with pathdex.load"):
            type(self.make()).load(path)


class StopAfter(Callback):
    """Interrupts a training after a number of steps."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def on_step_end(self, progress: StepProgress) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


class ResumeContract:
    """Inherit beside `RecommenderContract` if `fit` takes `checkpoint` and `resume`."""

    @pytest.mark.parametrize("share", [0.1, 0.35, 0.6, 0.95])
    def test_an_interrupted_training_resumes_to_the_same_model(
        self, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("pathdex.training.checkpointing.CHECKPOINT_SECONDS", 0.0)  # a checkpoint after every step
        data, checkpoint, seen = grouped_data(TEXT_IDS), tmp_path / "checkpoint", RecordedTraining()
        make: Any = self.make  # type: ignore[attr-defined]
        whole = make().fit(data, callbacks=[seen])
        with pytest.raises(KeyboardInterrupt):
            make().fit(data, callbacks=[StopAfter(max(1, int(share * len(seen.steps))))], checkpoint=checkpoint)
        resumed = make().fit(data, callbacks=(), checkpoint=checkpoint, resume=True)
        first, second = whole.to_bundle(), resumed.to_bundle()
        assert {**first.arrays, **first.weights}.keys() == {**second.arrays, **second.weights}.keys()
        for arrays, others in ((first.arrays, second.arrays), (first.weights, second.weights)):
            for name, array in arrays.items():
                np.testing.assert_array_equal(array, others[name], err_msg=name)

        def losses(model: Recommender) -> list[dict[str, Any]]:
            return [
                {name: one for name, one in record.items() if not name.endswith("seconds")} for record in model.records
            ]

        assert losses(resumed) == losses(whole)

    def test_an_existing_checkpoint_is_never_overwritten_by_a_new_training(self, tmp_path: Path) -> None:
        make: Any = self.make  # type: ignore[attr-defined]
        make().fit(grouped_data(TEXT_IDS), callbacks=(), checkpoint=tmp_path / "checkpoint")
        before = (tmp_path / "checkpoint").read_bytes()
        with pytest.raises(RunError, match="exists; pass resume=True to continue from it, or another path"):
            make().fit(grouped_data(TEXT_IDS), callbacks=(), checkpoint=tmp_path / "checkpoint")
        assert (tmp_path / "checkpoint").read_bytes() == before

    def test_resuming_needs_a_checkpoint(self) -> None:
        make: Any = self.make  # type: ignore[attr-defined]
        with pytest.raises(ConfigError, match="resume=True: needs a checkpoint; pass checkpoint=FILE"):
            make().fit(grouped_data(TEXT_IDS), callbacks=(), resume=True)

    def test_a_checkpoint_of_another_training_is_refused(self, tmp_path: Path) -> None:
        make: Any = self.make  # type: ignore[attr-defined]
        make().fit(grouped_data(TEXT_IDS), callbacks=(), checkpoint=tmp_path / "checkpoint")
        fewer = grouped_data(TEXT_IDS).take(np.arange(USERS - 1))
        with pytest.raises(RunError, match="was written with a different data; resume with the same"):
            make().fit(fewer, callbacks=(), checkpoint=tmp_path / "checkpoint", resume=True)
