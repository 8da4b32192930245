"""Files behind URLs: copied to a temporary folder, by the standard library for http and by fsspec for the others."""

from __future__ import annotations

import http.client
import re
import shutil
import tempfile
import urllib.error
import urllib.request
import weakref
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import unquote, urlsplit

from pathdex.errors import DataError, MissingExtraError, Problem

TIMEOUT = 60
"""Seconds without a byte from a server."""
_EXTRAS = {
    "s3": ("s3fs", "s3"),
    "gs": ("gcsfs", "gs"),
    "gcs": ("gcsfs", "gs"),
    "hf": ("huggingface_hub", "hugging-face"),
}
"""The package and the extra that fsspec needs for a protocol."""


def is_url(source: object) -> bool:
    return isinstance(source, str) and re.match(r"[a-z][a-z0-9+.-]+://", source) is not None


class RemoteCopy:
    """A copy of a remote file, which is removed with this object."""

    def __init__(self, url: str) -> None:
        folder = tempfile.mkdtemp(prefix="pathdex-")
        self._remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        name = Path(unquote(urlsplit(url).path)).name
        if not name:
            raise DataError(Problem("names no file", "source", url, "pass the URL of a file"))
        self.path = Path(folder) / name
        try:
            with _open(url) as stream, self.path.open("wb") as file:
                shutil.copyfileobj(stream, file, 2**20)
                missing = _missing(stream)
        except (OSError, http.client.HTTPException) as error:
            rule = f"cannot be copied ({error})"
            remedy = "check the network, and the free space of the temporary folder"
            raise DataError(Problem(rule, "source", url, remedy)) from error
        if missing:
            rule = f"ends {missing:,} bytes too early"
            raise DataError(Problem(rule, "source", url, "check the network, and try again"))

    def close(self) -> None:
        """Remove the copy."""
        self._remove()

    def __del__(self) -> None:
        self.close()


def _missing(stream: BinaryIO) -> int:
    """The bytes that a server promised and did not send. Reads in parts do not raise for them."""
    return getattr(stream, "length", 0) or 0 if isinstance(stream, http.client.HTTPResponse) else 0


def _open(url: str) -> BinaryIO:
    protocol = url.split("://")[0]
    if protocol in ("http", "https"):
        try:
            return cast(BinaryIO, urllib.request.urlopen(url, timeout=TIMEOUT))
        except urllib.error.HTTPError as error:
            error.close()
            rule = f"the server answers {error.code} ({error.reason})"
            raise DataError(Problem(rule, "source", url, "check the address in a browser")) from error
        except (urllib.error.URLError, ValueError) as error:
            reason = getattr(error, "reason", error)
            rule = f"cannot be reached ({reason})"
            raise DataError(Problem(rule, "source", url, "check the address and the network")) from error
    return _open_with_fsspec(url, protocol)


def _open_with_fsspec(url: str, protocol: str) -> BinaryIO:
    package, extra = _EXTRAS.get(protocol, ("fsspec", "s3"))
    try:
        import fsspec  # type: ignore[import-untyped]

        opened: Any = fsspec.open(url, "rb").open()
    except ImportError as error:
        raise MissingExtraError(package, extra, f"reading {protocol}:// URLs") from error
    except FileNotFoundError as error:
        raise DataError(Problem("does not exist", "source", url, "check the address")) from error
    except ValueError as error:
        known = "http, https, s3, gs, hf, and what fsspec knows"
        raise DataError(Problem(f"cannot be opened ({error})", "source", url, f"known are {known}")) from error
    except Exception as error:
        remedy = f"check the address and the credentials that {package} uses"
        raise DataError(Problem(f"cannot be opened ({error})", "source", url, remedy)) from error
    return cast(BinaryIO, opened)
