"""The three cases of the score update by hand, and the table against dictionaries."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.errors import ConfigError, DataError
from pathdex.index.scores import ScoreTable, update_scores

# float32 holds these scores exactly, so the numbers below can be checked by hand.
CODES, SCORES = [5, 7, 9], [4.0, 2.0, 1.0]


def update(new_codes, new_scores, codes=CODES, scores=SCORES, decay=0.5):
    codes, scores = update_scores(codes, scores, new_codes, new_scores, decay)
    return dict(zip(codes.tolist(), scores.tolist(), strict=True))


def test_a_path_in_both_lists_is_decayed_and_added_to():
    assert update([7], [3.0])[7] == 0.5 * 2.0 + 3.0


def test_a_path_only_in_the_new_list_starts_from_the_smallest_score():
    assert update([8], [3.0])[8] == 0.5 * 1.0 + 3.0


def test_a_path_only_in_the_old_list_is_decayed():
    assert update([7], [3.0])[5] == 0.5 * 4.0


def test_the_largest_stay_best_first():
    codes, scores = update_scores(CODES, SCORES, [8, 7], [3.0, 3.0], 0.5)
    assert codes.tolist() == [7, 8, 5]
    assert scores.tolist() == [4.0, 3.5, 2.0]


def test_a_path_that_stays_below_the_list_does_not_enter():
    assert update([8], [0.0]) == {5: 2.0, 7: 1.0, 9: 0.5}  # 8 ties with 9, which was there before


def test_the_smallest_score_counts_as_zero_until_the_list_is_full():
    assert update([8], [3.0], codes=[5, 7, -1], scores=[4.0, 2.0, 0.0]) == {5: 2.0, 7: 1.0, 8: 3.0}


def test_without_min_score_a_new_path_starts_from_zero():
    table = ScoreTable(np.array([CODES]), np.array([SCORES], np.float32))
    table.update([0], [[8, 7]], [[3.0, 3.0]], 0.5, min_score=False)
    assert dict(zip(table.codes[0].tolist(), table.scores[0].tolist(), strict=True)) == {7: 4.0, 8: 3.0, 5: 2.0}


def test_padding_is_ignored():
    assert update([-1, 7, -1], [9.0, 3.0, 9.0]) == {7: 4.0, 5: 2.0, 9: 0.5}


def test_update_scores_does_not_change_its_input():
    codes, scores = np.array(CODES), np.array(SCORES, np.float32)
    update_scores(codes, scores, [8], [3.0], 0.5)
    assert codes.tolist() == CODES
    assert scores.tolist() == SCORES


def test_a_table_applies_instances_in_their_order():
    table = ScoreTable.empty(num_items=3, candidate_paths=2)
    table.update([2, 0, 2], [[4, 6], [1, -1], [6, 8]], [[1.0, 0.5], [2.0, 0.0], [0.25, 3.0]], decay=1.0)
    assert table.codes.tolist() == [[1, -1], [-1, -1], [8, 4]]
    assert table.scores.tolist() == [[2.0, 0.0], [0.0, 0.0], [3.5, 1.0]]


def test_set_rows_replaces_a_row_by_the_best_of_a_list():
    table = ScoreTable.empty(num_items=2, candidate_paths=2)
    table.update([0, 1], [[1], [1]], [[1.0], [1.0]], decay=1.0)
    table.set_rows([1], [[5, 6, 7, -1, 5]], [[1.0, 1.5, 0.5, 9.0, 1.0]])
    assert table.codes.tolist() == [[1, -1], [5, 6]]
    assert table.scores.tolist() == [[1.0, 0.0], [2.0, 1.5]]
    table.set_rows([1], [[3]], [[0.5]])
    assert table.codes.tolist() == [[1, -1], [3, -1]]


def test_the_repr_is_short():
    assert repr(ScoreTable.empty(1200, 50)) == "ScoreTable(1,200 items, 50 paths each)"


def twin(row, new, size, decay):
    """The paper's update on dicts, read off Section 3. Python's sort is stable, so ties keep the order of the union."""
    decay = np.float32(decay)
    min_score = min(row.values()) if len(row) == size else np.float32(0)
    updated = {c: decay * s for c, s in row.items() if c not in new}
    for c, s in new.items():
        updated[c] = decay * row.get(c, min_score) + s
    return dict(sorted(updated.items(), key=lambda pair: -pair[1])[:size])


instances = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.lists(st.tuples(st.integers(0, 9), st.floats(0, 1, width=32)), max_size=5, unique_by=lambda pair: pair[0]),
    ),
    max_size=30,
)


@settings(max_examples=100, deadline=None)
@given(instances, st.integers(1, 6), st.sampled_from([1.0, 0.999, 0.5]), st.integers(1, 2))
def test_the_compiled_table_agrees_with_the_paper_on_any_number_of_threads(stream, size, decay, threads):
    expected = [{} for _ in range(4)]
    codes, scores = np.full((len(stream), 5), -1), np.zeros((len(stream), 5), np.float32)
    for i, (item, pairs) in enumerate(stream):
        expected[item] = twin(expected[item], {c: np.float32(s) for c, s in pairs}, size, decay)
        for b, (c, s) in enumerate(pairs):
            codes[i, b], scores[i, b] = c, s
    table = ScoreTable.empty(4, size)
    before = numba.get_num_threads()
    numba.set_num_threads(min(threads, before))
    table.update(np.array([item for item, _ in stream], np.int64), codes, scores, decay)
    numba.set_num_threads(before)
    for item, row in enumerate(expected):
        known = table.codes[item] >= 0
        assert table.codes[item, known].tolist() == list(row)
        assert table.scores[item, known].tolist() == list(row.values())


@pytest.mark.parametrize(
    ("items", "codes", "scores", "message"),
    [
        ([2], [[1]], [[1.0]], "items: holds 2, must stay below 2; the table has no such row"),
        ([-1], [[1]], [[1.0]], "items: holds -1, must hold no value below 0"),
        ([0], [[1], [2]], [[1.0]], r"codes: has shape \(2, 1\), must have shape \(1, any\)"),
        ([0], [[-2]], [[1.0]], "codes: holds -2, must hold no value below -1"),
        ([0], [[1]], [[1.0, 2.0]], r"scores: has shape \(1, 2\), must have shape \(1, 1\)"),
        ([0], [[1]], [[-1.0]], "scores: must hold finite values of at least 0; pass probabilities"),
        ([0], [[1]], [[np.nan]], "scores: must hold finite values of at least 0"),
        ([0], [[1, 1]], [[1.0, 1.0]], "codes: row 0 holds a path twice, must be distinct"),
    ],
)
def test_invalid_instances_are_refused_and_change_nothing(items, codes, scores, message):
    table = ScoreTable.empty(2, 3)
    with pytest.raises(DataError, match=message):
        table.update(items, codes, scores, decay=0.9)
    assert (table.codes == -1).all()


def test_an_item_twice_in_set_rows_is_refused():
    with pytest.raises(DataError, match="items: holds an item twice, must be distinct; join the lists"):
        ScoreTable.empty(2, 3).set_rows([1, 1], [[1], [2]], [[1.0], [1.0]])


def test_settings_out_of_range_are_refused():
    with pytest.raises(ConfigError, match="candidate_paths=0: must be a whole number of at least 1"):
        ScoreTable.empty(2, 0)
    with pytest.raises(ConfigError, match=r"decay=1\.5: must be a finite number between 0 and 1"):
        update_scores([1], [1.0], [1], [1.0], 1.5)
