"""Results as JSON files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pathdex.storage.atomic import atomic_write


def write_json(path: Path, content: dict[str, Any]) -> Path:
    """Write all of it, or nothing and a `StorageError`."""
    text = json.dumps(content, indent=2, allow_nan=False) + "\n"
    with atomic_write(path) as stream:
        stream.write(text.encode())
    return path
