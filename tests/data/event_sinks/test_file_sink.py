"""Files: several writers, full disks, crashes in the middle of a line, rotation."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from pathdex.data.event_sinks.file_sink import FileSink
from pathdex.data.event_sources import open_source
from pathdex.data.events import Event
from pathdex.errors import StorageError
from tests.data.event_sources.conftest import read_all, read_until


def test_lines_are_json(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "events.jsonl")
    sink.append([Event("ada", 7)])
    sink.append([Event(1, "x", 2.5, 0.5), Event(1, "y")])
    sink.close()
    assert sink.path.read_text().splitlines() == [
        '{"user": "ada", "item": 7}',
        '{"user": 1, "item": "x", "time": 2.5, "weight": 0.5}',
        '{"user": 1, "item": "y"}',
    ]


def test_every_append_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_size))
    sink = FileSink(tmp_path / "events.jsonl")
    sink.append([Event(1, 2)])
    sink.append([Event(1, 3)])
    sink.close()
    assert synced[-2:] == [len('{"user": 1, "item": 2}\n'), sink.path.stat().st_size]


def test_writers_share_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where the system writes only a part of what it is given."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, bytes(data[:7])))

    def work(number: int) -> None:
        sink = FileSink(tmp_path / "events.jsonl")
        for place in range(20):
            sink.append([Event(number, 2 * place), Event(number, 2 * place + 1)])
        sink.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    source = open_source(tmp_path / "events.jsonl")
    batches = read_all(source, 1000)
    source.close()
    events: list[Any] = [event for batch in batches for event in batch.events]
    assert not any(batch.malformed for batch in batches)
    for number in range(4):
        assert [event.item for event in events if event.user == number] == list(range(40))


def test_a_part_of_a_line_does_not_spoil_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink, write = FileSink(tmp_path / "events.jsonl"), os.write
    sink.append([Event(1, 1)])

    def full(handle: int, data: Any) -> int:
        if len(data) < 10:
            raise OSError(28, "No space left on device")
        return write(handle, bytes(data[:-5]))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StorageError, match=r"cannot append to .*: No space left on device; check the folder and the"):
        sink.append([Event(1, 2)])
    monkeypatch.setattr(os, "write", write)
    sink.append([Event(1, 3)])
    sink.close()
    source = open_source(sink.path)
    [batch] = read_all(source, 1000)
    source.close()
    assert batch.events == [Event(1, 1), Event(1, 3)]
    assert batch.malformed == 1


def test_a_rotated_file_is_left(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "events.jsonl")
    sink.append([Event(1, 1)])
    source = open_source(sink.path, follow=True)
    sink.path.rename(tmp_path / "events.jsonl.1")
    sink.append([Event(1, 2)])
    sink.path.rename(tmp_path / "events.jsonl.2")
    sink.path.write_bytes(b"")  # Somebody else has begun the next one.
    sink.append([Event(1, 3)])
    sink.close()
    assert sink.path.read_text() == '{"user": 1, "item": 3}\n'
    events: list[Any] = [event for batch in read_until(source, 3) for event in batch.events]
    source.close()
    assert [event.item for event in events] == [1, 2, 3]


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot append to .*: No such file or directory; check the folder and"):
        FileSink(tmp_path / "no" / "events.jsonl").append([Event(1, 2)])
