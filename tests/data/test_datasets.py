"""Public data sets: fetched, verified, and described by their protocol."""

import dataclasses
import hashlib
import os
import socket
import zipfile

import pytest

from pathdex.data import DATASETS, fetch, find_dataset, read
from pathdex.errors import DataError, StorageError
from tests.data.file_server import serving


def movielens_archive(folder):
    path = folder / "made.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as packed:
        rows = "".join(f"{user}::{item}::{3 + item % 3}::{item}\n" for user in range(1, 9) for item in range(1, 40))
        packed.writestr("ml-1m/README", "terms")
        packed.writestr("ml-1m/ratings.dat", rows)
    return path.read_bytes()


@pytest.fixture
def archive(tmp_path):
    return movielens_archive(tmp_path)


@pytest.fixture
def movielens(archive, monkeypatch):
    """A server with a tiny MovieLens-1M, and the data set's URL pointing to it."""
    with serving(archive) as server:
        point(monkeypatch, "movielens-1m", server, hashlib.md5(archive).hexdigest())
        yield server


def point(monkeypatch, name, server, md5):
    monkeypatch.setitem(DATASETS, name, dataclasses.replace(DATASETS[name], url=server.url, md5=md5))


def names(folder):
    return sorted(file.name for file in folder.iterdir())


def test_a_download_is_complete_and_readable_with_its_protocol(movielens, archive, tmp_path):
    seen = []
    path = fetch("movielens-1m", tmp_path / "data", progress=lambda done, total: seen.append((done, total)))
    assert path.read_bytes() == archive
    assert names(path.parent) == ["ml-1m.zip"]
    assert seen[-1] == (len(archive), len(archive))
    data = read(path, **DATASETS["movielens-1m"].reading)
    assert (data.num_users, data.num_items) == (8, 26)


def test_an_existing_file_is_not_downloaded_again(movielens, tmp_path):
    fetch("movielens-1m", tmp_path)
    fetch("movielens-1m", tmp_path)
    assert len(movielens.requests) == 1


def test_a_wrong_checksum_removes_the_download(movielens, tmp_path, monkeypatch):
    point(monkeypatch, "movielens-1m", movielens, "0" * 32)
    with pytest.raises(DataError, match=r"its md5 is \w{32}, not 0{32}; .* the download was removed; fetch again"):
        fetch("movielens-1m", tmp_path / "data")
    assert names(tmp_path / "data") == []


def test_a_damaged_file_in_the_folder_is_an_error(movielens, tmp_path):
    (tmp_path / "ml-1m.zip").write_bytes(b"rotten")
    with pytest.raises(DataError, match=r"its md5 is .* remove .*ml-1m\.zip and fetch again"):
        fetch("movielens-1m", tmp_path)
    assert (tmp_path / "ml-1m.zip").read_bytes() == b"rotten"


def test_offline_the_message_names_the_alternative(tmp_path, monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/file"
    monkeypatch.setitem(DATASETS, "movielens-1m", dataclasses.replace(DATASETS["movielens-1m"], url=url))
    message = rf"cannot download {url}: .*refused.*; or download it by hand and pass it with file= \(--file "
    with pytest.raises(DataError, match=message):
        fetch("movielens-1m", tmp_path)
    assert names(tmp_path) == []


def test_a_local_file_is_verified_and_linked(movielens, archive, tmp_path):
    mine = tmp_path / "downloaded by hand.zip"
    mine.write_bytes(archive)
    path = fetch("movielens-1m", tmp_path / "data", file=mine)
    assert path.read_bytes() == archive
    assert movielens.requests == []
    assert mine.read_bytes() == archive


def test_a_local_file_on_another_disk_is_copied(movielens, archive, tmp_path, monkeypatch):
    mine = tmp_path / "mine.zip"
    mine.write_bytes(archive)

    def other_disk(*_args, **_options):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", other_disk)
    path = fetch("movielens-1m", tmp_path / "data", file=mine)
    assert path.read_bytes() == archive
    assert path.stat().st_ino != mine.stat().st_ino


def test_a_wrong_local_file_is_an_error(movielens, tmp_path):
    mine = tmp_path / "mine.zip"
    mine.write_bytes(b"something else")
    with pytest.raises(DataError, match=r"mine\.zip: its md5 is .* it is damaged or another edition; download http"):
        fetch("movielens-1m", tmp_path / "data", file=mine)
    with pytest.raises(DataError, match=r"file='.*none': is not a file; pass the path of a downloaded ml-1m\.zip"):
        fetch("movielens-1m", tmp_path / "data", file=tmp_path / "none")
    assert names(tmp_path / "data") == []


BOOKS = "".join(f"A{user},00{item:03d},5.0,{1000 + item}\n" for user in range(3) for item in range(12)).encode()


def test_without_a_published_checksum_the_first_download_is_recorded(tmp_path, monkeypatch):
    with serving(BOOKS) as server:
        point(monkeypatch, "amazon-books", server, None)
        path = fetch("amazon-books", tmp_path / "data")
    record = tmp_path / "data" / "ratings_Books.csv.sha256"
    assert record.read_text() == f"{hashlib.sha256(BOOKS).hexdigest()}  ratings_Books.csv\n"
    data = read(path, **DATASETS["amazon-books"].reading)
    assert (data.num_users, data.num_items, data.num_interactions) == (3, 12, 36)
    assert data.items.id(0) == "00000"
    assert fetch("amazon-books", tmp_path / "data") == path
    path.write_bytes(BOOKS[:-5])
    with pytest.raises(DataError, match="its sha256 is"):
        fetch("amazon-books", tmp_path / "data")


def test_a_folder_that_cannot_be_created(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"cannot write .*file.data: Not a directory; choose another folder"):
        fetch("movielens-1m", tmp_path / "file" / "data")


def test_an_unknown_name():
    known = "movielens-1m, movielens-20m, movielens-25m, amazon-books"
    with pytest.raises(DataError, match=f"name='movielens-20': must be one of {known}; did you mean 'movielens-20m'"):
        find_dataset("movielens-20")


@pytest.mark.parametrize("name", list(DATASETS))
def test_every_data_set_states_its_protocol(name):
    dataset = DATASETS[name]
    assert dataset.url.startswith("https://")
    assert dataset.url.endswith(dataset.filename)
    assert dataset.reading["min_interactions"] == 10
    assert dataset.reading.get("min_rating") == (4 if name.startswith("movielens") else None)
    assert dataset.valid_users == dataset.test_users > 0
