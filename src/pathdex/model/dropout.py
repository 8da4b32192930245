"""Dropout from few random bits.

Torch draws 64 bits for each element of a mask, one element after the other, and stores the mask in float32. Here an
element is one int16, which compiled code compares with a limit where it multiplies.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

VALUES = 1 << 16
"""Of an int16: dropout is rounded to a multiple of 1 / VALUES."""


class Dropout(NamedTuple):
    """Elements whose bits are below the limit are kept and multiplied by `scale`, others are 0."""

    bits: Tensor
    limit: int
    scale: float

    @property
    def mask(self) -> Tensor:
        """The factor of each element."""
        return torch.where(self.bits < self.limit, self.scale, 0.0)


class BatchPart(NamedTuple):
    """The windows `first` .. of a batch of `total` windows, of which another worker has the others."""

    first: int
    total: int


def draw_dropout(shape: tuple[int, ...], dropout: float, part: BatchPart | None = None) -> Dropout:
    """Dropout for an array of this shape, from torch's generator. Without dropout there are no bits.

    The bits of a `part` are those that it has in the whole batch, which are all drawn: so they depend on the batch,
    never on the number of workers.
    """
    if part is not None and dropout > 0:
        whole = draw_dropout((part.total, *shape[1:]), dropout)
        return whole._replace(bits=whole.bits[part.first : part.first + shape[0]])
    if dropout == 0:
        return Dropout(torch.empty((0,) * (len(shape) - 1) + shape[-1:], dtype=torch.int16), 0, 1.0)
    number = math.prod(shape)
    words = torch.empty(-(-number // 4), dtype=torch.int64).random_(-(2**63), None)
    kept = min(round((1 - dropout) * VALUES), VALUES - 1)  # An int16 does not hold the limit that keeps all.
    return Dropout(words.view(torch.int16)[:number].view(shape), kept - VALUES // 2, VALUES / kept)
