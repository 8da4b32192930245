"""Appends to a JSON lines file, which any number of processes may share."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path

from pathdex.data.events import StreamRecord, encode_record
from pathdex.errors import StorageError
from pathdex.storage.filesystem import sync, write_all


class FileSink:
    """Records of one `append` are written together and synced to disk. An empty one creates the file.

    Nothing is ever cut off, since a reader may have read it already. A part of a line that a full disk or a crash left
    gets its line break from the next append, so readers report it as malformed. A file that was renamed by rotation is
    left, and a new one begun.
    """

    def __init__(self, path: Path) -> None:
        self.name, self.path = str(path), path
        self._handle: int | None = None

    def append(self, records: Sequence[StreamRecord]) -> None:
        data = b"".join(encode_record(one) + b"\n" for one in records)
        try:
            handle = self._open()
            # Several writes of one append must not mix with those of another process.
            fcntl.flock(handle, fcntl.LOCK_EX)
            try:
                write_all(handle, data if _ends_a_line(handle) else b"\n" + data)
            finally:
                fcntl.flock(handle, fcntl.LOCK_UN)
            # Without the lock: other processes write, and wait for the disk, at the same time.
            os.fsync(handle)
        except OSError as error:
            self.close()
            reason = error.strerror or error
            raise StorageError(f"cannot append to {self.path}: {reason}; check the folder and the disk") from error

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _open(self) -> int:
        """The handle of the file that has the name now."""
        if self._handle is not None:
            try:
                current = self.path.stat()
            except FileNotFoundError:
                current = None
            held = os.fstat(self._handle)
            if current is not None and (current.st_ino, current.st_dev) == (held.st_ino, held.st_dev):
                return self._handle
            self.close()
        self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        sync(self.path.parent)  # The name of a new file must survive as well.
        return self._handle


def _ends_a_line(handle: int) -> bool:
    size = os.fstat(handle).st_size
    return not size or os.pread(handle, 1, size - 1) == b"\n"
