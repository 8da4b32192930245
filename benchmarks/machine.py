"""The machine and versions behind a figure."""

from __future__ import annotations

import os
import platform
from typing import Any

import numba
import numpy as np
import torch

import pathdex
from pathdex.experiments import provenance


def describe_machine() -> dict[str, Any]:
    return {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "python": platform.python_version(),
        "pathdex": pathdex.__version__,
        "torch": torch.__version__,
        "numba": numba.__version__,
        "numpy": np.__version__,
    }


def peak_memory() -> float:
    """Peak memory of this process in GB."""
    return (provenance.peak_memory() or 0) / 2**30
