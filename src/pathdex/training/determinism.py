"""Determinism and threads of torch and numba during training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numba
import torch


@contextmanager
def deterministic(device: torch.device) -> Iterator[None]:
    """Use deterministic algorithms on the CPU, so that gradients do not depend on the number of threads."""
    memory: Any = torch.utils.deterministic
    before, fills = torch.get_deterministic_debug_mode(), memory.fill_uninitialized_memory
    # `use_deterministic_algorithms` does the same and imports the compiler of torch: seconds at every start.
    torch.set_deterministic_debug_mode("error" if device.type == "cpu" else before)
    # Torch would also fill all new memory, which takes a quarter of a step. No operator here reads unwritten memory.
    memory.fill_uninitialized_memory = False
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)
        memory.fill_uninitialized_memory = fills


def seed_step(seed: int, device: torch.device) -> None:
    """Seed torch's generator of one device.

    `torch.manual_seed` also queues a call with a stack trace for every kind of device that is not there: 2 ms a step.
    """
    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


def set_threads(threads: int | None) -> None:
    """Set the number of threads of torch and numba; None keeps their defaults (all cores)."""
    if threads is not None:
        torch.set_num_threads(threads)
        available: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
        numba.set_num_threads(min(threads, available))
