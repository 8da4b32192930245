"""JSON files, written atomically."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pathdex.storage.atomic import atomic_write


def write_json(path: Path, content: dict[str, Any]) -> Path:
    """Write a JSON file atomically; NaN and infinity are a `ValueError`."""
    text = json.dumps(content, indent=2, allow_nan=False) + "\n"
    with atomic_write(path) as stream:
        stream.write(text.encode())
    return path
