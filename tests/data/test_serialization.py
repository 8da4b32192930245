"""Interactions, queries and splits on disk."""

import json

import numpy as np
import polars as pl
import pytest

from pathdex.data import (
    load_interactions,
    load_queries,
    load_split,
    read,
    save_interactions,
    save_queries,
    save_split,
    split_users,
    vocabulary,
)
from pathdex.errors import DataError, StorageError
from pathdex.storage import array_folder
from pathdex.storage.array_folder import manifest_checksum


def example(text=True, time=True):
    users, items = [1, 1, 2, 2, 3, 3], ["a", "b", "ü", "a", "b", "c"]
    columns = {"user": users, "item": items if text else [ord(one) for one in items]}
    return read(pl.DataFrame(columns | ({"time": [6, 5, 4, 3, 2, 1]} if time else {})))


def same_ragged(one, other):
    return one.values.tolist() == other.values.tolist() and one.offsets.tolist() == other.offsets.tolist()


def same_words(one, other):
    return one.kind == other.kind and one.ids(range(len(one))) == other.ids(range(len(other)))


@pytest.mark.parametrize("text", [True, False])
@pytest.mark.parametrize("time", [True, False])
@pytest.mark.parametrize("mmap", [True, False])
def test_interactions_round_trip(tmp_path, text, time, mmap):
    data = example(text, time)
    again = load_interactions(save_interactions(tmp_path / "data", data), mmap=mmap)
    assert same_ragged(again.sequences, data.sequences)
    assert same_words(again.users, data.users)
    assert same_words(again.items, data.items)
    assert again.notes == data.notes
    assert again.ordered == data.ordered
    assert (again.times is None) == (not time)
    assert not time or again.times.tolist() == data.times.tolist()
    assert isinstance(again.sequences.values, np.memmap) == mmap


@pytest.mark.parametrize("valid_users", [0, 1])
def test_splits_round_trip_with_one_vocabulary(tmp_path, valid_users):
    split = split_users(example(), valid_users=valid_users, test_users=1)
    again = load_split(save_split(tmp_path / "split", split))
    assert same_ragged(again.train.sequences, split.train.sequences)
    assert same_words(again.train.items, split.train.items)
    for one, other in ((again.valid, split.valid), (again.test, split.test)):
        assert same_words(one.users, other.users)
        assert same_ragged(one.history, other.history)
        assert same_ragged(one.truth, other.truth)
    assert len([file for file in (tmp_path / "split").iterdir() if file.name.startswith("items.")]) == 2


def test_the_index_of_many_ids_is_not_stored(tmp_path, monkeypatch):
    monkeypatch.setattr(vocabulary, "DICT_LIMIT", 0)
    assert "slots" in example().items.arrays()
    saved = [
        save_interactions(tmp_path / "data", example()),
        save_split(tmp_path / "split", split_users(example(), test_users=1)),
        save_queries(tmp_path / "queries", split_users(example(), test_users=1).test),
    ]
    assert not [file for folder in saved for file in folder.iterdir() if "slots" in file.name]
    assert load_interactions(saved[0]).items.codes(["c", "ü", "z"]).tolist() == [2, 3, -1]


def test_queries_round_trip(tmp_path):
    queries = split_users(example(), test_users=2).test
    again = load_queries(save_queries(tmp_path / "queries", queries))
    assert same_ragged(again.truth, queries.truth)
    assert same_words(again.users, queries.users)


def test_an_existing_folder_is_replaced_only_with_overwrite(tmp_path):
    path = save_interactions(tmp_path / "data", example(text=True))
    with pytest.raises(StorageError, match=r"data exists; choose another path, remove it, or save with overwrite=True"):
        save_interactions(path, example(text=False))
    assert load_interactions(path).items.kind == "str"
    save_interactions(path, example(text=False), overwrite=True)
    assert load_interactions(path).items.kind == "int"
    assert [file.name for file in tmp_path.iterdir()] == ["data"]


def test_a_foreign_folder_is_never_replaced(tmp_path):
    (tmp_path / "photo.jpg").write_text("holiday")
    with pytest.raises(StorageError, match="is not a folder of a split, so it is not overwritten"):
        save_split(tmp_path, split_users(example(), test_users=1), overwrite=True)
    assert (tmp_path / "photo.jpg").read_text() == "holiday"


@pytest.fixture
def saved(tmp_path):
    return save_split(tmp_path / "split", split_users(example(), test_users=1))


def refused(path, message):
    with pytest.raises(DataError, match=message):
        load_split(path)


def test_a_missing_folder(tmp_path):
    refused(tmp_path / "none", "none does not exist; pass the folder that save_split")


def test_a_folder_without_a_manifest(tmp_path):
    refused(tmp_path, r"is not a folder of a split: it has no readable manifest\.json")


def test_a_folder_of_another_format(tmp_path):
    refused(save_interactions(tmp_path / "data", example()), r"manifest\.json has another format")


def test_a_missing_file(saved):
    (saved / "train.values.npy").unlink()
    refused(saved, r"is incomplete: train\.values\.npy is missing")


def test_a_truncated_file(saved):
    file = saved / "train.values.npy"
    file.write_bytes(file.read_bytes()[:-3])
    refused(saved, r"is damaged: train\.values\.npy has \d+ bytes, not \d+")


def test_a_changed_file(saved):
    file = saved / "train.values.npy"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    refused(saved, r"the checksum of train\.values\.npy is wrong")


def test_a_large_folder_is_opened_without_its_checksums(saved, monkeypatch):
    monkeypatch.setattr(array_folder, "VERIFY_LIMIT", 0)
    file = saved / "train.values.npy"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    load_split(saved)
    with pytest.raises(DataError, match="checksum"):
        load_split(saved, mmap=False)


def test_a_file_that_is_not_an_array(saved, monkeypatch):
    monkeypatch.setattr(array_folder, "VERIFY_LIMIT", 0)
    file = saved / "train.values.npy"
    file.write_bytes(b"x" * file.stat().st_size)
    refused(saved, r"train\.values\.npy is damaged \(.+\); copy it again, or write it again with save_split")


def change_manifest(folder, change):
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text())
    change(manifest)
    manifest["digest"] = manifest_checksum(manifest)
    file.write_text(json.dumps(manifest))


def test_a_newer_schema(saved):
    change_manifest(saved, lambda manifest: manifest.update(schema=99))
    refused(saved, r"has schema 99, newer than this Pathdex reads \(2\); upgrade pathdex")


@pytest.mark.parametrize("key", ["schema", "files"])
def test_a_manifest_without_a_key(saved, key):
    change_manifest(saved, lambda manifest: manifest.pop(key))
    refused(saved, rf"manifest\.json is damaged \({key}\)")


def test_a_manifest_that_lacks_an_array(saved):
    change_manifest(saved, lambda manifest: manifest["files"].pop("test.truth.values.npy"))
    refused(saved, "its manifest lacks 'values'; copy it again, or write it again with save_split")


def test_a_manifest_that_points_outside(saved):
    change_manifest(saved, lambda manifest: manifest["files"].update({"../x.npy": {"bytes": 1, "sha256": ""}}))
    refused(saved, r"manifest\.json is damaged")


def test_a_manifest_that_is_not_json(saved):
    (saved / "manifest.json").write_text("{")
    refused(saved, r"manifest\.json is damaged")
