"""Folders of arrays with a manifest."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathdex.errors import BundleError, StorageError
from pathdex.storage import array_folder
from pathdex.storage.array_folder import (
    MANIFEST,
    FolderFormat,
    file_digest,
    open_folder,
    read_arrays,
    read_manifest,
    read_stable,
    write_arrays,
    write_folder,
)
from tests.bundle_edits import change_manifest

FORMAT = FolderFormat("test-format", "test folder", "write_it()", BundleError, {"kind": str})
ARRAYS = {"one": np.arange(6).reshape(2, 3), "two": np.zeros(0, np.float32)}


def write(path: Path, *, overwrite: bool = False, form: FolderFormat = FORMAT) -> Path:
    return write_folder(path, form, {"kind": "x"}, lambda folder: write_arrays(folder, ARRAYS), overwrite=overwrite)


def arrays_of(path: Path, **options: Any) -> dict[str, Any]:
    folder, manifest = open_folder(path, FORMAT)
    with folder:
        return read_arrays(folder, FORMAT, manifest["files"], **options)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "folder")


def test_the_manifest_lists_every_file(path: Path) -> None:
    manifest = read_manifest(path, FORMAT)
    content = (path / "one.npy").read_bytes()
    assert manifest["format"] == "test-format"
    assert (manifest["schema"], manifest["kind"]) == (2, "x")
    assert set(manifest["files"]) == {"one.npy", "two.npy"}
    assert manifest["files"]["one.npy"] == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


@pytest.mark.parametrize("mmap", [True, False])
def test_arrays_can_be_read_back(path: Path, mmap: bool) -> None:
    arrays = arrays_of(path, mmap=mmap)
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype
    assert isinstance(arrays["one"], np.memmap) == mmap


def test_other_users_may_read_everything(path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o755
    assert {file.stat().st_mode & 0o777 for file in path.iterdir()} == {0o644}


def test_an_existing_folder_is_replaced_only_with_overwrite(path: Path) -> None:
    with pytest.raises(StorageError, match="exists; choose another path, remove it, or save with overwrite=True"):
        write(path)
    (path / "more").write_text("x")
    write(path, overwrite=True)
    assert not (path / "more").exists()


def test_a_damaged_manifest_does_not_prevent_overwriting(path: Path) -> None:
    (path / MANIFEST).write_text("{")
    write(path, overwrite=True)
    assert read_manifest(path, FORMAT)["kind"] == "x"


@pytest.mark.parametrize("manifest", [None, "[1]", '{"format": "other-format"}', "{}"])
def test_a_foreign_folder_is_never_overwritten(tmp_path: Path, manifest: str | None) -> None:
    (tmp_path / "photo.jpg").write_text("holiday")
    if manifest is not None:
        (tmp_path / MANIFEST).write_text(manifest)
    with pytest.raises(StorageError, match="is not a test folder, so it is not overwritten; choose another path"):
        write(tmp_path, overwrite=True)
    assert (tmp_path / "photo.jpg").read_text() == "holiday"


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"none does not exist; pass the folder that write_it\(\) wrote$"):
        read_manifest(tmp_path / "none", FORMAT)


def test_a_folder_of_another_format_is_an_error(tmp_path: Path, path: Path) -> None:
    with pytest.raises(BundleError, match=r"is not a test folder: it has no readable manifest.json$"):
        read_manifest(tmp_path, FORMAT)
    change_manifest(path, format="other")
    with pytest.raises(BundleError, match=r"is not a test folder: manifest.json has another format$"):
        read_manifest(path, FORMAT)


def test_a_newer_schema_is_an_error(path: Path) -> None:
    change_manifest(path, schema=3)
    with pytest.raises(BundleError, match=r"has schema 3, newer than this Pathdex reads \(2\); upgrade pathdex"):
        read_manifest(path, FORMAT)


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({"schema": None}, "schema"),
        ({"kind": 5}, "kind"),
        ({"kind": None, "files": None}, "kind, files"),
        ({"files": {"one.npy": 3}}, "files"),
        ({"files": {"../one.npy": {"bytes": 1, "sha256": ""}}}, "files"),
        ({"files": {"one.npy": {"bytes": "1", "sha256": ""}}}, "files"),
        ({"files": {"one.npy": {"bytes": -1, "sha256": ""}}}, "files"),
        ({"schema": 0}, "schema"),
        ({"schema": True}, "schema"),
    ],
)
def test_a_damaged_manifest_names_its_broken_keys(path: Path, changes: dict[str, Any], broken: str) -> None:
    change_manifest(path, **changes)
    message = rf"manifest.json is damaged \({broken}\); copy it again, or write it again with write_it\(\)$"
    with pytest.raises(BundleError, match=message):
        read_manifest(path, FORMAT)


def test_checksums_are_verified_up_to_a_limit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = bytearray((path / "one.npy").read_bytes())
    content[-1] ^= 1
    (path / "one.npy").write_bytes(content)
    with pytest.raises(BundleError, match=r"is damaged: the checksum of one.npy is wrong"):
        arrays_of(path)
    monkeypatch.setattr(array_folder, "VERIFY_LIMIT", 10)
    arrays_of(path)
    with pytest.raises(BundleError, match=r"is damaged: the checksum of one.npy is wrong"):
        arrays_of(path, verify=True)


def test_missing_and_truncated_files_are_errors(path: Path) -> None:
    (path / "one.npy").write_bytes((path / "one.npy").read_bytes()[:-5])
    with pytest.raises(BundleError, match=r"is damaged: one.npy has 171 bytes, not 176; copy it again"):
        arrays_of(path)
    (path / "one.npy").unlink()
    with pytest.raises(BundleError, match=r"is incomplete: one.npy is missing; copy it again"):
        arrays_of(path)


def test_a_link_to_a_file_elsewhere_is_an_error(path: Path, tmp_path: Path) -> None:
    (path / "one.npy").rename(tmp_path / "elsewhere.npy")
    (path / "one.npy").symlink_to(tmp_path / "elsewhere.npy")
    with pytest.raises(BundleError, match=r"one.npy cannot be read \(it is a symbolic link, must be a plain file\)"):
        arrays_of(path)


def test_a_manifest_that_is_a_link_is_an_error(path: Path, tmp_path: Path) -> None:
    (path / MANIFEST).rename(tmp_path / MANIFEST)
    (path / MANIFEST).symlink_to(tmp_path / MANIFEST)
    with pytest.raises(BundleError, match=r"no readable manifest.json \(it is a symbolic link, must be a plain file\)"):
        read_manifest(path, FORMAT)


class TestManifestDigest:
    def test_every_flipped_bit_is_noticed(self, path: Path) -> None:
        content = (path / MANIFEST).read_bytes()
        meaning = json.loads(content)
        for place in range(len(content)):
            for bit in range(8):
                changed = bytearray(content)
                changed[place] ^= 1 << bit
                (path / MANIFEST).write_bytes(changed)
                with suppress(BundleError):
                    assert read_manifest(path, FORMAT) == meaning  # White space has no meaning.

    def test_a_changed_value_is_an_error(self, path: Path) -> None:
        change_manifest(path, sign=False, kind="y")
        with pytest.raises(BundleError, match=r"manifest.json is damaged \(digest\); copy it again"):
            read_manifest(path, FORMAT)
        change_manifest(path, kind="y")
        assert read_manifest(path, FORMAT)["kind"] == "y"

    def test_it_cannot_be_left_out(self, path: Path) -> None:
        change_manifest(path, sign=False, digest=None)
        with pytest.raises(BundleError, match=r"is damaged \(digest\)"):
            read_manifest(path, FORMAT)

    def test_earlier_schemas_have_none(self, path: Path) -> None:
        change_manifest(path, sign=False, digest=None, schema=1)
        assert read_manifest(path, FORMAT)["kind"] == "x"

    def test_unknown_keys_are_refused_where_all_keys_are_known(self, path: Path) -> None:
        change_manifest(path, more=1)
        assert read_manifest(path, FORMAT)["more"] == 1
        with pytest.raises(BundleError, match=r"is damaged \(more\)"):
            read_manifest(path, replace(FORMAT, closed=True))

    def test_a_manifest_is_bounded(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(array_folder, "MANIFEST_LIMIT", 10)
        with pytest.raises(BundleError, match=r"no readable manifest.json \(it has more than 10 bytes\)"):
            read_manifest(path, FORMAT)

    def test_deep_nesting_is_an_error(self, path: Path) -> None:
        (path / MANIFEST).write_text("[" * 100_000)
        with pytest.raises(BundleError, match=r"manifest.json is damaged"):
            read_manifest(path, FORMAT)


def test_a_digest_is_that_of_the_whole_file(tmp_path: Path) -> None:
    content = b"x" * (2**20 + 5)
    (tmp_path / "file").write_bytes(content)
    assert file_digest(tmp_path / "file", "md5") == hashlib.md5(content).hexdigest()


class TestReadStable:
    def test_a_folder_that_is_replaced_is_read_again(self, path: Path) -> None:
        reads = []

        def read() -> int:
            reads.append(len(reads))
            if len(reads) < 3:
                write(path, overwrite=True)
            return reads[-1]

        assert read_stable(path, FORMAT, read) == 2

    def test_an_error_is_raised_only_if_the_folder_did_not_change(self, path: Path) -> None:
        reads = []

        def read() -> int:
            reads.append(len(reads))
            if len(reads) == 1:
                write(path, overwrite=True)
            raise BundleError("wrong")

        with pytest.raises(BundleError, match="wrong"):
            read_stable(path, FORMAT, read)
        assert len(reads) == 2

    def test_a_folder_that_is_replaced_all_the_time_is_an_error(self, path: Path) -> None:
        with pytest.raises(BundleError, match=r"was replaced 10 times while it was opened; replace it less often"):
            read_stable(path, FORMAT, lambda: write(path, overwrite=True))
