"""Swapping two paths in one step."""

from __future__ import annotations

import ctypes
import errno
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pathdex.storage import exchange as module
from pathdex.storage.exchange import exchange


def make(folder: Path, content: str) -> Path:
    folder.mkdir()
    (folder / "file").write_text(content)
    return folder


@pytest.mark.skipif(sys.platform != "linux", reason="not every file system of other systems can exchange")
def test_folders_swap_places(tmp_path: Path) -> None:
    first, second = make(tmp_path / "first", "1"), make(tmp_path / "second", "2")
    assert exchange(first, second)
    assert ((first / "file").read_text(), (second / "file").read_text()) == ("2", "1")


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EINVAL, errno.EPERM])
def test_an_unsupported_exchange_is_false(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def refuse(*_: object) -> int:
        ctypes.set_errno(code)
        return -1

    library = SimpleNamespace(renameat2=refuse, renamex_np=refuse)
    monkeypatch.setattr(module.ctypes, "CDLL", lambda *_, **__: library)
    assert not exchange(tmp_path / "first", tmp_path / "second")


def test_a_c_library_without_the_call_is_false(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.ctypes, "CDLL", lambda *_, **__: SimpleNamespace())
    assert not exchange(tmp_path / "first", tmp_path / "second")


def test_other_systems_are_false(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.sys, "platform", "win32")
    assert not exchange(tmp_path / "first", tmp_path / "second")


def test_other_failures_are_raised(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        exchange(make(tmp_path / "first", "1"), tmp_path / "missing")
