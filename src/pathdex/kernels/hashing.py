"""Open-addressing hash tables with integer keys, for compiled loops.

A table is a (slots, 2) int64 array of key and value; the number of slots is a power of two and an empty slot has key
-1. Key and value share a cache line, since a lookup in a large table costs one cache line and little else.

Slots are a smaller table for keys that stand in an array of their own: a slot holds 1 + the position of a key there, or
0. For the items of a query they fit the first-level cache.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pathdex.kernels.threads import run_ranges
from pathdex.kernels.types import Int32s, Ints, Mask

EMPTY = -1
ROWS_PER_RANGE = 4096
"""Rows that are worth a thread."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: Knuth's multiplicative hashing
_HALF = np.uint64(32)
_GOLDEN_32 = np.uint32(0x9E3779B9)


@njit(cache=True, nogil=True)
def new_table(entries: int) -> Ints:
    """An empty table that holds `entries` keys at a load of at most one half."""
    slots = 16
    while slots < 2 * entries:
        slots *= 2
    return np.full((slots, 2), EMPTY, np.int64)


@njit(cache=True, nogil=True, inline="always")
def find_home(table: Ints, key: int | np.int64) -> int:
    """The slot where the search for a key begins, for prefetching."""
    mixed = np.uint64(key) * _GOLDEN
    slot: int = np.int64(mixed ^ (mixed >> _HALF)) & (table.shape[0] - 1)
    return slot


@njit(cache=True, nogil=True, inline="always")
def find_slot(table: Ints, key: int | np.int64) -> int:
    """The slot that holds the key, or the empty slot where it belongs."""
    mask = table.shape[0] - 1
    slot = find_home(table, key)
    while table[slot, 0] != key and table[slot, 0] != EMPTY:
        slot = (slot + 1) & mask
    return slot


@njit(cache=True, nogil=True)
def new_slots(entries: int) -> tuple[Int32s, np.uint32]:
    """Empty slots that hold `entries` keys at a load of at most one half, and the shift that belongs to them."""
    bits = 4
    while (1 << bits) < 2 * entries:
        bits += 1
    return np.zeros(1 << bits, np.int32), np.uint32(32 - bits)


@njit(cache=True, nogil=True, inline="always")
def find_item(slots: Int32s, shift: np.uint32, keys: NDArray[np.integer], key: int | np.int32) -> int:
    """The slot that holds the key, or the empty slot where it belongs."""
    mixed = np.uint32(np.uint32(key) * _GOLDEN_32)
    slot: int = np.int64(mixed >> shift) & (slots.shape[0] - 1)
    while slots[slot] != 0 and keys[slots[slot] - 1] != key:
        slot = (slot + 1) & (slots.shape[0] - 1)
    return slot


def rows_with_repeats(codes: Ints) -> Mask:
    """Which rows hold a code twice; -1 may repeat."""
    repeats = np.zeros(len(codes), np.bool_)
    run_ranges(lambda first, end: _find_repeats(codes, first, end, repeats), len(codes), least=ROWS_PER_RANGE)
    return repeats


@njit(cache=True, nogil=True)
def _find_repeats(codes: Ints, first: int, end: int, repeats: Mask) -> None:
    seen = new_table(codes.shape[1])
    for row in range(first, end):
        for slot in range(len(seen)):
            seen[slot, 0] = EMPTY
        for b in range(codes.shape[1]):
            slot = find_slot(seen, codes[row, b])
            repeats[row] |= codes[row, b] != EMPTY and seen[slot, 0] == codes[row, b]
            seen[slot, 0] = codes[row, b]
