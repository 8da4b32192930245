"""Downloads: complete, resumed after an interruption, and never mixed from two versions of a file."""

import hashlib
import json
import os

import pytest

from pathdex.data.download import download
from pathdex.errors import DataError, StorageError
from tests.data.file_server import serving

CONTENT = bytes(range(256)) * 8


@pytest.fixture
def server():
    with serving(CONTENT) as running:
        yield running


@pytest.fixture
def part(tmp_path):
    return tmp_path / "file.part"


def write_state(part, content, version):
    part.write_bytes(content)
    state = {"version": f'"{hashlib.md5(version).hexdigest()}"', "bytes": len(version)}
    part.with_name("file.part.json").write_text(json.dumps(state))


def interrupt(server, part):
    server.break_after = 100
    with pytest.raises(DataError, match=r"the connection broke; 400 bytes are kept; repeat the call to resume$"):
        download(server.url, part)
    server.break_after = None


def test_a_download_is_complete(server, part):
    seen = []
    download(server.url, part, progress=lambda done, total: seen.append((done, total)))
    assert part.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [file.name for file in part.parent.iterdir()] == ["file.part"]


def test_a_broken_connection_is_resumed(server, part):
    server.break_after = len(CONTENT) // 2
    download(server.url, part)
    assert part.read_bytes() == CONTENT
    assert server.requests[:2] == [None, f"bytes={len(CONTENT) // 2}-"]


def test_the_next_call_resumes_an_interrupted_download(server, part):
    interrupt(server, part)
    assert sorted(file.name for file in part.parent.iterdir()) == ["file.part", "file.part.json"]
    download(server.url, part)
    assert part.read_bytes() == CONTENT
    assert server.requests[-1] == "bytes=400-"


def test_a_file_that_changed_on_the_server_is_downloaded_from_the_start(server, part):
    interrupt(server, part)
    server.content = CONTENT + b"new edition"
    download(server.url, part)
    assert part.read_bytes() == server.content


def test_without_range_requests_the_download_starts_over(server, part):
    interrupt(server, part)
    server.ranges = False
    download(server.url, part)
    assert part.read_bytes() == CONTENT


def test_a_server_that_states_no_length(server, part):
    server.length = False
    download(server.url, part)
    assert part.read_bytes() == CONTENT


def test_a_complete_part_is_not_downloaded_again(server, part):
    write_state(part, CONTENT, CONTENT)
    download(server.url, part)
    assert part.read_bytes() == CONTENT
    assert server.requests == [f"bytes={len(CONTENT)}-"]


def test_a_part_longer_than_the_file_is_discarded(server, part):
    write_state(part, CONTENT + b"more", CONTENT)
    download(server.url, part)
    assert part.read_bytes() == CONTENT


@pytest.mark.parametrize("state", [None, "not json", "[1]"])
def test_a_part_without_a_readable_state_file_is_discarded(server, part, state):
    part.write_bytes(b"something else")
    if state is not None:
        part.with_name("file.part.json").write_text(state)
    download(server.url, part)
    assert part.read_bytes() == CONTENT
    assert server.requests == [None]


def test_an_http_error_is_reported(server, part):
    server.status = 404
    with pytest.raises(DataError, match=r"cannot download http.*: the server answers 404 Not Found$"):
        download(server.url, part)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no device that is always full")
def test_a_full_disk_is_a_storage_error(server, part):
    part.symlink_to("/dev/full")
    message = r"cannot write .*file\.part: No space left on device; free space or choose another folder"
    with pytest.raises(StorageError, match=message):
        download(server.url, part)
