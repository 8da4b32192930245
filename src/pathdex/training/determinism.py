"""How torch and compiled code run in this process while something is trained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numba
import torch


@contextmanager
def deterministic(device: torch.device) -> Iterator[None]:
    """Have torch sum in a fixed order on the CPU, whatever the number of threads; some of its gradients do not."""
    memory: Any = torch.utils.deterministic
    before, fills = torch.are_deterministic_algorithms_enabled(), memory.fill_uninitialized_memory
    torch.use_deterministic_algorithms(before or device.type == "cpu")
    # Torch would also fill all new memory, a quarter of a step's time; no operator here reads what it has not written.
    memory.fill_uninitialized_memory = False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
        memory.fill_uninitialized_memory = fills


def set_threads(threads: int | None) -> None:
    """Use that many threads in torch and in compiled code; None leaves both at their defaults (all cores)."""
    if threads is not None:
        torch.set_num_threads(threads)
        most: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
        numba.set_num_threads(min(threads, most))
