"""How far ahead a user vector predicts (`next_items`), learned for two horizons at once and chosen on held-out queries.

With `next_items` above 1, half of the samples predict the next item and half one of the `next_items` next: an item
vector learns most from the item beside it. Both share the encoder and the item vectors. The user vector itself predicts
the items further ahead, the next item is predicted through a linear map that only training uses.

If `next_items` is not set, the first epochs learn both horizons with the roles exchanged, and held-out queries decide.
The next item is then predicted directly, since training on it alone would gain more than these epochs show.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pathdex.data.ragged import Ragged
from pathdex.data.splits import Queries
from pathdex.model.network import Network
from pathdex.storage.scratch import blocks, scratch_array
from pathdex.training.held_out import describe_sizes, exhaustive_f_measures, percent
from pathdex.training.windows import draw_readers

AHEAD = 64
"""The horizon that is compared with the next item."""
NEAR_SHARE = 0.5
"""Share of the samples that predict the next item."""
DECISION_SAMPLES = 1_000_000
"""The choice is made after so many samples, but after a fifth of the epochs at the earliest and half at the latest."""


class HorizonMap(nn.Module):
    """x + W x + b, which starts as the identity: the user vector for the other horizon."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.change = nn.Linear(dim, dim)
        self.reset()

    def reset(self) -> None:
        nn.init.zeros_(self.change.weight)
        nn.init.zeros_(self.change.bias)

    def forward(self, users: Tensor) -> Tensor:
        return users + self.change(users)  # type: ignore[no-any-return]


def draw_horizons(
    sequences: Ragged, reach: int, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    """For each position, the position whose history predicts it, and whether it is a sample of the next item.

    The second result is None if all samples are.
    """
    readers = draw_readers(sequences, reach, generator)
    if reach == 1:
        return readers, None
    near: NDArray[np.bool_] = scratch_array(len(readers), np.bool_)
    for part in blocks(len(readers)):
        near[part] = generator.random(part.stop - part.start) < NEAR_SHARE
        readers[part] = np.where(near[part], np.arange(part.start, part.stop), readers[part])
    return readers, near


def decision_epoch(epochs: int, num_samples: int) -> int:
    """The epoch, counted from 1, after which the horizon is chosen, for `num_samples` samples per epoch."""
    wanted = -(-DECISION_SAMPLES // max(num_samples, 1))
    return int(np.clip(wanted, max(1, epochs // 5), max(1, epochs // 2)))


@torch.no_grad()
def choose_horizon(network: Network, ahead: HorizonMap, held_out: Queries) -> dict[str, Any]:
    """`next_items` by the mean F over the sizes, each relative to that of the next item, and the reason.

    The network's user vectors predict the next item, those through `ahead` the items further ahead.
    """
    figures = {
        1: exhaustive_f_measures(network, held_out).mean(axis=0),
        AHEAD: exhaustive_f_measures(network, held_out, ahead).mean(axis=0),
    }
    further = float(np.mean(figures[AHEAD] / np.maximum(figures[1], 1e-9))) > 1
    listed = ", ".join(f"{reach}: {percent(f)}" for reach, f in figures.items())
    return {
        "choices": {"next_items": AHEAD if further else 1},
        "reason": f"best {describe_sizes()} on {len(held_out):,} held-out users so far ({listed})",
    }
