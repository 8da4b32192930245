"""The calls of a process that change files: counted, recorded, made to fail, or the last thing it does.

`io_shim.c` is loaded before the C library (`LD_PRELOAD`), so calls of Python, SQLite and Arrow are all seen. Everything
else happens here: a function is called before each call and decides, another one after it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pathdex

SOURCE = str(Path(pathdex.__file__).parent) + os.sep
SHIM = Path(__file__).with_name("io_shim.c")
VARIABLE = "PATHDEX_TORTURE_SHIM"
"""The path of the loaded library in the environment of a process that was started with it."""
PROCEED, PART = 0, -1
_BEFORE = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_long)
_AFTER = ctypes.CFUNCTYPE(
    None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_long, ctypes.c_void_p, ctypes.c_long
)


@dataclass(frozen=True)
class Call:
    """A call that is about to happen."""

    number: int
    """Counted from 0."""
    kind: str
    """`open` or `create` of a file, `write`, `truncate`, `sync`, `mkdir`, `rename`, `exchange`, `unlink`, `chmod`."""
    path: str
    other: str
    """The second path of a rename or an exchange."""
    size: int
    sites: tuple[tuple[str, int], ...]
    """The lines of Pathdex that lead to it, the innermost first."""


@dataclass(frozen=True)
class Change:
    """What a successful call did. A step that was acknowledged is a change of kind `done`."""

    kind: str
    path: str = ""
    other: str = ""
    offset: int = 0
    data: bytes = b""
    size: int = 0


@dataclass
class Watch:
    """Sees all calls below a folder. `decide` is asked before each, `follow` is told after it."""

    root: Path
    decide: Callable[[Call], int] = lambda _: PROCEED
    follow: Callable[[int, Change], None] = lambda *_: None
    calls: list[Call] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)

    def __enter__(self) -> Watch:
        self._functions = _BEFORE(self._before), _AFTER(self._after)
        self._library = ctypes.CDLL(os.environ[VARIABLE])
        self._library.shim_watch(os.fsencode(self.root), *self._functions)
        return self

    def __exit__(self, *_: object) -> None:
        self._library.shim_ignore()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """See nothing for a while."""
        self._library.shim_ignore()
        try:
            yield
        finally:
            self._library.shim_watch(os.fsencode(self.root), *self._functions)

    def _before(self, kind: bytes, path: bytes, other: bytes, size: int) -> int:
        call = Call(len(self.calls), kind.decode(), os.fsdecode(path), os.fsdecode(other), size, _sites())
        self.calls.append(call)
        return self.decide(call)

    def _after(self, kind: bytes, path: bytes, other: bytes, offset: int, data: int | None, size: int) -> None:
        content = ctypes.string_at(data, size) if data else b""
        change = Change(kind.decode(), os.fsdecode(path), os.fsdecode(other), offset, content, size)
        self.changes.append(change)
        self.follow(len(self.calls) - 1, change)


def _sites() -> tuple[tuple[str, int], ...]:
    frame, found = sys._getframe(2), []
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(SOURCE):
            found.append((name.removeprefix(SOURCE), frame.f_lineno))
        frame = frame.f_back  # type: ignore[assignment]
    return tuple(found)


def is_available() -> bool:
    """Whether the library can be built and loaded here."""
    return sys.platform == "linux" and shutil.which("cc") is not None


@contextmanager
def shim_environment() -> Iterator[dict[str, str]]:
    """The environment for a Python process whose calls are seen."""
    with tempfile.TemporaryDirectory(prefix="pathdex-shim-") as folder:
        library = str(Path(folder) / "io_shim.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, str(SHIM), "-ldl"], check=True)
        yield {**os.environ, "LD_PRELOAD": library, VARIABLE: library}
