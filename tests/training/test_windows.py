import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.data.ragged import Ragged
from pathdex.training.windows import START, cut_windows, draw_readers, sequential_batches

SEQUENCES = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=23), min_size=1, max_size=6)


def samples(sequences: Ragged, length: int, seed: int) -> list[tuple[int, list[int]]]:
    """Every sample as (position of the target, inputs that its state has read)."""
    windows = cut_windows(sequences, length, np.random.default_rng(seed))
    return [
        (int(position), batch.inputs[window, : time + 1].tolist())
        for batch in sequential_batches(windows, 8)
        for window, time, position in zip(batch.window, batch.time, batch.position, strict=True)
    ]


def test_short_sequence_is_one_window() -> None:
    assert samples(Ragged.from_rows([[4, 5, 6]]), 8, 0) == [(0, [START]), (1, [START, 4]), (2, [START, 4, 5])]


@settings(max_examples=60, deadline=None)
@given(rows=SEQUENCES, length=st.integers(1, 9), seed=st.integers(0, 9))
def test_every_interaction_is_the_target_of_one_sample_with_its_own_past(
    rows: list[list[int]], length: int, seed: int
) -> None:
    sequences = Ragged.from_rows(rows)
    found = samples(sequences, length, seed)
    assert sorted(position for position, _ in found) == list(range(len(sequences.values)))
    for position, read in found:
        row = int(np.searchsorted(sequences.offsets, position, side="right")) - 1
        past = [START, *sequences.values[sequences.offsets[row] : position].tolist()]
        assert past[len(past) - len(read) :] == read
        assert len(read) <= length
        assert len(read) >= min(len(past), length // 2 + 1)


@settings(max_examples=30, deadline=None)
@given(rows=SEQUENCES, size=st.integers(1, 30), seed=st.integers(0, 9))
def test_batches_contain_every_window_once(rows: list[list[int]], size: int, seed: int) -> None:
    windows = cut_windows(Ragged.from_rows(rows), 6, np.random.default_rng(seed))
    batches = windows.batches(size, np.random.default_rng(seed))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(windows.context)))


@settings(max_examples=60, deadline=None)
@given(rows=SEQUENCES, reach=st.integers(1, 5), seed=st.integers(0, 9))
def test_targets_can_be_predicted_from_an_earlier_history(rows: list[list[int]], reach: int, seed: int) -> None:
    sequences = Ragged.from_rows(rows)
    readers = draw_readers(sequences, reach, np.random.default_rng(seed))
    own = np.arange(len(sequences.values))
    starts = np.repeat(sequences.offsets[:-1], sequences.lengths)
    assert (readers >= np.maximum(own - reach + 1, starts)).all()
    assert (readers <= own).all()
    for batch in sequential_batches(cut_windows(sequences, 12, np.random.default_rng(seed)), 8):
        earlier = batch.read_earlier(readers)
        first_position = {w: int(p - t) for w, t, p in zip(batch.window, batch.time, batch.position, strict=True)}
        earliest = {(w, p): int(e) for w, p, e in zip(batch.window, batch.position, batch.earliest, strict=True)}
        assert earlier.targets.tolist() == batch.targets.tolist()
        for window, time, position in zip(earlier.window, earlier.time, earlier.position, strict=True):
            read = earlier.inputs[window, : time + 1].tolist()
            end = first_position[window] + time
            past = [START, *sequences.values[starts[position] : end].tolist()]
            assert past[len(past) - len(read) :] == read
            assert starts[position] <= end <= position
            assert end == readers[position] or readers[position] < first_position[window] + earliest[(window, position)]


def test_near_readers_are_drawn_more_often() -> None:
    sequences = Ragged.from_rows([[0, 1, 2, 3]] * 3000)
    back = np.arange(12_000) - draw_readers(sequences, 3, np.random.default_rng(0))
    weights = np.array([1, 1 / 2, 1 / 3])
    for place, choices in enumerate([1, 2, 3, 3]):
        counts = np.bincount(back[place::4], minlength=3)
        assert (counts[choices:] == 0).all()
        np.testing.assert_allclose(counts[:choices], 3000 * weights[:choices] / weights[:choices].sum(), rtol=0.1)


def test_a_window_in_the_middle_predicts_from_states_that_have_read_half_of_its_context() -> None:
    sequences = Ragged.from_rows([range(40)])
    windows = cut_windows(sequences, 8, np.random.default_rng(0))
    for number in range(len(windows.context)):
        batch = windows.batch(np.array([number])).read_earlier(np.zeros(40, np.int64), np.arange(40) % 2 == 0)
        context = int(windows.first[number] - windows.context[number])
        assert (batch.time >= (0 if windows.at_start[number] else context // 2)).all()
        assert batch.mapped is not None
        assert batch.mapped.tolist() == (batch.position % 2 == 0).tolist()


def test_batches_of_large_data_have_windows_that_are_near_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pathdex.training.sample_order.LARGE", 100)
    monkeypatch.setattr("pathdex.training.windows.WINDOW", 64)
    lengths = np.random.default_rng(0).integers(1, 9, 400)
    sequences = Ragged.from_rows([np.arange(length) for length in lengths])
    batches = list(sequential_batches(cut_windows(sequences, 8, np.random.default_rng(0)), 16))
    assert sorted(np.concatenate([batch.position for batch in batches])) == list(range(lengths.sum()))
    assert max(np.ptp(batch.position) for batch in batches) < 2 * 64 + 16
    assert len({batch.inputs.shape[1] for batch in batches}) > 1  # sorted by length within a run
