"""Downloads one large file: resumed after an interruption, renamed into place only when it is whole."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pathdex.errors import DataError, StorageError

ATTEMPTS = 4
"""How often a broken connection is taken up again before giving up; what came stays for the next call."""
TIMEOUT = 60.0
BLOCK = 2**18

Progress = Callable[[int, int | None], None]
"""Called with the bytes so far and, where the server tells, the bytes in all."""


def download(url: str, part: Path, *, progress: Progress | None = None) -> None:
    """Bring `part` up to the whole content of `url`, going on from what it holds.

    Beside it, `part.json` keeps what identifies the version on the server, so that a file which changed there in
    between is started anew.
    """
    reason = "the connection broke"
    for _ in range(ATTEMPTS):
        before = part.stat().st_size if part.exists() else 0
        try:
            if _continue(url, part, progress):
                _memory(part).unlink(missing_ok=True)
                return
        except urllib.error.HTTPError as error:
            error.close()
            raise DataError(f"cannot download {url}: the server says {error.code} {error.reason}") from error
        except StorageError:
            raise
        except (OSError, http.client.HTTPException) as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
            if before == 0 and not part.exists():
                break
    have = part.stat().st_size if part.exists() else 0
    kept = f"; {have:,} bytes are kept and the same call goes on from there" if have else ""
    raise DataError(f"cannot download {url}: {reason}{kept}")


def _continue(url: str, part: Path, progress: Progress | None) -> bool:
    """One request; True when the file is whole."""
    have = part.stat().st_size if part.exists() else 0
    memory = _recall(part) if have else {}
    headers = {"User-Agent": "pathdex"}
    if have and memory.get("version"):
        headers |= {"Range": f"bytes={have}-", "If-Range": memory["version"]}
    try:
        response = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        # Nothing lies behind what is there: the file is whole already, or is not the beginning of this one.
        if error.code == 416 and have:
            error.close()
            if have == memory.get("bytes"):
                return True
            _write(part.unlink, part)
            return False
        raise
    with response:
        resumed = response.status == 206
        if resumed and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            _write(part.unlink, part)
            return False
        length = response.headers.get("Content-Length")
        start = have if resumed else 0
        total = None if length is None else start + int(length)
        version = response.headers.get("ETag") or response.headers.get("Last-Modified")
        _write(lambda: _memory(part).write_text(json.dumps({"version": version, "bytes": total})), part)
        done = _receive(response, part, start, total, progress)
    return total is None or done == total


def _receive(response: Any, part: Path, done: int, total: int | None, progress: Progress | None) -> int:
    try:
        file = part.open("ab" if done else "wb")
    except OSError as error:
        raise _no_room(part, error) from error
    with file:
        while block := response.read(BLOCK):
            _write(lambda block=block: file.write(block), part)  # type: ignore[misc]
            done += len(block)
            if progress is not None:
                progress(done, total)
    return done


def _write(action: Callable[[], object], part: Path) -> None:
    # Told apart from network failures, which are OSErrors too.
    try:
        action()
    except OSError as error:
        raise _no_room(part, error) from error


def _no_room(part: Path, error: OSError) -> StorageError:
    return StorageError(f"cannot write {part}: {error.strerror or error}; free space or choose another folder")


def _memory(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _recall(part: Path) -> dict[str, Any]:
    try:
        memory = json.loads(_memory(part).read_text())
    except (OSError, ValueError):
        return {}
    return memory if isinstance(memory, dict) else {}
