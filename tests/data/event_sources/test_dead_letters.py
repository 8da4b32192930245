"""Dead letters: bounded, written once, and never in the way."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from pathdex.data.event_sources import dead_letters as module
from pathdex.data.event_sources.dead_letters import RAW_LIMIT, REMEMBERED, DeadLetter, DeadLetters
from pathdex.errors import StorageError


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_letter_has_position_reason_raw_and_time(letters: Path) -> None:
    dead = DeadLetters(letters)
    dead.write([DeadLetter("f:0", "because", b"\xff" + b"x" * 9000), DeadLetter("f:1", "why", {"user": b"\xfe"})])
    dead.close()
    first, second = lines(letters)
    assert (first["position"], first["reason"], len(first["raw"])) == ("f:0", "because", RAW_LIMIT)
    assert first["raw"].startswith("\\xffx")
    assert second["raw"] == '{"user": "\\\\xfe"}'
    assert first["seen"].endswith("Z")
    assert dead.written == 2


def test_letters_of_a_repeated_read_are_written_once(letters: Path) -> None:
    for _ in range(2):
        dead = DeadLetters(letters)
        dead.write(DeadLetter(f"f:{number}", "why", "raw") for number in range(5))
        dead.close()
    dead = DeadLetters(letters)
    dead.write([DeadLetter("f:0", "why", "other content"), DeadLetter("f:9", "why", "\ud800")])
    dead.close()
    assert [one["position"] for one in lines(letters)] == ["f:0", "f:1", "f:2", "f:3", "f:4", "f:0", "f:9"]


def test_what_a_crash_left_of_a_line_is_removed(letters: Path) -> None:
    letters.write_text('{"position": "f:0", "reason": "why", "raw": "x"}\nold\n{"posit')
    dead = DeadLetters(letters)
    dead.write([DeadLetter("f:0", "why", "x"), DeadLetter("f:1", "why", "x")])
    dead.close()
    assert [line[:12] for line in letters.read_text().splitlines()] == ['{"position":', "old", '{"position":']


def test_size_and_memory_are_bounded(letters: Path) -> None:
    dead = DeadLetters(letters, max_bytes=100_000)
    for start in range(0, REMEMBERED + 3000, 500):
        dead.write(DeadLetter(f"f:{number}", "why", "raw") for number in range(start, start + 500))
    dead.close()
    assert letters.stat().st_size <= 100_000
    assert sorted(path.name for path in letters.parent.iterdir()) == ["dead.jsonl", "dead.jsonl.1"]
    assert dead.written == REMEMBERED + 3000
    assert len(dead._keys) == REMEMBERED


def test_a_full_disk_is_a_warning(
    letters: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    dead = DeadLetters(letters)
    write = os.write

    def full(handle: int, data: Any) -> int:
        write(handle, bytes(data)[:5])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    dead.write([DeadLetter("f:0", "why", "x")])
    dead.write([DeadLetter("f:1", "why", "x")])
    monkeypatch.undo()
    dead.write([DeadLetter("f:2", "why", "x")])
    dead.close()
    assert (dead.written, dead.dropped) == (1, 2)
    assert [one["position"] for one in lines(letters)] == ["f:2"]
    assert caplog.text.count("No space left on device; they are counted only") == 1


def test_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot write dead letters to .*: Is a directory; choose another path"):
        DeadLetters(tmp_path)


@pytest.mark.parametrize(("owner", "name"), [(os, "open"), (module, "sync")])
def test_a_rotation_that_fails_half_way_is_finished_by_the_next_letter(
    letters: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    dead = DeadLetters(letters, max_bytes=100)
    dead.write([DeadLetter("f:0", "because", "x" * 90)])

    def fail(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fail)
        dead.write([DeadLetter("f:1", "because", "y")])
    assert dead.dropped == 1
    dead.write([DeadLetter("f:2", "because", "z")])
    dead.close()
    assert [one["raw"] for one in lines(letters)] == ["z"]
    assert lines(letters.with_name(f"{letters.name}.1"))[0]["position"] == "f:0"


def test_a_file_that_cannot_be_read_is_a_clear_error(letters: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "pread", fail)
    with pytest.raises(StorageError, match=r"cannot write dead letters to .*: Input/output error; choose another path"):
        DeadLetters(letters)
