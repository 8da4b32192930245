"""The cache of checked bundles."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from pathdex.storage import verified
from pathdex.storage.open_folder import OpenFolder
from pathdex.storage.verified import CHECKSUMS, CONTENT, cache_folder, folder_key, is_checked, set_checked


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATHDEX_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_what_was_checked_is_remembered(cache: Path) -> None:
    assert not is_checked("abc", CONTENT)
    set_checked("abc", CONTENT)
    assert is_checked("abc", CONTENT)
    assert not is_checked("abc", CHECKSUMS)
    set_checked("abc", CHECKSUMS)
    assert is_checked("abc", CONTENT)
    assert [entry.name for entry in (cache / "verified").iterdir()] == ["abc"]


def test_nobody_else_can_write_entries(cache: Path) -> None:
    set_checked("abc", CONTENT)
    assert (cache / "verified").stat().st_mode & 0o777 == 0o700
    (cache / "verified").chmod(0o777)
    assert cache_folder() is None
    assert not is_checked("abc", CONTENT)


def test_a_link_is_not_a_cache(cache: Path, tmp_path: Path) -> None:
    cache.mkdir()
    (tmp_path / "other").mkdir(mode=0o700)
    (cache / "verified").symlink_to(tmp_path / "other")
    assert cache_folder(create=True) is None


@pytest.mark.parametrize("content", ["{", "[1]", "", "\ud800"])
def test_a_damaged_entry_counts_as_none(cache: Path, content: str) -> None:
    set_checked("abc", CONTENT)
    (cache / "verified" / "abc").write_bytes(content.encode("utf-8", "surrogatepass"))
    assert not is_checked("abc", CONTENT)
    set_checked("abc", CONTENT)
    assert is_checked("abc", CONTENT)


def test_there_may_be_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATHDEX_CACHE", "")
    set_checked("abc", CONTENT)
    assert not is_checked("abc", CONTENT)


def test_a_folder_that_cannot_be_made_is_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("PATHDEX_CACHE", str(tmp_path / "file" / "cache"))
    set_checked("abc", CONTENT)
    assert not is_checked("abc", CONTENT)


def test_the_default_is_the_user_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PATHDEX_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert cache_folder(create=True) == tmp_path / "home" / "pathdex" / "verified"


def test_old_entries_are_removed(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verified, "KEPT", 3)
    for number in range(6):
        set_checked(f"key{number}", CONTENT)
        os.utime(cache / "verified" / f"key{number}", (number, number))
    set_checked("last", CONTENT)
    assert {entry.name for entry in (cache / "verified").iterdir()} == {"last", "key5", "key4"}


def test_a_key_names_the_files_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    np.save(folder / "x.npy", np.arange(3))
    (folder / "manifest.json").write_text(json.dumps({}))

    def key() -> str:
        with OpenFolder(folder) as opened:
            return folder_key(opened, ["x.npy", "manifest.json"])

    first = key()
    assert key() == first
    np.save(folder / "x.npy", np.arange(3))
    assert key() != first
