"""CURRENT and deltas on disk: what is written is read, and damage is noticed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pathdex.errors import BundleError
from pathdex.storage.live_folder import (
    CURRENT,
    TENSORS,
    BaseVersion,
    DamagedCurrentError,
    LiveVersion,
    _checksum,
    delta_folder,
    is_live_folder,
    manifest_digest,
    read_current,
    read_delta,
    write_current,
    write_delta,
)

BASE = BaseVersion(7, 41, "aa", "bb")
VERSION = LiveVersion(BASE, 42, 43, "cc", (BaseVersion(6, 30, "dd", "ee"), BASE))
ARRAYS = {"items": np.array([1, 2]), "rows": np.ones((2, 3), np.float32), "empty": np.empty((0, 2), np.int64)}


def test_current_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert not is_live_folder(tmp_path)
    write_current(tmp_path, VERSION)
    assert is_live_folder(tmp_path)
    assert read_current(tmp_path) == VERSION
    assert VERSION.deltas == range(42, 44)
    assert BASE.name == "base-000007"


def test_a_delta_is_read_as_it_was_written(tmp_path: Path) -> None:
    digest = write_delta(tmp_path, 5, "before", {"num_items": 3}, ARRAYS, {"start": np.zeros(2, np.float32)})
    delta = read_delta(tmp_path, 5, before="before")
    assert (delta.number, delta.before, delta.digest, delta.settings) == (5, "before", digest, {"num_items": 3})
    assert delta.arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(delta.arrays[name], array)
    assert list(delta.weights) == ["start"]
    assert digest != write_delta(tmp_path, 5, "other", {"num_items": 3}, ARRAYS, {})


def test_a_delta_of_another_chain_is_refused(tmp_path: Path) -> None:
    write_delta(tmp_path, 5, "before", {}, ARRAYS, {})
    with pytest.raises(BundleError, match="does not continue the chain"):
        read_delta(tmp_path, 5, before="something else")
    delta_folder(tmp_path, 5).rename(delta_folder(tmp_path, 6))
    with pytest.raises(BundleError, match="does not continue the chain"):
        read_delta(tmp_path, 6)


def test_a_damaged_or_missing_delta_is_noticed(tmp_path: Path) -> None:
    write_delta(tmp_path, 5, "before", {}, ARRAYS, {})
    file = delta_folder(tmp_path, 5) / TENSORS
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(BundleError, match=r"checksum of delta\.safetensors is wrong"):
        read_delta(tmp_path, 5)
    file.write_bytes(content[:-1])
    with pytest.raises(BundleError, match="bytes, not"):
        read_delta(tmp_path, 5)
    with pytest.raises(BundleError, match="does not exist; pass the folder that `pathdex stream` wrote"):
        read_delta(tmp_path, 4)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is damaged"),
        ("[]", "has another format"),
        (json.dumps({"format": "pathdex-live", "schema": 9}), "newer than this Pathdex reads; upgrade pathdex"),
        (json.dumps({"format": "pathdex-live", "schema": 1, "bases": [], "base": "x"}), "is damaged"),
        ("\xff\x00", "is damaged"),
        ("[" * 100_000, "is damaged"),
    ],
)
def test_a_wrong_current_is_an_error(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / CURRENT).write_text(content, encoding="latin-1")
    with pytest.raises(BundleError, match=message):
        read_current(tmp_path)


def change_current(path: Path, **changes: object) -> None:
    file = path / CURRENT
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def test_a_changed_value_of_current_is_noticed(tmp_path: Path) -> None:
    write_current(tmp_path, VERSION)
    change_current(tmp_path, last_delta=42)
    with pytest.raises(DamagedCurrentError, match="its checksum is wrong"):
        read_current(tmp_path)
    change_current(tmp_path, last_delta=43)
    assert read_current(tmp_path) == VERSION


def test_current_without_a_checksum_is_damaged(tmp_path: Path) -> None:
    write_current(tmp_path, VERSION)
    change_current(tmp_path, checksum=None)
    with pytest.raises(DamagedCurrentError, match="its checksum is wrong"):
        read_current(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"digest": 5},
        {"digest": None},
        {"schema": "x"},
        {"first_delta": True},
        {"last_delta": 10**30},
        {"last_delta": "43"},
        {"bases": [{"number": 7, "delta": 41, "digest": "a", "manifest": 1}]},
        {"base": "base-" + "1" + "0" * 400, "bases": [{"number": 10**400, "delta": 1, "digest": "a", "manifest": "b"}]},
    ],
)
def test_values_of_a_wrong_type_with_a_valid_checksum_are_damage(tmp_path: Path, changes: dict[str, object]) -> None:
    write_current(tmp_path, VERSION)
    change_current(tmp_path, **changes)
    content = json.loads((tmp_path / CURRENT).read_text())
    content.pop("checksum")
    change_current(tmp_path, checksum=_checksum(content))
    with pytest.raises(DamagedCurrentError, match="is damaged"):
        read_current(tmp_path)


def test_a_deep_or_large_current_is_refused(tmp_path: Path) -> None:
    write_current(tmp_path, VERSION)
    for depth in range(950, 1010):
        content = '{"format": "pathdex-live", "schema": 1, "x": ' + "[" * depth + "]" * depth + "}"
        (tmp_path / CURRENT).write_text(content)
        with pytest.raises(DamagedCurrentError, match="is damaged"):
            read_current(tmp_path)
    (tmp_path / CURRENT).write_bytes(b" " * 2**21)
    with pytest.raises(BundleError, match="no readable CURRENT"):
        read_current(tmp_path)


def test_a_damaged_current_names_the_way_out(tmp_path: Path) -> None:
    (tmp_path / CURRENT).write_text("{")
    with pytest.raises(DamagedCurrentError, match="restore CURRENT or the folder from a backup, or remove CURRENT and"):
        read_current(tmp_path)
    (tmp_path / "base-000003").mkdir()
    with pytest.raises(DamagedCurrentError, match="base-000003 is a model of its own that can be used meanwhile"):
        read_current(tmp_path)
    (tmp_path / "stream.json").write_text("{}")
    with pytest.raises(DamagedCurrentError, match="; run `pathdex stream` again, it publishes again"):
        read_current(tmp_path)


def test_a_folder_without_current_is_no_live_folder(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="is not a live folder: it has no readable CURRENT"):
        read_current(tmp_path)


def test_a_manifest_has_a_digest(tmp_path: Path) -> None:
    write_delta(tmp_path, 1, "", {}, ARRAYS, {})
    assert len(manifest_digest(delta_folder(tmp_path, 1))) == 64
