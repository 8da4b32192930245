"""Items that share attribute values, by hand."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pathdex.training.stream import attribute_index
from pathdex.training.stream.attribute_index import AttributeIndex

COUNTS = np.zeros(20, np.int64)


def index_of(**items):
    index = AttributeIndex()
    for name, values in items.items():
        index.describe(int(name[1:]), values.split())
    return index


def test_the_similarity_is_a_weighted_jaccard():
    index = index_of(s0="a b", s1="a c", s2="a", s3="b")
    a, b = math.log(5 / 4), math.log(5 / 3)
    slots, weights = index.nearest(["a", "b"], COUNTS)
    assert slots == [0, 3, 2, 1]
    c = math.log(5 / 2)
    np.testing.assert_allclose(weights, [1.0, b / (a + b), a / (a + b), a / (a + b + c)])


def test_rare_values_count_more():
    index = index_of(s0="common", s1="common", s2="common rare", s3="rare", s4="other")
    assert index.nearest(["common", "rare"], COUNTS)[0][:2] == [2, 3]


def test_a_value_that_all_items_have_counts_nothing():
    index = index_of(s0="all", s1="all")
    assert index.nearest(["all"], COUNTS) == ([], [])


def test_of_equal_matches_the_most_frequent_is_the_best():
    index = index_of(s0="a", s1="a", s2="a", s3="b")
    assert index.nearest(["a"], np.array([1, 5, 5, 9]))[0] == [1, 2, 0]


def test_only_the_best_matches_are_taken(monkeypatch):
    monkeypatch.setattr(attribute_index, "NEAREST", 2)
    index = index_of(s0="a", s1="a", s2="a", s3="b")
    assert index.nearest(["a"], COUNTS)[0] == [0, 1]


def test_of_a_long_list_the_items_described_last_are_compared(monkeypatch):
    monkeypatch.setattr(attribute_index, "LISTED", 2)
    index = index_of(s0="a", s1="a", s2="a", s3="b")
    assert sorted(index.nearest(["a"], COUNTS)[0]) == [1, 2]
    index.describe(0, ["a"])
    assert sorted(index.nearest(["a"], COUNTS)[0]) == [0, 2]


def test_only_the_rarest_values_are_compared(monkeypatch):
    monkeypatch.setattr(attribute_index, "COMPARED", 1)
    index = index_of(s0="a", s1="a", s2="b", s3="c")
    assert index.nearest(["a", "b"], COUNTS)[0] == [2]


def test_without_a_shared_value_there_is_no_match():
    assert index_of(s0="a", s1="b").nearest(["c"], COUNTS) == ([], [])
    assert AttributeIndex().nearest(["a"], COUNTS) == ([], [])


def test_forgotten_items_leave_nothing():
    index = index_of(s0="a b", s1="a", s2="c")
    index.forget(0)
    index.forget(7)
    assert index.nearest(["b"], COUNTS) == ([], [])
    assert index.nearest(["a"], COUNTS)[0] == [1]
    assert (len(index), 0 in index, 1 in index) == (2, False, True)
    index.describe(1, [])
    assert 1 not in index


actions = st.lists(
    st.tuples(st.integers(0, 6), st.lists(st.sampled_from("abcdé"), max_size=3, unique=True)), max_size=20
)


@given(actions=actions, wanted=st.lists(st.sampled_from("abcdé"), min_size=1, max_size=3, unique=True))
def test_a_checkpoint_holds_all_of_it(actions, wanted):
    index, again = AttributeIndex(), AttributeIndex()
    for slot, values in actions:
        index.describe(slot, values) if values else index.forget(slot)
    again.load_state_dict(index.state_dict())
    assert again.nearest(wanted, COUNTS) == index.nearest(wanted, COUNTS)
    for slot in (5, 2):
        for one in (index, again):
            one.describe(slot, ["a", "new"])
    for name, array in index.state_dict().items():
        assert array.tobytes() == again.state_dict()[name].tobytes()


def test_a_checkpoint_of_an_earlier_release_has_no_attributes():
    index = index_of(s0="a")
    index.load_state_dict({})
    assert len(index) == 0
