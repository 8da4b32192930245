"""The same table on a terminal, in Markdown and in HTML."""

from __future__ import annotations

import io

from rich.console import Console

from pathdex.tables import TextTable, inline_html, pairs

SIZES = TextTable("Sizes of `x`", ["name", "size"], [["a|b", "1"], ["c", "2"]], bold=[1])


def shown(table: TextTable, width: int = 100) -> list[list[str]]:
    stream = io.StringIO()
    Console(width=width, file=stream).print(table)
    return [line.split() for line in stream.getvalue().splitlines() if line.strip()]


def test_on_a_terminal() -> None:
    lines = shown(SIZES)
    assert lines[:2] == [["Sizes", "of", "`x`"], ["name", "size"]]
    assert lines[3:] == [["a|b", "1"], ["c", "2"]]


def test_in_markdown() -> None:
    assert SIZES.markdown() == "| name | size |\n| --- | ---: |\n| a\\|b | 1 |\n| **c** | **2** |"


def test_in_html() -> None:
    assert SIZES.html() == (
        '<div class="table"><table><caption>Sizes of <code>x</code></caption>'
        '<thead><tr><th class="word">name</th><th>size</th></tr></thead>'
        '<tbody><tr><td class="word">a|b</td><td>1</td></tr>'
        '<tr class=strong><td class="word">c</td><td>2</td></tr></tbody></table></div>'
    )


def test_a_narrow_terminal_drops_optional_columns_from_the_right() -> None:
    wide = TextTable("T", ["name", "first", "second", "third"], [["x", "1", "2", "3"]], optional=2)
    assert shown(wide)[1] == ["name", "first", "second", "third"]
    assert shown(wide, 23)[1] == ["name", "first", "second"]
    assert shown(wide, 16)[1] == ["name", "first"]
    assert shown(wide, 12)[-1] == ["x", "1"]


def test_a_narrow_terminal_breaks_headings_and_words_at_spaces() -> None:
    table = TextTable("T", ["options", "final ratio"], [["candidates 100", "99.5 ± 1.2"]])
    assert shown(table, 25)[1:3] == [["final"], ["options", "ratio"]]
    assert shown(table, 25)[4:] == [["candidates", "99.5", "±", "1.2"], ["100"]]
    # Numbers stay whole; words give way to them.
    assert shown(table, 18)[-5] == ["can", "99.5", "±", "1.2"]


def test_names_and_values_have_no_heading() -> None:
    assert shown(pairs("Facts", {"users": "3", "items": "4"})) == [["Facts"], ["users", "3"], ["items", "4"]]


def test_markup_becomes_html_and_other_signs_are_escaped() -> None:
    assert inline_html("**a** < `b`") == "<strong>a</strong> &lt; <code>b</code>"
