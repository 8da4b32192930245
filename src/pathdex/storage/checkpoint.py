"""A run's state in one file: tensors with a JSON header, replaced in one move, never pickled."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from pathdex.errors import RunError, StorageError

_KEY = "state"


def save_checkpoint(path: Path, state: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write beside the old checkpoint, then replace it, so a kill at any moment leaves one that is whole."""
    temporary = path.with_suffix(".part")
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(whole, temporary, metadata={_KEY: json.dumps(state)})
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        temporary.replace(path)
    except (OSError, SafetensorError) as error:
        temporary.unlink(missing_ok=True)
        raise StorageError(
            f"cannot write the checkpoint {path}: {error}; free space and continue the run with --resume"
        ) from error


def load_checkpoint(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The state and the arrays that `save_checkpoint` wrote."""
    try:
        with safe_open(path, framework="numpy") as file:
            state = json.loads(file.metadata()[_KEY])
            return state, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"the checkpoint {path} cannot be read ({error}); train again into a new folder") from error
