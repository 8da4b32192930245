"""Dropout masks on the CPU with the bits of torch's dropout."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pathdex.kernels.mersenne import WORDS, fill_mask

_LEFT, _NEXT, _STATE = 2, 2, 3
"""Places in the state of torch's generator: `left` in its int32 words, `next` and the twister in its int64 words."""


def dropout_mask(shape: tuple[int, ...], dropout: float) -> Tensor:
    """A mask of 0 and 1 / (1 - dropout) that advances torch's generator as `torch.nn.functional.dropout` does."""
    mask = torch.empty(shape)
    state = torch.get_rng_state()
    words = state[: (len(state) // 8) * 8].view(torch.int64).numpy()
    left = state[:16].view(torch.int32).numpy()
    block = words[_STATE : _STATE + WORDS].astype(np.uint32)
    position = WORDS if left[_LEFT] <= 1 else int(words[_NEXT])  # `left` is 1 before a block is generated.
    keep = 1 - dropout
    position = fill_mask(block, position, keep, np.float32(1 / keep), mask.view(-1).numpy())
    words[_STATE : _STATE + WORDS] = block
    words[_NEXT], left[_LEFT] = position, WORDS - position + 1
    torch.set_rng_state(state)
    return mask
