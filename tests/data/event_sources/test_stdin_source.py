"""Standard input."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from pathdex.data.event_sources.base import EventDecoder
from pathdex.data.event_sources.stdin_source import StdinSource
from pathdex.data.events import Event
from pathdex.errors import DataError


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    os.close(ends[0])


def test_lines_are_counted(pipe: tuple[int, int]) -> None:
    out, into = pipe
    source = StdinSource(EventDecoder(), out)
    source.seek(None)
    empty = source.read(5, 0)
    assert empty is not None
    assert (empty.events, empty.position) == ([], {"source": "stdin", "count": 0})
    os.write(into, b'{"user": 1, "item": 2}\n{"user": 1, "item": 3}\n\n{"us')
    first = source.read(2, 5)
    assert first is not None
    assert (first.events, first.position["count"]) == ([Event(1, 2), Event(1, 3)], 2)
    os.write(into, b'er": 1, "item": 4}\nnonsense')
    os.close(into)
    rest = [source.read(5, 5) for _ in range(4)]
    assert [
        batch and (batch.events, batch.malformed) for batch in rest if batch is None or batch.events or batch.malformed
    ] == [
        ([Event(1, 4)], 0),
        ([], 1),
        None,
    ]
    assert source.lag() is None
    source.acknowledge(first.position)
    source.close()


def test_a_pipe_cannot_be_replayed(pipe: tuple[int, int]) -> None:
    os.close(pipe[1])
    source = StdinSource(EventDecoder(), pipe[0])
    with pytest.raises(DataError, match=r"stdin cannot be replayed: 1,200 lines of it have been read before"):
        source.seek({"source": "stdin", "count": 1200})


def test_standard_input_of_a_process() -> None:
    code = (
        "from pathdex.data.event_sources import open_source; s = open_source('-'); print(s.read(9, 5).events[0].item)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input='{"user": 1, "item": "x"}\n', capture_output=True, text=True
    )
    assert done.stdout == "x\n", done.stderr
