"""Writing a file: all of it, or nothing."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pathdex.errors import StorageError


@contextmanager
def atomic_write(path: str | Path) -> Iterator[BinaryIO]:
    """A stream beside the final place, renamed into it at the end.

    Whatever fails leaves what was there; a full disk or a missing permission becomes a `StorageError`.
    """
    path = Path(path)
    staging: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, staging = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "wb") as stream:
            yield stream
        # mkstemp makes a file that only its owner may read.
        os.chmod(staging, 0o644)
        os.replace(staging, path)
        staging = None
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror or error}; free space or choose another path; nothing was changed"
        ) from error
    finally:
        if staging is not None:
            os.unlink(staging)
