"""Rules for arrays from files: dtypes, shapes, values and orders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathdex.storage import array_spec
from pathdex.storage.array_spec import (
    ArraySpec,
    array_problems,
    blocks,
    index_spec,
    offsets_spec,
    order_spec,
    weight_spec,
)


def problem(array: Any, spec: ArraySpec) -> str | None:
    found = array_problems({"x": array}, {"x": spec})
    assert len(found) <= 1
    return found[0].removeprefix("x: ") if found else None


def ints(*values: int, dtype: Any = np.int64) -> Any:
    return np.array(values, dtype)


@pytest.fixture(params=[1, 3, 2**22], autouse=True)
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every rule holds whatever the size of the blocks."""
    monkeypatch.setattr(array_spec, "BLOCK", request.param)


def test_the_dtype() -> None:
    assert problem(np.zeros(3), weight_spec(3)) == "has dtype float64, must have float32"
    assert problem(np.zeros(3, ">f4"), weight_spec(3)) == "has dtype >f4, must have float32"
    assert problem(np.zeros(3, np.float32), weight_spec(3)) is None


def test_the_shape() -> None:
    assert problem(np.zeros((2, 3), np.float32), weight_spec(2, 3)) is None
    assert problem(np.zeros((2, 3), np.float32), weight_spec(3, 2)) == "has shape (2, 3), must have shape (3, 2)"
    assert problem(np.zeros(6, np.float32), weight_spec(3, 2)) == "has shape (6,), must have shape (3, 2)"


def test_the_layout() -> None:
    columns = np.asfortranarray(np.zeros((2, 3), np.float32))
    assert problem(columns, weight_spec(2, 3)) == "is stored column by column, must be stored row by row"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_floats_are_finite(value: float) -> None:
    array = np.array([0, 1, value, 2], np.float32)
    assert problem(array, weight_spec(4)) == "holds NaN or infinity, must be finite"


def test_the_range() -> None:
    assert (
        problem(np.array([0, -2e5], np.float32), weight_spec(2))
        == "holds -200000.0, must hold no value below -100000.0"
    )
    assert problem(ints(0, 1, 5), index_spec(3, below=5, dtype="int64")) == "holds 5, must hold no value above 4"
    assert problem(ints(0, -1, 4), index_spec(3, below=5, dtype="int64")) == "holds -1, must hold no value below 0"
    assert problem(ints(0, -1, 4), index_spec(3, below=5, dtype="int64", low=-1)) is None
    assert problem(ints(2**62), index_spec(1, below=2**62, dtype="int64")) is not None


def test_ascending() -> None:
    spec = ArraySpec(dtype="int64", shape=("n",), low=0, order="ascending")
    assert problem(ints(0, 2, 9), spec) is None
    assert problem(ints(), spec) is None
    for wrong in (ints(0, 2, 2, 9), ints(0, 3, 2, 9), ints(0, 1, 2, 3, 3)):
        assert problem(wrong, spec) == "must be ascending and distinct"


def test_offsets() -> None:
    spec = offsets_spec(4, 7)
    assert problem(ints(0, 2, 2, 7), spec) is None
    assert problem(ints(0, 3, 2, 7), spec) == "must never descend"
    assert problem(ints(1, 2, 2, 7), spec) == problem(ints(0, 2, 2, 6), spec) == "must begin at 0 and end at 7"
    assert problem(ints(0, 2, 2, 7), offsets_spec(4, 7, step=1)) == "must be ascending"
    assert problem(ints(0, -(2**63), 2, 7), spec) == f"holds {-(2**63)}, must hold no value below 0"


def test_permutations() -> None:
    assert problem(ints(2, 0, 1), order_spec(3)) is None
    for wrong in (ints(2, 0, 0), ints(2, 0, 3), ints(2, 0, -1)):
        assert problem(wrong, order_spec(3)) == "must hold every number from 0 to 2 once"


def test_arrays_agree_on_a_length_that_only_the_file_knows() -> None:
    specs = {"offsets": offsets_spec("paths+1", "entries"), "items": index_spec("entries", below=9)}
    specs["paths"] = index_spec("paths", below=99, dtype="int64")
    good = {"offsets": ints(0, 1, 3), "items": ints(4, 5, 6, dtype=np.int32), "paths": ints(7, 8)}
    assert array_problems(good, specs) == []
    longer = {**good, "paths": ints(7, 8, 9)}
    assert array_problems(longer, specs) == ["paths: has shape (3,), must have shape (2)"]
    shorter = {**good, "items": ints(4, 5, dtype=np.int32)}
    assert array_problems(shorter, specs) == ["offsets: must begin at 0 and end at 2"]
    assert array_problems({**good, "offsets": ints()}, specs) != []


def test_missing_and_unknown_arrays_are_problems() -> None:
    specs = {"one": weight_spec(1), "two": ArraySpec(dtype="int64", shape=(1,), optional=True)}
    assert array_problems({}, specs) == ["one: is missing"]
    found = array_problems({"one": np.zeros(1, np.float32), "three": np.zeros(1)}, specs)
    assert found == ["three: is not an array of this estimator"]


def test_without_values_only_shapes_are_read() -> None:
    assert array_problems({"x": np.full(2, np.nan, np.float32)}, {"x": weight_spec(2)}, values=False) == []
    assert array_problems({"x": np.zeros(3, np.float32)}, {"x": weight_spec(2)}, values=False) != []


@given(st.integers(0, 50), st.integers(1, 7))
def test_blocks_cover_all_rows_once(count: int, width: int) -> None:
    rows = [row for part in blocks(count, width) for row in range(part.start, part.stop)]
    assert rows == list(range(count))
