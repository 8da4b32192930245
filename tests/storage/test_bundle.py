"""Bundles: saved models that read back as written, and survive failures."""

import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pathdex.errors import BundleError, StorageError
from pathdex.storage import array_folder
from pathdex.storage.array_folder import MANIFEST
from pathdex.storage.bundle import WEIGHTS, Bundle, bundle_version, read_bundle, write_bundle
from tests.bundle_edits import change_manifest, sign_files
from tests.storage.test_atomic import file_size_limit

BUNDLE = Bundle(
    "some-model",
    {"depth": 3, "names": ["a", "b"]},
    {"paths": np.arange(12, dtype=np.int64).reshape(4, 3), "counts": np.array([], np.int32)},
    {"layer.weight": np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3)},
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_bundle(tmp_path / "bundle", BUNDLE)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def test_a_bundle_reads_back_as_written(path: Path) -> None:
    opened = read_bundle(path)
    assert (opened.estimator, opened.settings) == (BUNDLE.estimator, BUNDLE.settings)
    assert set(opened.arrays) == {"paths", "counts"}
    for name, array in BUNDLE.arrays.items():
        np.testing.assert_array_equal(opened.arrays[name], array)
        assert opened.arrays[name].dtype == array.dtype
    np.testing.assert_array_equal(opened.weights["layer.weight"], BUNDLE.weights["layer.weight"])


def test_arrays_are_mapped(path: Path) -> None:
    assert isinstance(read_bundle(path).arrays["paths"], np.memmap)


def test_a_bundle_without_weights_has_no_weights_file(tmp_path: Path) -> None:
    path = write_bundle(tmp_path / "bundle", Bundle("some-model", {}))
    assert [file.name for file in path.iterdir()] == [MANIFEST]
    assert read_bundle(path).weights == {}


def test_strided_arrays_are_stored_contiguously(tmp_path: Path) -> None:
    table = np.arange(12, dtype=np.float32).reshape(3, 4)
    path = write_bundle(tmp_path / "bundle", Bundle("some-model", {}, {"a": table.T}, {"w": table[:, ::2]}))
    np.testing.assert_array_equal(read_bundle(path).arrays["a"], table.T)
    np.testing.assert_array_equal(read_bundle(path).weights["w"], table[:, ::2])


def test_parent_folders_are_created(tmp_path: Path) -> None:
    path = write_bundle(tmp_path / "some" / "where" / "bundle", BUNDLE)
    assert read_bundle(path).estimator == "some-model"


def test_the_version_depends_only_on_the_content(path: Path, tmp_path: Path) -> None:
    again = write_bundle(tmp_path / "again", BUNDLE)
    other = write_bundle(tmp_path / "other", Bundle("some-model", {"depth": 4}))
    assert bundle_version(path) == bundle_version(again) != bundle_version(other)


def test_an_existing_bundle_is_replaced_only_with_overwrite(path: Path) -> None:
    before = contents(path)
    with pytest.raises(StorageError, match="exists; choose another path, remove it, or save with overwrite=True"):
        write_bundle(path, Bundle("other", {}))
    assert contents(path) == before
    write_bundle(path, Bundle("other", {}), overwrite=True)
    assert read_bundle(path).estimator == "other"
    assert [file.name for file in path.parent.iterdir()] == ["bundle"]


def test_a_foreign_folder_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "one.jpg").write_bytes(b"jpg")
    with pytest.raises(StorageError, match="is not a Pathdex bundle, so it is not overwritten; choose another path"):
        write_bundle(tmp_path / "photos", BUNDLE, overwrite=True)
    assert contents(tmp_path) == {"photos/one.jpg": b"jpg"}


def test_another_estimator_is_an_error(path: Path) -> None:
    with pytest.raises(BundleError, match=r"holds a 'some-model' model, not 'item-cf'; open it with pathdex.load"):
        read_bundle(path, estimator="item-cf")
    assert read_bundle(path, estimator="some-model").estimator == "some-model"


def test_a_missing_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="nothing does not exist; pass the folder that `pathdex train`"):
        read_bundle(tmp_path / "nothing")


def test_a_folder_without_a_manifest_is_not_a_bundle(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"is not a Pathdex bundle: it has no readable manifest.json"):
        read_bundle(tmp_path)


def test_a_file_is_not_a_bundle(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"\0")
    with pytest.raises(BundleError, match=r"model.bin is not a Pathdex bundle"):
        read_bundle(tmp_path / "model.bin")


def _truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-5])


def _flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "truncated manifest": (
        lambda path: _truncate(path / MANIFEST),
        r"manifest.json is damaged .*; copy it again, or write it again with `pathdex train`",
    ),
    "manifest is not text": (lambda path: (path / MANIFEST).write_bytes(b"\xff\xfe{"), "manifest.json is damaged"),
    "manifest is not an object": (lambda path: (path / MANIFEST).write_text("[1]") and None, "has another format"),
    "another format": (lambda path: change_manifest(path, format="zip"), "has another format"),
    "no schema": (lambda path: change_manifest(path, schema=None), "manifest.json is damaged .*; copy it again"),
    "no estimator": (lambda path: change_manifest(path, estimator=None), "manifest.json is damaged"),
    "no settings": (lambda path: change_manifest(path, settings=None), "manifest.json is damaged"),
    "no files": (lambda path: change_manifest(path, files=None), "manifest.json is damaged"),
    "odd files": (lambda path: change_manifest(path, files={"paths.npy": 3}), "manifest.json is damaged"),
    "newer schema": (
        lambda path: change_manifest(path, schema=99),
        r"has schema 99, newer than this Pathdex reads \(2\); upgrade pathdex",
    ),
    "missing array": (lambda path: (path / "paths.npy").unlink(), "is incomplete: paths.npy is missing"),
    "missing weights": (lambda path: (path / WEIGHTS).unlink(), "is incomplete: weights.safetensors is missing"),
    "truncated array": (lambda path: _truncate(path / "paths.npy"), "is damaged: paths.npy has 219 bytes, not 224"),
    "truncated weights": (lambda path: _truncate(path / WEIGHTS), "is damaged: weights.safetensors has .* bytes, not"),
    "changed array": (lambda path: _flip(path / "paths.npy"), "is damaged: the checksum of paths.npy is wrong"),
    "changed weights": (lambda path: _flip(path / WEIGHTS), "is damaged: the checksum of weights.safetensors is wrong"),
    "name with a null character": (
        lambda path: change_manifest(path, files={"a\0b.npy": {"bytes": 1, "sha256": ""}}),
        "manifest.json is damaged",
    ),
    "name that is no text": (
        lambda path: change_manifest(path, files={"\ud800.npy": {"bytes": 1, "sha256": ""}}),
        "manifest.json is damaged",
    ),
    "no name": (lambda path: change_manifest(path, files={"": {"bytes": 1, "sha256": ""}}), "manifest.json is damaged"),
    "folder above": (
        lambda path: change_manifest(path, files={"..": {"bytes": 1, "sha256": ""}}),
        "manifest.json is damaged",
    ),
    "file elsewhere": (
        lambda path: change_manifest(path, files={"../paths.npy": {"bytes": 1, "sha256": ""}}),
        "manifest.json is damaged",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_bundle_is_an_error_and_not_changed(path: Path, damage: str) -> None:
    spoil, rule = DAMAGE[damage]
    spoil(path)
    before = contents(path)
    with pytest.raises(BundleError, match=rule):
        read_bundle(path)
    assert contents(path) == before


@pytest.mark.parametrize("file", ["paths.npy", WEIGHTS])
def test_a_broken_header_is_an_error_even_without_checksums(path: Path, file: str) -> None:
    content = (path / file).read_bytes()
    (path / file).write_bytes(b"\xff" * 40 + content[40:])
    with pytest.raises(BundleError, match=f"{file} is damaged .*; copy it again"):
        read_bundle(path, verify=False)


def test_large_bundles_are_opened_without_checksums(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _flip(path / "paths.npy")
    monkeypatch.setattr(array_folder, "VERIFY_LIMIT", 10)
    assert read_bundle(path).estimator == "some-model"
    with pytest.raises(BundleError, match=r"the checksum of paths.npy is wrong"):
        read_bundle(path, verify=True)


LARGE = np.zeros(100_000, np.float32)


@pytest.mark.parametrize(
    "large",
    [
        Bundle("other", {}, {"large": LARGE}),
        Bundle("other", {}, {}, {"large": LARGE}),
        Bundle("other", {"x": "y" * 9999}),
    ],
    ids=["array", "weights", "manifest"],
)
@pytest.mark.parametrize("exists", [True, False])
def test_a_full_disk_leaves_the_old_bundle(tmp_path: Path, large: Bundle, exists: bool) -> None:
    path = tmp_path / "bundle"
    if exists:
        write_bundle(path, BUNDLE)
    before = contents(tmp_path)
    with (
        file_size_limit(4096),
        pytest.raises(StorageError, match=r"cannot write .*; free space .*; nothing was changed"),
    ):
        write_bundle(path, large, overwrite=exists)
    assert contents(tmp_path) == before
    assert [file.name for file in tmp_path.iterdir()] == (["bundle"] if exists else [])


def test_a_parent_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(
        StorageError, match=r"cannot write .*bundle: .*; free space or choose another path; nothing was changed$"
    ):
        write_bundle(tmp_path / "file" / "bundle", BUNDLE)


def test_a_bundle_can_be_moved(path: Path, tmp_path: Path) -> None:
    moved = shutil.move(path, tmp_path / "moved")
    assert read_bundle(Path(moved)).estimator == "some-model"


def test_a_manifest_of_any_depth_is_refused_or_read(path: Path) -> None:
    content = (path / MANIFEST).read_text()
    for depth in range(950, 1010):
        nested = '"deep": ' + "[" * depth + "]" * depth
        (path / MANIFEST).write_text(content.replace('"settings": {', '"settings": {' + nested + ",", 1))
        with pytest.raises(BundleError, match=r"manifest\.json is damaged"):
            read_bundle(path)


def test_a_pipe_or_a_huge_file_is_no_manifest(path: Path) -> None:
    os.truncate(path / MANIFEST, 2**32)
    with pytest.raises(OSError, match="more than"):
        bundle_version(path)
    with pytest.raises(StorageError, match="is not a Pathdex bundle"):
        write_bundle(path, BUNDLE, overwrite=True)
    (path / MANIFEST).unlink()
    os.mkfifo(path / MANIFEST)
    with pytest.raises(OSError, match="not a plain file"):
        bundle_version(path)
    with pytest.raises(StorageError, match="is not a Pathdex bundle"):
        write_bundle(path, BUNDLE, overwrite=True)


def test_weights_of_a_type_that_numpy_lacks_are_an_error(path: Path) -> None:
    header = b'{"layer.weight": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]}}'
    (path / WEIGHTS).write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    sign_files(path)
    with pytest.raises(BundleError, match=r"weights\.safetensors is damaged"):
        read_bundle(path)
