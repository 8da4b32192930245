"""Downloads one large file: resumed after an interruption, renamed into place only when it is whole."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pathdex.errors import DataError, StorageError
from pathdex.progress import Progress

ATTEMPTS = 4
"""How often a broken connection is taken up again before giving up; what came stays for the next call."""
TIMEOUT = 60.0
BLOCK = 2**18


class _NetworkError(Exception):
    """The network failed; told apart from failures of the disk, which Python reports alike."""


def download(url: str, part: Path, *, progress: Progress | None = None) -> None:
    """Bring `part` up to the whole content of `url`, going on from what it holds.

    Beside it, `part.json` keeps what identifies the version on the server, so that a file which changed there in
    between is started anew.
    """
    reason = "the connection broke"
    try:
        for _ in range(ATTEMPTS):
            try:
                if _continue(url, part, progress):
                    _memory(part).unlink(missing_ok=True)
                    return
            except _NetworkError as error:
                reason = str(error)
                if _size(part) == 0:
                    break
    except OSError as error:
        raise StorageError(
            f"cannot write {part}: {error.strerror or error}; free space or choose another folder"
        ) from error
    kept = f"; {_size(part):,} bytes are kept and the same call goes on from there" if _size(part) else ""
    raise DataError(f"cannot download {url}: {reason}{kept}")


def _continue(url: str, part: Path, progress: Progress | None) -> bool:
    """One request; True when the file is whole."""
    have = _size(part)
    memory = _recall(part) if have else {}
    headers = {"User-Agent": "pathdex"}
    if have and memory.get("version"):
        headers |= {"Range": f"bytes={have}-", "If-Range": memory["version"]}
    response = _request(url, headers)
    if response is None:
        # Nothing lies behind what is there: the file is whole already, or is not the beginning of this one.
        if have == memory.get("bytes"):
            return True
        part.unlink()
        return False
    with response:
        resumed = response.status == 206
        if resumed and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            part.unlink()
            return False
        done = have if resumed else 0
        length = response.headers.get("Content-Length")
        total = None if length is None else done + int(length)
        version = response.headers.get("ETag") or response.headers.get("Last-Modified")
        _memory(part).write_text(json.dumps({"version": version, "bytes": total}))
        with part.open("ab" if resumed else "wb") as file:
            for block in _blocks(response):
                file.write(block)
                done += len(block)
                if progress is not None:
                    progress(done, total)
    return total is None or done == total


def _request(url: str, headers: dict[str, str]) -> Any:
    """The server's answer, or None where the range asked for starts at or past the end."""
    try:
        return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and "Range" in headers:
            return None
        raise DataError(f"cannot download {url}: the server says {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        raise _NetworkError(str(getattr(error, "reason", error)) or type(error).__name__) from error


def _blocks(response: Any) -> Iterator[bytes]:
    try:
        while block := response.read(BLOCK):
            yield block
    except (OSError, http.client.HTTPException) as error:
        raise _NetworkError(str(error) or type(error).__name__) from error


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _memory(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _recall(part: Path) -> dict[str, Any]:
    try:
        memory = json.loads(_memory(part).read_text())
    except (OSError, ValueError):
        return {}
    return memory if isinstance(memory, dict) else {}
