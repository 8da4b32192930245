"""Rules for arrays that come from a file, checked before compiled code reads them.

An estimator declares one `ArraySpec` per array. A length that only the file knows, such as the number of paths in use,
is a name; the first array that has it sets it, and all others must agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

LIMIT = 1e5
"""Floats must not exceed this, so that products of a few layers of weights stay finite in 32 bits."""
BLOCK = 2**22
"""Elements that are checked at once: the memory of a check does not grow with the array."""

Length: TypeAlias = int | str
"""A number, or a name such as `"paths"` or `"paths+1"`."""
Order: TypeAlias = Literal["any", "ascending", "offsets", "permutation"]


@dataclass(frozen=True, kw_only=True)
class ArraySpec:
    """The dtype, shape and values of an array."""

    dtype: str
    shape: tuple[Length, ...]
    low: float | None = None
    """The least value. Floats must be finite in any case."""
    high: float | None = None
    """The largest value."""
    order: Order = "any"
    """`offsets` begin at 0, never descend and end at `end`; a `permutation` holds 0 .. n - 1 once each."""
    end: Length = 0
    """The last of the offsets."""
    step: int = 0
    """The least difference between two offsets."""
    optional: bool = False


def weight_spec(*shape: Length, limit: float = LIMIT) -> ArraySpec:
    """Finite 32-bit floats of this shape."""
    return ArraySpec(dtype="float32", shape=shape, low=-limit, high=limit)


def index_spec(*shape: Length, below: int, dtype: str = "int32", low: int = 0) -> ArraySpec:
    """Integers from `low` up to, but not including, `below`."""
    return ArraySpec(dtype=dtype, shape=shape, low=low, high=below - 1)


def offsets_spec(length: Length, end: Length, *, step: int = 0, optional: bool = False) -> ArraySpec:
    """64-bit offsets from 0 to `end`."""
    return ArraySpec(dtype="int64", shape=(length,), low=0, order="offsets", end=end, step=step, optional=optional)


def order_spec(count: int) -> ArraySpec:
    """The numbers 0 .. count - 1 in any order, each once."""
    return ArraySpec(dtype="int64", shape=(count,), order="permutation")


def array_problems(
    arrays: Mapping[str, NDArray[Any]],
    specs: Mapping[str, ArraySpec],
    *,
    lengths: dict[str, int] | None = None,
    values: bool = True,
) -> list[str]:
    """What is wrong with some arrays, at most one problem per array; without `values`, only dtypes and shapes.

    `lengths` are the lengths known by name; those found are added.
    """
    known = {} if lengths is None else lengths
    problems = {name: "is missing" for name, spec in specs.items() if name not in arrays and not spec.optional}
    problems |= {name: "is not an array of this estimator" for name in arrays if name not in specs}
    there = [name for name in specs if name in arrays]
    problems |= {name: found for name in there if (found := _shape_problem(arrays[name], specs[name], known))}
    if values and not problems:
        problems |= {name: found for name in there if (found := _value_problem(arrays[name], specs[name], known))}
    return [f"{name}: {problem}" for name, problem in problems.items()]


def blocks(count: int, width: int = 1) -> Iterator[slice]:
    """Slices of rows with about `BLOCK` elements each."""
    rows = max(1, BLOCK // max(1, width))
    return (slice(first, min(first + rows, count)) for first in range(0, count, rows))


def _length(wanted: Length, known: Mapping[str, int]) -> int | None:
    """The number behind a length; None for a name that is not known yet."""
    if isinstance(wanted, int):
        return wanted
    name, _, more = wanted.partition("+")
    return None if name not in known else known[name] + int(more or 0)


def _shape_problem(array: NDArray[Any], spec: ArraySpec, known: dict[str, int]) -> str | None:
    if array.dtype != np.dtype(spec.dtype):
        return f"has dtype {array.dtype}, must have {spec.dtype}"
    if not array.flags.c_contiguous:
        return "is stored column by column, must be stored row by row"
    if array.ndim == len(spec.shape):
        for wanted, length in zip(spec.shape, array.shape, strict=True):
            if _length(wanted, known) is None:
                name, _, more = str(wanted).partition("+")
                known[name] = length - int(more or 0)
        wanted_shape = tuple(_length(wanted, known) for wanted in spec.shape)
        if wanted_shape == array.shape and all(length >= 0 for length in known.values()):
            return None
    words = ", ".join(str(one if (found := _length(one, known)) is None else found) for one in spec.shape)
    return f"has shape {array.shape}, must have shape ({words})"


def _value_problem(array: NDArray[Any], spec: ArraySpec, known: Mapping[str, int]) -> str | None:
    flat = array.reshape(-1)
    for part in blocks(flat.size):
        low, high = flat[part].min(), flat[part].max()
        if array.dtype.kind == "f" and not (np.isfinite(low) and np.isfinite(high)):
            return "holds NaN or infinity, must be finite"
        if spec.low is not None and low < spec.low:
            return f"holds {low}, must hold no value below {spec.low}"
        if spec.high is not None and high > spec.high:
            return f"holds {high}, must hold no value above {spec.high}"
    if spec.order == "offsets":
        return _offsets_problem(flat, _length(spec.end, known), spec.step)
    if spec.order == "ascending" and not _rises(flat, 1):
        return "must be ascending and distinct"
    if spec.order == "permutation" and not _is_permutation(flat):
        return f"must hold every number from 0 to {flat.size - 1} once"
    return None


def _offsets_problem(offsets: NDArray[Any], end: int | None, step: int) -> str | None:
    if not offsets.size or offsets[0] != 0 or offsets[-1] != end:
        return f"must begin at 0 and end at {end}"
    return None if _rises(offsets, step) else "must be ascending" if step else "must never descend"


def _rises(values: NDArray[Any], step: int) -> bool:
    """Whether each value is at least `step` above the one before. Values must not be negative."""
    return all(
        bool((np.diff(values[max(part.start - 1, 0) : part.stop]) >= step).all()) for part in blocks(values.size)
    )


def _is_permutation(values: NDArray[Any]) -> bool:
    seen = np.zeros(values.size, np.bool_)
    for part in blocks(values.size):
        block = values[part]
        if block.size and (block.min() < 0 or block.max() >= values.size):
            return False
        seen[block] = True
    return bool(seen.all())
