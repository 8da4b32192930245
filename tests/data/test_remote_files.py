"""URLs, against a server on this machine and fsspec's file system in memory."""

import errno
import functools
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pathdex.data import read
from pathdex.data.remote_files import RemoteCopy, is_url
from pathdex.errors import DataError, MissingExtraError
from tests.data.test_formats import EXPECTED, FRAME, histories


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path):
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=tmp_path)) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_files_of_a_server(server, tmp_path, name):
    FRAME.write_csv(tmp_path / name) if name.endswith("csv") else FRAME.write_parquet(tmp_path / name)
    assert histories(read(f"{server}/{name}")) == EXPECTED
    assert histories(read([f"{server}/{name}"])) == EXPECTED


def test_what_a_server_does_not_have(server):
    with pytest.raises(DataError, match=r"no\.csv': the server answers 404 \(.*\); check the address in a browser"):
        read(f"{server}/no.csv")
    with pytest.raises(DataError, match="names no file; pass the URL of a file"):
        read(f"{server}/")


def test_no_server(server):
    with pytest.raises(DataError, match=r"cannot be reached \(.*\); check the address and the network"):
        read("http://127.0.0.1:9/rows.csv")


def test_a_file_that_ends_too_early_is_not_read(server, monkeypatch):
    def promise_more(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "100")
        handler.end_headers()
        handler.wfile.write(b"user,item\n1,2\n")

    monkeypatch.setattr(Quiet, "do_GET", promise_more)
    with pytest.raises(DataError, match=r"rows\.csv': ends 86 bytes too early; check the network, and try again"):
        read(f"{server}/rows.csv")


def test_a_copy_that_does_not_fit(server, tmp_path, monkeypatch):
    FRAME.write_csv(tmp_path / "rows.csv")

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", fail)
    with pytest.raises(DataError, match=r"cannot be copied .*No space left.*free space of the temporary folder"):
        RemoteCopy(f"{server}/rows.csv")


def test_the_copy_is_removed(server, tmp_path):
    FRAME.write_csv(tmp_path / "rows.csv")
    copy = RemoteCopy(f"{server}/rows.csv")
    place = copy.path
    assert place.exists()
    copy.close()
    assert not place.exists()


def test_other_protocols_through_fsspec():
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://bucket/rows.csv", "wb") as file:
        file.write(FRAME.write_csv().encode())
    assert histories(read("memory://bucket/rows.csv")) == EXPECTED
    with pytest.raises(DataError, match="does not exist; check the address"):
        read("memory://bucket/no.csv")
    with pytest.raises(DataError, match=r"cannot be opened .*; known are http, https, s3, gs, hf"):
        read("gopher://bucket/no.csv")


def test_a_missing_package_is_named(monkeypatch):
    fsspec = pytest.importorskip("fsspec")

    def missing(*_, **__):
        raise ImportError("s3fs")

    monkeypatch.setattr(fsspec, "open", missing)
    with pytest.raises(MissingExtraError, match=r"reading s3:// URLs needs s3fs; .*pathdex\[s3\]"):
        read("s3://bucket/rows.csv")


def test_paths_are_no_urls():
    assert is_url("s3://bucket/a.csv")
    assert not is_url("C:/a.csv")
    assert not is_url(Path("https://a"))
