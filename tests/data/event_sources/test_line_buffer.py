"""Lines from chunks of any size."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from pathdex.data.event_sources.line_buffer import Line, LineBuffer
from pathdex.data.events import MAX_EVENT_BYTES


def split(chunks: list[bytes], start: int = 0) -> list[Line]:
    buffer, lines = LineBuffer(start), []
    for chunk in chunks:
        buffer.add(chunk)
        while (line := buffer.next_line()) is not None:
            lines.append(line)
    last = buffer.last_line()
    return lines if last is None else [*lines, last]


@given(st.lists(st.text("ab\n", max_size=9).map(str.encode), max_size=9), st.integers(0, 99))
def test_chunks_do_not_matter(chunks: list[bytes], start: int) -> None:
    text = b"".join(chunks)
    lines = split(chunks, start)
    assert [line.raw for line in lines] == [line.rstrip(b"\n") for line in text.splitlines(keepends=True)]
    for line in lines:
        assert text[line.start - start : line.end - start].rstrip(b"\n") == line.raw
        assert line.size == len(line.raw)
    assert all(a.end == b.start for a, b in itertools.pairwise(lines))


def test_only_the_beginning_of_a_long_line_is_kept() -> None:
    long = b"x" * (3 * MAX_EVENT_BYTES)
    chunks = [long[at : at + 100_000] for at in range(0, len(long), 100_000)]
    buffer = LineBuffer()
    for chunk in chunks:
        buffer.add(chunk)
        assert buffer.next_line() is None
        assert len(buffer._data) <= MAX_EVENT_BYTES + 200_000
    buffer.add(b"x\nshort\n")
    first, second = buffer.next_line(), buffer.next_line()
    assert first is not None
    assert (len(first.raw), first.size, first.start, first.end) == (4096, len(long) + 1, 0, len(long) + 2)
    assert second == Line(b"short", len(long) + 2, len(long) + 8, 5)
