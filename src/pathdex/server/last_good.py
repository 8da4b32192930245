"""The last version that served, kept as open files, for workers that start while the path holds a bad one.

The files stay readable through their handles after the folder was replaced or removed. Workers inherit them.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from pathdex.errors import PathdexError
from pathdex.recommenders.live_reader import LivePosition
from pathdex.server.model_loader import ModelLoader
from pathdex.storage.array_folder import MANIFEST, open_folder
from pathdex.storage.bundle import BUNDLE_FORMAT, short_digest
from pathdex.storage.live_folder import is_live_folder, read_current
from pathdex.storage.open_folder import OpenFolder


@dataclass(frozen=True)
class LastGood:
    """A bundle by its open files."""

    path: Path
    version: str
    files: dict[str, int]
    """File descriptors by name."""
    position: LivePosition | None = None
    """Of the base of a live folder: where it is in the chain of deltas."""

    @classmethod
    def keep(cls, loader: ModelLoader, version: str) -> LastGood | None:
        """The bundle at the loader's path, if it is the one of this version; of a live folder, its base."""
        try:
            current = read_current(loader.model) if is_live_folder(loader.model) else None
            folder, _ = open_folder(loader.folder(), BUNDLE_FORMAT)
        except (PathdexError, OSError):
            return None
        content, position = folder.read(MANIFEST), None
        if current is not None:
            position = LivePosition(current.first_delta - 1, current.base.digest)
            same = hashlib.sha256(content).hexdigest() == current.base.manifest
        else:
            same = short_digest(content) == version
        if not same:
            folder.close()
            return None
        files = {name: os.dup(handle) for name, handle in folder.handles.items()}
        folder.close()
        return cls(folder.path, short_digest(content), files, position)

    def close(self) -> None:
        OpenFolder(self.path, self.files).close()

    def to_json(self) -> str:
        """An argument for a worker that inherits the files."""
        content = {"path": str(self.path), "version": self.version, "files": self.files, "position": self.position}
        return json.dumps(content)

    @classmethod
    def from_json(cls, text: str) -> LastGood:
        """The inverse of `to_json`."""
        given = json.loads(text)
        position = None if given["position"] is None else LivePosition(*given["position"])
        return cls(Path(given["path"]), given["version"], given["files"], position)
