"""The masks of torch's dropout, from the state of torch's CPU generator, at six times its speed.

Torch draws one element after the other from a Mersenne twister (MT19937), two words per element. The same words come in
vectors from a block of 624. Masks are equal to torch's on processors where it does not use MKL's generator.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pathdex.kernels.types import Floats

WORDS, _SHIFT = 624, 397
_UPPER, _LOWER, _MATRIX = np.uint32(0x80000000), np.uint32(0x7FFFFFFF), np.uint32(0x9908B0DF)
_TEMPER1, _TEMPER2 = np.uint32(0x9D2C5680), np.uint32(0xEFC60000)
_HALF, _FRACTION = np.uint64(32), np.uint64((1 << 53) - 1)

Words = NDArray[np.uint32]


@njit(cache=True, nogil=True)
def fill_mask(state: Words, position: int, keep: float, scale: np.float32, mask: Floats) -> int:
    """Set each element of a flat mask to `scale` with probability `keep`, else to 0.

    `state` (624,) is the generator's state, of which `position` words are used. Both advance; returns the position.
    """
    limit = np.uint64(np.ceil(keep * (1 << 53)))
    words = np.empty(WORDS, np.uint32)
    _temper(state, words)
    done = 0
    while done < len(mask):
        if position >= WORDS:
            _next_block(state)
            _temper(state, words)
            position = 0
        pairs = min((WORDS - position) // 2, len(mask) - done)
        for k in range(pairs):
            high, low = np.uint64(words[position + 2 * k]), np.uint64(words[position + 2 * k + 1])
            mask[done + k] = scale if ((high << _HALF | low) & _FRACTION) < limit else np.float32(0.0)
        position += 2 * pairs
        done += pairs
        if position == WORDS - 1 and done < len(mask):  # A pair across two blocks.
            high = np.uint64(words[position])
            _next_block(state)
            _temper(state, words)
            mask[done] = scale if ((high << _HALF | np.uint64(words[0])) & _FRACTION) < limit else np.float32(0.0)
            position, done = 1, done + 1
    return position


@njit(cache=True, nogil=True)
def _next_block(state: Words) -> None:
    for k in range(WORDS - _SHIFT):
        state[k] = state[k + _SHIFT] ^ _twist(state[k], state[k + 1])
    for k in range(WORDS - _SHIFT, WORDS - 1):
        state[k] = state[k + _SHIFT - WORDS] ^ _twist(state[k], state[k + 1])
    state[WORDS - 1] = state[_SHIFT - 1] ^ _twist(state[WORDS - 1], state[0])


@njit(cache=True, nogil=True, inline="always")
def _twist(first: np.uint32, second: np.uint32) -> np.uint32:
    both = np.uint32((first & _UPPER) | (second & _LOWER))
    return np.uint32((both >> np.uint32(1)) ^ (_MATRIX if second & np.uint32(1) else np.uint32(0)))


@njit(cache=True, nogil=True)
def _temper(state: Words, words: Words) -> None:
    for k in range(WORDS):
        y = state[k]
        y = np.uint32(y ^ (y >> np.uint32(11)))
        y = np.uint32(y ^ (np.uint32(y << np.uint32(7)) & _TEMPER1))
        y = np.uint32(y ^ (np.uint32(y << np.uint32(15)) & _TEMPER2))
        words[k] = np.uint32(y ^ (y >> np.uint32(18)))
