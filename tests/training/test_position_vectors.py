"""Vectors of positions, one by one or read ahead in the order of the file."""

from __future__ import annotations

import numpy as np
import pytest

from pathdex.storage.scratch import VARIABLE, scratch_array
from pathdex.training import position_vectors, sample_order
from pathdex.training.position_vectors import BatchVectors, PositionVectors


def make(count: int = 500, dim: int = 6) -> tuple[np.ndarray, np.ndarray]:
    vectors = scratch_array((count, dim), np.float32, scattered=True)
    vectors[:] = np.random.default_rng(0).random((count, dim))
    return vectors, np.maximum(np.arange(count) - np.random.default_rng(1).integers(0, 5, count), 0)


@pytest.fixture(params=["in memory", "large, from a file"])
def storage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param != "in memory":
        monkeypatch.setenv(VARIABLE, "0")
        monkeypatch.setattr(sample_order, "LARGE", 100)
        monkeypatch.setattr(position_vectors, "AHEAD_BYTES", 1000)
        monkeypatch.setattr(position_vectors, "SORTED", 16)
    return str(request.param)


def test_vectors_are_those_of_the_readers(storage: str) -> None:
    vectors, readers = make()
    positions = np.random.default_rng(2).integers(0, 500, (40, 3))
    np.testing.assert_array_equal(PositionVectors(vectors)[positions], vectors[positions])
    np.testing.assert_array_equal(PositionVectors(vectors, readers)[positions], vectors[readers[positions]])


@pytest.mark.parametrize("shape", [(41,), (41, 3)])
def test_parts_are_slices_with_their_vectors(storage: str, shape: tuple[int, ...]) -> None:
    vectors, readers = make()
    positions = np.random.default_rng(2).integers(0, 500, shape)
    found = [(part, own.copy()) for part, own in PositionVectors(vectors, readers).parts(positions, 7)]
    assert [part.start for part, _ in found] == list(range(0, 41, 7))
    np.testing.assert_array_equal(np.concatenate([own for _, own in found]), vectors[readers[positions]])
    for part, own in found:
        np.testing.assert_array_equal(own, vectors[readers[positions[part]]])


def test_batches_may_start_anywhere(storage: str) -> None:
    """As they do when a training is resumed."""
    vectors, readers = make()
    order = np.random.default_rng(2).permutation(500)
    batches = BatchVectors(PositionVectors(vectors, readers), order, 16)
    for batch in (5, 6, 7, 31, 0, 12):
        expected = vectors[readers[order[batch * 16 : (batch + 1) * 16]]]
        np.testing.assert_array_equal(batches[batch], expected)


def test_large_vectors_are_read_for_several_batches_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_order, "LARGE", 100)
    monkeypatch.setattr(position_vectors, "AHEAD_BYTES", 4 * 16 * 6 * 4)
    vectors, readers = make()
    asked: list[np.ndarray] = []
    monkeypatch.setattr(position_vectors, "read_soon", lambda _, rows: asked.append(rows))
    batches = BatchVectors(PositionVectors(vectors, readers), np.random.default_rng(2).permutation(500), 16)
    for batch in range(8):
        assert batches[batch].shape == (16, 6)
    assert [len(rows) for rows in asked] == [64, 64]
    assert all((np.diff(rows) >= 0).all() for rows in asked)
