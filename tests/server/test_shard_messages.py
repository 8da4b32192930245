"""Arrays survive JSON."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from pathdex.server.shard_messages import Tensor, floats, ints, longs, to_bytes


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_tensors_survive_json(dtype: str) -> None:
    array = (np.arange(12).reshape(3, 4) * 1.7).astype(dtype)
    sent = msgspec.json.encode(Tensor.pack(array[:, ::2]))
    found = msgspec.json.decode(sent, type=Tensor).unpack()
    assert np.array_equal(found, array[:, ::2])
    assert found.dtype == dtype


def test_bytes_of_numbers() -> None:
    assert ints(to_bytes(np.array([1, 2**31 - 1]), "int32")).tolist() == [1, 2**31 - 1]
    assert longs(to_bytes(np.array([2**60]), "int64")).tolist() == [2**60]
    assert floats(to_bytes(np.array([0.5]), "float32")).tolist() == [0.5]
