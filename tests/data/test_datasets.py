import contextlib
import dataclasses
import hashlib
import os
import socket
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pathdex.data import DATASETS, fetch, find_dataset, read
from pathdex.errors import DataError, StorageError


class Server(ThreadingHTTPServer):
    """Serves one file, with ranges; can break off, change the file, or refuse."""

    daemon_threads = True

    def __init__(self, content):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = content
        self.break_after = None
        self.status = None
        self.ranges = True
        self.length = True
        self.requests = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/file"


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_args):
        pass

    def do_GET(self):
        server, content = self.server, self.server.content
        server.requests.append(self.headers.get("Range"))
        tag = hashlib.md5(content).hexdigest()
        start = 0
        if server.status is not None:
            self.send_error(server.status)
            return
        if self.headers.get("Range") and server.ranges and self.headers.get("If-Range") == f'"{tag}"':
            start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        if server.length:
            self.send_header("Content-Length", str(len(content) - start))
        self.send_header("ETag", f'"{tag}"')
        self.end_headers()
        end = len(content) if server.break_after is None else min(len(content), start + server.break_after)
        self.wfile.write(content[start:end])


@contextlib.contextmanager
def serving(content):
    server = Server(content)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


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
    """A server with a tiny MovieLens-1M, and the source pointing to it."""
    with serving(archive) as server:
        point(monkeypatch, "movielens-1m", server, hashlib.md5(archive).hexdigest())
        yield server


def point(monkeypatch, name, server, md5):
    source = dataclasses.replace(DATASETS[name], url=server.url, md5=md5)
    monkeypatch.setitem(DATASETS, name, source)


def names(folder):
    return sorted(file.name for file in folder.iterdir())


def test_a_download_lands_whole_and_is_read_by_its_protocol(movielens, archive, tmp_path):
    seen = []
    path = fetch("movielens-1m", tmp_path / "data", progress=lambda done, total: seen.append((done, total)))
    assert path.read_bytes() == archive
    assert names(path.parent) == ["ml-1m.zip"]
    assert seen[-1] == (len(archive), len(archive))
    data = read(path, **DATASETS["movielens-1m"].reading)
    assert (data.num_users, data.num_items) == (8, 26)


def test_what_is_there_is_not_loaded_again(movielens, tmp_path):
    fetch("movielens-1m", tmp_path)
    fetch("movielens-1m", tmp_path)
    assert len(movielens.requests) == 1


def test_a_connection_that_breaks_is_taken_up_where_it_stopped(movielens, archive, tmp_path):
    movielens.break_after = len(archive) // 2
    assert fetch("movielens-1m", tmp_path / "data").read_bytes() == archive
    assert movielens.requests[:2] == [None, f"bytes={len(archive) // 2}-"]


def test_an_interrupted_download_goes_on_at_the_next_call(movielens, archive, tmp_path):
    movielens.break_after = 100
    with pytest.raises(
        DataError, match=r"the connection broke; 400 bytes are kept and the same call goes on .* --file"
    ):
        fetch("movielens-1m", tmp_path / "data")
    assert names(tmp_path / "data") == ["ml-1m.zip.part", "ml-1m.zip.part.json"]
    movielens.break_after = None
    assert fetch("movielens-1m", tmp_path / "data").read_bytes() == archive
    assert movielens.requests[-1] == "bytes=400-"
    assert names(tmp_path / "data") == ["ml-1m.zip"]


def test_a_file_that_changed_on_the_server_is_started_anew(movielens, archive, tmp_path, monkeypatch):
    movielens.break_after = 100
    with pytest.raises(DataError):
        fetch("movielens-1m", tmp_path / "data")
    movielens.break_after = None
    movielens.content = archive + b"new edition"
    point(monkeypatch, "movielens-1m", movielens, hashlib.md5(movielens.content).hexdigest())
    assert fetch("movielens-1m", tmp_path / "data").read_bytes() == movielens.content


def test_a_server_without_ranges_starts_anew(movielens, archive, tmp_path):
    movielens.break_after = 100
    with pytest.raises(DataError):
        fetch("movielens-1m", tmp_path / "data")
    movielens.break_after, movielens.ranges = None, False
    assert fetch("movielens-1m", tmp_path / "data").read_bytes() == archive


def test_a_server_that_tells_no_length(movielens, archive, tmp_path):
    movielens.length = False
    assert fetch("movielens-1m", tmp_path / "data").read_bytes() == archive


def test_a_part_that_is_whole_needs_nothing_more(movielens, archive, tmp_path):
    part = tmp_path / "ml-1m.zip.part"
    part.write_bytes(archive)
    tag = hashlib.md5(archive).hexdigest()
    (tmp_path / "ml-1m.zip.part.json").write_text(f'{{"version": "\\"{tag}\\"", "bytes": {len(archive)}}}')
    assert fetch("movielens-1m", tmp_path).read_bytes() == archive
    assert movielens.requests == [f"bytes={len(archive)}-"]


def test_a_part_longer_than_the_file_is_thrown_away(movielens, archive, tmp_path):
    (tmp_path / "ml-1m.zip.part").write_bytes(archive + b"more")
    tag = hashlib.md5(archive).hexdigest()
    (tmp_path / "ml-1m.zip.part.json").write_text(f'{{"version": "\\"{tag}\\"", "bytes": {len(archive)}}}')
    assert fetch("movielens-1m", tmp_path).read_bytes() == archive


def test_a_part_without_its_memory_is_started_anew(movielens, archive, tmp_path):
    (tmp_path / "ml-1m.zip.part").write_bytes(b"who knows")
    assert fetch("movielens-1m", tmp_path).read_bytes() == archive
    assert movielens.requests == [None]


def test_a_wrong_checksum_is_refused_and_leaves_nothing(movielens, tmp_path, monkeypatch):
    point(monkeypatch, "movielens-1m", movielens, "0" * 32)
    with pytest.raises(DataError, match=r"its md5 is \w{32}, not 0{32}; .* what came was removed; fetch again"):
        fetch("movielens-1m", tmp_path / "data")
    assert names(tmp_path / "data") == []


def test_a_damaged_copy_in_the_folder_is_not_used(movielens, tmp_path):
    (tmp_path / "ml-1m.zip").write_bytes(b"rotten")
    with pytest.raises(DataError, match=r"its md5 is .* remove .*ml-1m\.zip and fetch again"):
        fetch("movielens-1m", tmp_path)
    assert (tmp_path / "ml-1m.zip").read_bytes() == b"rotten"


def test_offline_the_message_tells_the_way_out(tmp_path, monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/file"
    monkeypatch.setitem(DATASETS, "movielens-1m", dataclasses.replace(DATASETS["movielens-1m"], url=url))
    message = rf"cannot download {url}: .*refused.*; or download it by hand and pass it with file= \(.* --file\)"
    with pytest.raises(DataError, match=message):
        fetch("movielens-1m", tmp_path)
    assert names(tmp_path) == []


def test_a_server_that_refuses(movielens, tmp_path):
    movielens.status = 404
    with pytest.raises(DataError, match=r"the server says 404 Not Found; or download it by hand"):
        fetch("movielens-1m", tmp_path / "data")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no device that is always full")
def test_a_full_disk_is_told_apart_from_the_network(movielens, tmp_path):
    (tmp_path / "ml-1m.zip.part").symlink_to("/dev/full")
    message = r"cannot write .*ml-1m\.zip\.part: No space left on device; free space or choose another folder"
    with pytest.raises(StorageError, match=message):
        fetch("movielens-1m", tmp_path)
    assert not (tmp_path / "ml-1m.zip").exists()


def test_a_file_on_disk_is_verified_and_taken(movielens, archive, tmp_path):
    mine = tmp_path / "downloaded by hand.zip"
    mine.write_bytes(archive)
    path = fetch("movielens-1m", tmp_path / "data", file=mine)
    assert path.read_bytes() == archive
    assert movielens.requests == []
    assert mine.read_bytes() == archive


def test_a_file_on_another_disk_is_copied(movielens, archive, tmp_path, monkeypatch):
    mine = tmp_path / "mine.zip"
    mine.write_bytes(archive)

    def other_disk(*_args, **_options):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", other_disk)
    path = fetch("movielens-1m", tmp_path / "data", file=mine)
    assert path.read_bytes() == archive
    assert path.stat().st_ino != mine.stat().st_ino


def test_a_wrong_file_is_refused(movielens, tmp_path):
    mine = tmp_path / "mine.zip"
    mine.write_bytes(b"something else")
    with pytest.raises(DataError, match=r"mine\.zip: its md5 is .* it is damaged or another edition; download http"):
        fetch("movielens-1m", tmp_path / "data", file=mine)
    with pytest.raises(DataError, match=r"file='.*none': is no file; pass the path of ml-1m\.zip"):
        fetch("movielens-1m", tmp_path / "data", file=tmp_path / "none")
    assert names(tmp_path / "data") == []


BOOKS = "".join(f"A{user},00{item:03d},5.0,{1000 + item}\n" for user in range(3) for item in range(12)).encode()


def test_books_have_no_published_checksum_so_the_first_is_kept(tmp_path, monkeypatch):
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


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"cannot write to .*file.data: Not a directory; choose another folder"):
        fetch("movielens-1m", tmp_path / "file" / "data")


def test_an_unknown_name():
    known = "movielens-1m, movielens-20m, movielens-25m, amazon-books"
    with pytest.raises(DataError, match=f"name='movielens-20': must be one of {known}; did you mean 'movielens-20m'"):
        find_dataset("movielens-20")


@pytest.mark.parametrize("name", list(DATASETS))
def test_every_source_carries_its_protocol(name):
    source = DATASETS[name]
    assert source.url.startswith("https://")
    assert source.url.endswith(source.filename)
    assert source.reading["min_interactions"] == 10
    assert source.reading.get("min_rating") == (4 if name.startswith("movielens") else None)
    assert source.valid_users == source.test_users > 0
