"""Process setup for a training."""

from __future__ import annotations

import torch

from pathdex.config import RunOptions
from pathdex.data.interactions import Interactions, check_interactions
from pathdex.errors import DataError
from pathdex.system import check_device
from pathdex.training.determinism import set_threads
from pathdex.training.malloc import keep_freed_memory


def prepare(data: Interactions, options: RunOptions) -> None:
    """Check the data and the device, set the threads and torch's seed, and tune the allocator."""
    check_interactions(data)
    if data.num_interactions == 0:
        raise DataError("data: has no interactions; training needs at least one user with one item")
    check_device(options.device)
    set_threads(options.threads)
    keep_freed_memory()
    torch.manual_seed(options.seed)
