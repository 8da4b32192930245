"""Changing saved folders in tests, with checksums made valid again or left wrong."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pathdex.storage.array_folder import DIGEST, MANIFEST, manifest_checksum


def read_json(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((path / MANIFEST).read_text())
    return content


def change_manifest(path: Path, *, sign: bool = True, **changes: Any) -> None:
    """Set keys of a manifest, or remove those that are None; `sign` makes its digest valid again."""
    manifest = {key: value for key, value in {**read_json(path), **changes}.items() if value is not None}
    if sign:
        manifest[DIGEST] = manifest_checksum(manifest)
    (path / MANIFEST).write_text(json.dumps(manifest))


def sign_files(path: Path) -> None:
    """Make the sizes and checksums of all files valid again."""
    files = {}
    for file in sorted(path.iterdir()):
        if file.name != MANIFEST:
            content = file.read_bytes()
            files[file.name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    change_manifest(path, files=files)
