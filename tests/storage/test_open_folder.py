"""Folders that are read through handles: the files of one save, plain files only, arrays that fit their files."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathdex.storage.open_folder import OpenFolder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    np.save(folder / "x.npy", np.arange(6).reshape(2, 3))
    (folder / "text").write_bytes(b"old")
    return folder


def test_a_folder_that_is_replaced_is_still_read(path: Path) -> None:
    with OpenFolder(path) as folder:
        folder.open("text")
        path.rename(path.with_name("away"))
        path.mkdir()
        (path / "text").write_bytes(b"new")
        (path / "x.npy").write_bytes(b"new")
        assert folder.read("text") == b"old"
        assert folder.array("x.npy").tolist() == [[0, 1, 2], [3, 4, 5]]
        shutil.rmtree(path.with_name("away"))
        assert folder.read("text") == b"old"
        assert folder.digest("text") == "cba06b5736faf67e54b07b561eae94395e774c517a7d910a54369e1263ccfbd4"


def test_mapped_arrays_outlive_the_folder(path: Path) -> None:
    with OpenFolder(path) as folder:
        array = folder.array("x.npy")
    shutil.rmtree(path)
    assert array.sum() == 15
    assert not array.flags.writeable


def test_files_are_closed(path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with OpenFolder(path) as folder:
            folder.array("x.npy")
            folder.read("text")
    assert len(os.listdir("/proc/self/fd")) == before


def test_handles_can_be_handed_on(path: Path) -> None:
    with OpenFolder(path) as folder:
        folder.open("text")
        shutil.rmtree(path)
        other = OpenFolder(path, folder.handles)
        assert other.read("text") == b"old"
        with pytest.raises(FileNotFoundError):
            other.read("more")


@pytest.mark.parametrize("target", ["inside", "outside"])
def test_links_are_refused(path: Path, tmp_path: Path, target: str) -> None:
    (tmp_path / "elsewhere").write_bytes(b"secret")
    (path / "link").symlink_to(tmp_path / "elsewhere" if target == "outside" else "text")
    with OpenFolder(path) as folder, pytest.raises(OSError, match="it is a symbolic link, must be a plain file"):
        folder.read("link")


def test_pipes_and_folders_are_refused(path: Path) -> None:
    os.mkfifo(path / "pipe")
    (path / "inner").mkdir()
    with OpenFolder(path) as folder:
        for name in ("pipe", "inner"):
            with pytest.raises(OSError, match="it is not a plain file"):
                folder.read(name)


def test_a_file_has_a_limit(path: Path) -> None:
    with OpenFolder(path) as folder:
        assert folder.read("text", 3) == b"old"
        with pytest.raises(OSError, match="more than 2 bytes") as caught:
            folder.read("text", 2)
    assert caught.value.errno == errno.EFBIG


def test_a_signature_changes_with_the_file(path: Path) -> None:
    with OpenFolder(path) as folder:
        before = folder.signature("text")
        assert folder.signature("text") == before
        (path / "text").write_bytes(b"OLD")
        assert folder.signature("text") != before


@pytest.mark.parametrize("array", [np.zeros((0, 3), np.float32), np.arange(3), np.zeros((2, 1), np.bool_)])
@pytest.mark.parametrize("mmap", [True, False])
def test_arrays_read_back(path: Path, array: Any, mmap: bool) -> None:
    np.save(path / "y.npy", array)
    with OpenFolder(path) as folder:
        found = folder.array("y.npy", mmap=mmap)
    np.testing.assert_array_equal(found, array)
    assert (found.dtype, found.shape) == (array.dtype, array.shape)


def with_header(path: Path, header: str, data: bytes = b"\0" * 48) -> None:
    text = header.ljust(117) + "\n"
    (path / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + data)


@pytest.mark.parametrize(
    ("header", "rule"),
    [
        ("{'descr': '<i8', 'fortran_order': False, 'shape': (6,)}", None),
        ("{'descr': '<i8', 'fortran_order': False, 'shape': (7,)}", "does not fit its size"),
        ("{'descr': '<i8', 'fortran_order': False, 'shape': (5,)}", "does not fit its size"),
        ("{'descr': '<i8', 'fortran_order': False, 'shape': (-6,)}", "does not fit its size"),
        ("{'descr': '<i8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "does not fit its size"),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (6,)}", "must be plain numbers"),
        ("{'descr': '<c16', 'fortran_order': False, 'shape': (3,)}", "must be plain numbers"),
        ("{'descr': '|V8', 'fortran_order': False, 'shape': (6,)}", "must be plain numbers"),
        ("{'descr': [('a', '<i8')], 'fortran_order': False, 'shape': (6,)}", "must be plain numbers"),
        ("{'descr': '<i8', 'fortran_order': False}", "its header cannot be read: ValueError"),
        ("__import__('os')", "its header cannot be read: ValueError"),
        ("((((", "its header cannot be read"),
    ],
)
def test_headers_are_checked_against_the_file(path: Path, header: str, rule: str | None) -> None:
    with_header(path, header)
    with OpenFolder(path) as folder:
        if rule is None:
            assert folder.array("x.npy").shape == (6,)
        else:
            with pytest.raises(ValueError, match=rule):
                folder.array("x.npy")
