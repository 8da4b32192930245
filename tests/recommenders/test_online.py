"""Learning online: events, new and removed items change the answers of a model at once."""

import numpy as np
import polars as pl
import pytest

import pathdex
from pathdex.data.attributes import Attributes
from pathdex.data.events import Event
from pathdex.errors import DataError, NotFittedError, QueryError
from pathdex.kernels.neighbours import Neighbours
from pathdex.recommenders.stream_neighbours import NEW, carry_neighbours

SMALL = {"embedding_dim": 8, "history_length": 6, "num_nodes": 5, "depth": 2, "path_size": 4, "structure_hidden": 16}


def events(users=30, rounds=1):
    """Users walk through ten items in order, from different starts."""
    return [
        (user, (user + time) % 10, time + 100 * turn)
        for turn in range(rounds)
        for time in range(6)
        for user in range(users)
    ]


def first_nodes(model, item):
    """New items start on the paths of similar ones, or beside them where those are full."""
    return [nodes[0] for nodes in model.item_paths(item)]


@pytest.fixture(scope="module")
def streamed():
    return pathdex.DeepRetrieval(**SMALL).partial_fit(events(rounds=60))


@pytest.fixture
def fitted():
    rows = [(user, (user + time) % 10, time) for user in range(30) for time in range(6)]
    data = pathdex.read(pl.DataFrame(rows, schema=["user", "item", "time"], orient="row"))
    return pathdex.DeepRetrieval(**SMALL, epochs=2, rounds=1, neighbours=3).fit(data, callbacks=[])


def test_a_model_learns_from_nothing_what_follows(streamed):
    best = [streamed.recommend([item], 2, exclude_seen=True)[0].id for item in range(10)]
    assert np.mean([after == (item + 1) % 10 for item, after in enumerate(best)]) >= 0.8


def test_a_saved_model_answers_as_before(streamed, tmp_path):
    streamed.save(tmp_path / "model")
    assert pathdex.load(tmp_path / "model").recommend([3], 4) == streamed.recommend([3], 4)


def test_a_new_item_is_in_the_catalogue_after_its_first_event(fitted):
    fitted.partial_fit([(1, 77, 50)])
    assert 77 in fitted.items
    assert len(fitted.item_paths(77)) == 3
    assert 77 in [one.id for one in fitted.recommend([1, 2], 11, exclude_seen=False)]


def test_events_have_several_forms(fitted):
    before = fitted.model_state.counts.sum()
    fitted.partial_fit([(1, 2), Event(1, 3, 60.0), {"user_id": 1, "item_id": 4, "timestamp": 61}])
    assert fitted.model_state.counts.sum() == before + 3


def test_observing_a_history_changes_its_answers(fitted):
    for _ in range(60):
        fitted.observe([1], 6)
    assert fitted.recommend([1], 1)[0].id == 6


def test_a_history_must_be_a_list(fitted):
    with pytest.raises(QueryError, match=r"pass \[1\]"):
        fitted.observe(1, 6)


def test_an_added_item_starts_beside_a_similar_one(fitted):
    fitted.add_items(["10", "11"], like={"11": [3]})
    assert first_nodes(fitted, 11) == first_nodes(fitted, 3)
    assert {10, 11} <= set(fitted.items.ids(range(12)))


def test_similar_items_must_be_known_and_belong_to_a_new_item(fitted):
    with pytest.raises(QueryError, match="99 is unknown"):
        fitted.add_items([10], like={10: [99]})
    with pytest.raises(QueryError, match="not among the items"):
        fitted.add_items([10], like={12: [3]})
    assert 10 not in fitted.items


def test_a_removed_item_disappears_everywhere(fitted):
    fitted.remove_items([3])
    assert 3 not in fitted.items
    assert 3 not in [one.id for one in fitted.recommend([2], 9, exclude_seen=False)]
    assert 3 not in [one.id for one in fitted.similar_items(2, 8)]
    assert len(fitted.recommend([2], 20, exclude_seen=False)) == 9


def test_the_last_item_cannot_be_removed(fitted):
    with pytest.raises(QueryError, match="would leave no item"):
        fitted.remove_items(range(10))
    assert len(fitted.items) == 10


@pytest.mark.parametrize("wrong", [None, 3.5, "", b"x", True, "x" * 10_000])
def test_ids_of_new_items_follow_the_rules_of_events(fitted, wrong):
    for call in (lambda: fitted.add_items([wrong]), lambda: fitted.observe([1], wrong)):
        with pytest.raises(QueryError, match="item"):
            call()
    assert len(fitted.items) == 10


def test_new_items_are_a_list(fitted):
    with pytest.raises(QueryError, match=r"pass \['abc'\]"):
        fitted.add_items("abc")


def test_unknown_items_are_not_removed_and_nothing_else_is(fitted):
    with pytest.raises(QueryError, match="is not in the catalogue"):
        fitted.remove_items([3, 99])
    assert 3 in fitted.items


def test_the_item_that_reuses_a_slot_has_no_neighbours_of_the_old_one(fitted):
    fitted.remove_items([3])
    fitted.add_items([30])
    near = fitted.model_state.neighbours
    code = fitted.items.code(30)
    assert near.offsets[code + 1] == near.offsets[code]
    assert code not in near.items


def test_reassigning_keeps_all_items_on_paths(fitted):
    fitted.partial_fit(events())
    fitted.reassign()
    assert fitted.health().unreachable_items == 0


def test_a_malformed_event_is_reported_with_its_number_and_the_rest_is_kept(fitted):
    good = [(1, 2, float(time)) for time in range(10, 300)]
    with pytest.raises(DataError, match=r"event 290: .*item"):
        fitted.partial_fit([*good, (1, None)])
    assert fitted.model_state.counts[fitted.items.code(2)] > 200


@pytest.mark.parametrize("events", [5, None, "ada", {"user": 1, "item": 2}, Event(1, 2)])
def test_what_is_no_list_of_events_is_rejected(events):
    with pytest.raises(
        DataError, match=r"^events=.*: must be a list of events; pass a list of tuples \(user, item, time\)"
    ):
        pathdex.DeepRetrieval(**SMALL).partial_fit(events)


def test_one_id_is_no_list_of_ids(fitted):
    for change in (fitted.add_items, fitted.remove_items):
        with pytest.raises(QueryError, match=r"^ids=5: must be a list of ids; pass \[5\]"):
            change(5)
        with pytest.raises(QueryError, match=r"^ids='ab': must be a list of ids, not text; pass \['ab'\]"):
            change("ab")


def test_events_of_a_removed_item_are_ignored_until_it_is_added_again(fitted):
    fitted.remove_items([3])
    fitted.partial_fit([("someone", 3, 900.0), ("someone", 4, 901.0)])
    fitted.observe([4], 3)
    assert 3 not in fitted.items
    assert 4 in fitted.items
    fitted.add_items([3])
    fitted.partial_fit([("someone", 3, 902.0)])
    assert 3 in fitted.items


def test_wrong_tuples_are_rejected(fitted):
    with pytest.raises(DataError, match=r"event 0: \(1,\) must be"):
        fitted.partial_fit([(1,)])


def test_an_empty_stream_leaves_an_unfitted_model_unfitted():
    model = pathdex.DeepRetrieval(**SMALL).partial_fit([])
    with pytest.raises(NotFittedError):
        model.recommend([1])


def test_fitting_again_forgets_what_was_learned_online(fitted):
    fitted.partial_fit([(1, 77, 50)])
    data = pathdex.read(pl.DataFrame([{"user": 1, "item": item, "time": item} for item in range(5)]))
    fitted.fit(data, callbacks=[])
    fitted.partial_fit([(1, 3, 50)])
    assert 77 not in fitted.items


def test_neighbours_follow_their_items():
    near = Neighbours(np.array([0, 2, 3, 4]), np.array([1, 2, 0, 0], np.int32), np.array([3, 2, 3, 2], np.float32))
    found = carry_neighbours(near, np.array([2, NEW, 0]))
    assert found.offsets.tolist() == [0, 1, 1, 2]
    assert found.items.tolist() == [2, 0]  # Old items 0 and 2, each other's neighbours.
    assert found.similarities.tolist() == [2, 2]


GENRES = pl.DataFrame({"item_id": list(range(13)), "genre": ["odd", "even"] * 6 + ["new"]})


def test_a_described_item_starts_near_items_with_the_same_values(fitted):
    fitted.add_items([20, 21], attributes={20: {"genre": "a", "year": 1999}, 21: {"genre": ["b"], "year": 2001}})
    fitted.add_items([30, 31], attributes={30: {"genre": "B|c"}, 31: {"year": 1999}})
    assert first_nodes(fitted, 30) == first_nodes(fitted, 21)
    assert first_nodes(fitted, 31) == first_nodes(fitted, 20)


def test_the_attached_table_describes_known_and_new_items(fitted):
    fitted.attach(Attributes.read(GENRES))
    nodes = {item: set(first_nodes(fitted, item)) for item in range(10)}
    fitted.add_items([50], attributes={50: {"genre": "odd"}})
    assert set(first_nodes(fitted, 50)) <= set.union(*(nodes[item] for item in range(0, 10, 2)))
    fitted.add_items([40], like={40: [3]}, attributes={40: {"genre": "new"}})
    fitted.add_items([12])  # A row of the table says what it is.
    assert first_nodes(fitted, 12) == first_nodes(fitted, 40) == first_nodes(fitted, 3)


def test_a_filter_follows_the_catalogue(fitted):
    fitted.attach(Attributes.read(GENRES))
    fitted.partial_fit([(1, 12, 9.0)])
    assert [one.id for one in fitted.recommend([1], 5, where={"genre": "new"})] == [12]
    fitted.remove_items([0])
    found = fitted.recommend([1], 9, where={"genre": "odd"}, exclude_seen=False)
    assert sorted(one.id for one in found) == [2, 4, 6, 8]


def test_attributes_must_be_values_of_new_items(fitted):
    with pytest.raises(QueryError, match=r"attributes=\[12\]: names 12, which is not among the items; describe new"):
        fitted.add_items([10], attributes={12: {"genre": "a"}})
    with pytest.raises(QueryError, match=r"attributes\[10\]='a': attributes must map columns to values, not 'a'; map"):
        fitted.add_items([10], attributes={10: "a"})
    assert 10 not in fitted.items


def test_a_data_frame_is_refused_with_the_way_to_pass_it():
    frame = pytest.importorskip("pandas").DataFrame({"user": [1], "item": [2]})
    with pytest.raises(DataError, match=r"events='DataFrame': .*; pass df.*itertuples\(index=False, name=None\)"):
        pathdex.DeepRetrieval(**SMALL).partial_fit(frame)
