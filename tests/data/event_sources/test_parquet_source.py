"""Parquet files and folders."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pathdex.data.event_sources import open_source
from pathdex.data.events import Event
from pathdex.errors import DataError
from tests.data.event_sources.conftest import EVENTS, events_of, read_all, read_and_resume, read_until


def write(path: Path, events: list[Event], **options: Any) -> None:
    columns = {name: [getattr(event, name) for event in events] for name in Event._fields}
    pq.write_table(pa.table(columns), path, **options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "events"
    place.mkdir()
    write(place / "part-1.parquet", EVENTS[:25], row_group_size=10)
    write(place / "part-2.parquet", EVENTS[25:25])
    write(place / "part-3.pq", EVENTS[25:], row_group_size=7)
    (place / "_SUCCESS.parquet").touch()
    (place / "notes.txt").touch()
    return place


def test_files_are_read_in_the_order_of_their_names(folder: Path) -> None:
    source = open_source(folder)
    source.seek(None)
    assert source.lag() == 60
    batches = read_all(source, 16)
    assert events_of(batches) == EVENTS
    assert {batch.position["file"] for batch in batches} == {"part-1.parquet", "part-3.pq"}
    assert (source.lag(), source.read(5, 0)) == (0, None)
    source.acknowledge(batches[-1].position)
    source.close()
    single = open_source(folder / "part-1.parquet")
    assert events_of(read_all(single, 7)) == EVENTS[:25]
    single.close()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stops=st.lists(st.tuples(st.integers(1, 30), st.booleans()), max_size=8))
def test_kills_lose_and_repeat_nothing(folder: Path, stops: list[tuple[int, bool]]) -> None:
    assert read_and_resume(lambda: open_source(folder), stops, len(EVENTS)) == EVENTS


def test_new_files_are_followed_once_they_are_complete(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = open_source(folder, follow=True)
    source.seek(None)
    assert events_of(read_until(source, 60)) == EVENTS
    write(folder / "new", EVENTS[:5])
    content = (folder / "new").read_bytes()
    (folder / "part-4.parquet").write_bytes(content[:-20])
    (folder / "part-0.parquet").write_bytes(content)
    assert read_all(source) == []
    assert "part-0.parquet sorts before part-3.pq, which was read already: it is not read" in caplog.text
    (folder / "part-4.parquet").write_bytes(content)
    assert events_of(read_until(source, 5)) == EVENTS[:5]
    source.close()


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no Parquet files; check the path, or wait for files with follow"):
        open_source(tmp_path)
    source = open_source(tmp_path, follow=True)
    batch = source.read(5, 0)
    assert batch is not None
    source.seek(batch.position)
    write(tmp_path / "a.parquet", EVENTS[:5])
    assert events_of(read_until(source, 5)) == EVENTS[:5]
    source.close()


def test_a_file_that_was_replaced_or_removed(folder: Path) -> None:
    source = open_source(folder)
    batch = source.read(5, 0)
    assert batch is not None
    write(folder / "part-1.parquet", EVENTS[1:26], row_group_size=10)
    with pytest.raises(DataError, match=r"part-1.parquet is not the file that was read: its content has changed"):
        source.seek(batch.position)
    (folder / "part-1.parquet").unlink()
    with pytest.raises(DataError, match=r"no longer holds part-1.parquet, in which row 5 was the last one read"):
        source.seek(batch.position)
    source.close()


def test_types_and_malformed_rows(tmp_path: Path, letters: Path) -> None:
    moments = pa.array([datetime(1970, 1, 2), None, datetime(1970, 1, 1)], pa.timestamp("ns"))
    users = pa.array(["ada", "bob", None]).dictionary_encode()
    table = pa.table({"userId": users, "movieId": [1.0, 2.0, 3.0], "timestamp": moments, "extra": [[1], [2], [3]]})
    pq.write_table(table, tmp_path / "a.parquet")
    source = open_source(tmp_path / "a.parquet", dead_letters=letters)
    batch = source.read(5, 0)
    assert batch is not None
    assert (batch.events, batch.malformed) == ([Event("ada", 1, 86400.0), Event("bob", 2)], 1)
    source.close()
    assert json.loads(letters.read_text())["position"] == "a.parquet:2"


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    pq.write_table(pa.table({"who": [1]}), tmp_path / "a.parquet")
    source = open_source(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="no user column found in"):
        source.read(5, 0)
    source.close()
    (tmp_path / "b.parquet").write_bytes(b"PAR1 nonsense PAR1")
    source = open_source(tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"b.parquet cannot be read \("):
        source.read(5, 0)
    source.close()


def test_resuming_warns_only_of_files_that_are_not_read(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = open_source(folder)
    position = read_all(source)[-1].position
    for late in (False, True):
        if late:
            write(folder / "part-0.parquet", EVENTS[:5])
        source.seek(position)
        assert read_all(source) == []
        assert ("1 new file sorts before part-3.pq, which was read already: not read" in caplog.text) == late
        assert ("sorts before" in caplog.text) == late
    source.close()
