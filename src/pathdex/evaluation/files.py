"""Writing a result file: all of it, or nothing."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from pathdex.errors import StorageError


def write_json(path: Path, content: dict[str, Any]) -> Path:
    """Write beside the final place, then rename into it."""
    staging = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, staging = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "w") as stream:
            stream.write(json.dumps(content, indent=2, allow_nan=False) + "\n")
        os.chmod(staging, 0o644)
        os.replace(staging, path)
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror or error}; free space or choose another path; nothing was changed"
        ) from error
    finally:
        if staging is not None and os.path.exists(staging):
            os.unlink(staging)
    return path
