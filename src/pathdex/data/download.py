"""Downloads one large file into a `.part` file and resumes after an interruption."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pathdex.errors import DataError, Problem
from pathdex.progress import Progress
from pathdex.storage.atomic import storage_errors
from pathdex.storage.json_file import write_json

ATTEMPTS = 4
"""How many requests are made before giving up; the part that arrived is kept for the next call."""
TIMEOUT = 60.0
BLOCK = 2**18


class _NetworkError(Exception):
    """A network failure. Python reports network and disk failures alike as `OSError`."""


def download(url: str, part: Path, *, progress: Progress | None = None) -> None:
    """Download `url` to `part`, resuming from what it holds.

    `part.json` beside it identifies the version on the server; if that changed, the download starts over.
    """
    reason = "the connection broke"
    with storage_errors(part, "free space or choose another folder"):
        for _ in range(ATTEMPTS):
            try:
                if _continue(url, part, progress):
                    _state_file(part).unlink(missing_ok=True)
                    return
            except _NetworkError as error:
                reason = str(error)
                if _size(part) == 0:
                    break
    kept = f"{_size(part):,} bytes are kept; repeat the call to resume" if _size(part) else None
    raise DataError(Problem(f"cannot download {url}: {reason}", remedy=kept))


def _continue(url: str, part: Path, progress: Progress | None) -> bool:
    """Make one request. True if the file is complete."""
    have = _size(part)
    state = _read_state(part) if have else {}
    headers = {"User-Agent": "pathdex"}
    if have and state.get("version"):
        headers |= {"Range": f"bytes={have}-", "If-Range": state["version"]}
    response = _request(url, headers)
    if response is None:
        # The range starts at the end: the part is complete, or belongs to another file.
        if have == state.get("bytes"):
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
        write_json(_state_file(part), {"version": version, "bytes": total})
        with part.open("ab" if resumed else "wb") as file:
            for block in _blocks(response):
                file.write(block)
                done += len(block)
                if progress is not None:
                    progress(done, total)
    return total is None or done == total


def _request(url: str, headers: dict[str, str]) -> Any:
    """The response, or None if the requested range starts at or past the end."""
    try:
        return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and "Range" in headers:
            return None
        raise DataError(Problem(f"cannot download {url}: the server answers {error.code} {error.reason}")) from error
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


def _state_file(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _read_state(part: Path) -> dict[str, Any]:
    try:
        state = json.loads(_state_file(part).read_text())
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}
