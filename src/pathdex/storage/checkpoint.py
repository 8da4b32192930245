"""A training state in one file: tensors with a JSON header, replaced atomically, never pickled."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from pathdex.errors import RunError
from pathdex.storage.atomic import atomic_path
from pathdex.storage.tensor_file import write_tensors

_KEY = "state"


def save_checkpoint(path: Path, state: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Replace the checkpoint at `path`. A kill at any moment leaves the old one or the new one."""
    with atomic_path(path, remedy="free space or choose another path") as staging:
        write_tensors(staging, arrays, metadata={_KEY: json.dumps(state)})


def load_checkpoint(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The state and the arrays that `save_checkpoint` wrote."""
    try:
        if not path.is_file():
            raise OSError(errno.EINVAL, "it is not a plain file")
        with safe_open(path, framework="numpy") as file:
            state = json.loads(file.metadata()[_KEY])
            return state, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise RunError(f"the checkpoint {path} cannot be read ({error}); train again into a new folder") from error
