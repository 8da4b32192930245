"""Named arrays in one safetensors file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save_file


def write_tensors(file: Path, arrays: Mapping[str, NDArray[Any]], *, metadata: Mapping[str, str] | None = None) -> None:
    """Write arrays and text metadata. A failure is an `OSError`, as for any other file."""
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    try:
        save_file(contiguous, file, metadata=None if metadata is None else dict(metadata))
    except SafetensorError as error:
        raise OSError(str(error)) from error
