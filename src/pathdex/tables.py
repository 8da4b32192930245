"""Tables of text that render to a terminal (rich), Markdown and HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table as RichTable


@dataclass(frozen=True)
class TextTable:
    """Cells as text. `console.print(table)` shows it on a terminal; `markdown()` and `html()` return text."""

    title: str
    head: Sequence[str]
    """Column headings; empty for a list of names and values."""
    rows: Sequence[Sequence[str]]
    text_columns: int = 1
    """The first columns hold words and align left; the others hold numbers and align right."""
    bold: Sequence[int] = ()
    """Numbers of the rows to emphasise."""
    optional: int = 0
    """How many of the last columns a terminal may drop if they do not fit."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for dropped in range(self.optional):
            made = self._rich(len(self.head) - dropped)
            if _width(made, console, options) <= options.max_width:
                yield made
                return
        made = self._rich(len(self.head) - self.optional)
        if self.head and _width(made, console, options) > options.max_width:
            self._narrow(made, options.max_width - _width(made, console, options))
        yield made

    def markdown(self) -> str:
        """A Markdown table without its title. Signs that would end a cell are escaped."""
        rule = ["---" if self._is_text(column) else "---:" for column in range(len(self.head))]
        rows = [
            [f"**{cell}**" if number in self.bold and cell else cell for cell in row]
            for number, row in enumerate(self.rows)
        ]
        lines = [[cell.replace("|", r"\|") for cell in row] for row in (self.head, rule, *rows)]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def html(self) -> str:
        """An HTML table with its title as the caption."""
        rows = "".join(
            f"<tr{' class=strong' if number in self.bold else ''}>{self._html_cells('td', row)}</tr>"
            for number, row in enumerate(self.rows)
        )
        head = f"<thead><tr>{self._html_cells('th', self.head)}</tr></thead>"
        caption = f"<caption>{inline_html(self.title)}</caption>"
        return f'<div class="table"><table>{caption}{head}<tbody>{rows}</tbody></table></div>'

    def _is_text(self, column: int) -> bool:
        return column < self.text_columns

    def _html_cells(self, tag: str, row: Sequence[str]) -> str:
        kinds = [' class="word"' if self._is_text(column) else "" for column in range(len(row))]
        return "".join(f"<{tag}{kind}>{inline_html(cell)}</{tag}>" for kind, cell in zip(kinds, row, strict=True))

    def _narrow(self, made: RichTable, missing: int) -> None:
        """Fit columns into a width that is `-missing` too small: break headings and words' cells at spaces.

        Only if that is not enough, columns of words are broken within words.
        """
        cells = [[heading, *(row[column] for row in self.rows)] for column, heading in enumerate(self.head)]
        cells = cells[: len(made.columns)]
        widths = [max(map(cell_len, column)) for column in cells]
        least = []
        for number, column in enumerate(cells):
            breakable = column if self._is_text(number) else column[:1]
            whole = [] if self._is_text(number) else column[1:]
            least.append(max(map(cell_len, [*whole, *(word for text in breakable for word in text.split() or [""])])))
        for floors in (least, [1 if self._is_text(number) else low for number, low in enumerate(least)]):
            while missing < 0 and (open_ones := [one for one, width in enumerate(widths) if width > floors[one]]):
                widths[max(open_ones, key=lambda one: widths[one])] -= 1
                missing += 1
        for made_column, width in zip(made.columns, widths, strict=True):
            made_column.width = width

    def _rich(self, columns: int) -> RichTable:
        made = RichTable(title=self.title or None, title_justify="left", title_style="bold")
        if self.head:
            made.box, made.padding = box.SIMPLE_HEAD, (0, 1, 0, 0)
            for column, heading in enumerate(self.head[:columns]):
                made.add_column(heading, justify="left" if self._is_text(column) else "right", overflow="fold")
        else:
            made.box, made.show_header, made.pad_edge = None, False, False
            made.add_column(style="dim", no_wrap=True)
            made.add_column(overflow="fold")
        for number, row in enumerate(self.rows):
            made.add_row(*(row[:columns] if self.head else row), style="bold" if number in self.bold else None)
        return made


def pairs(title: str, values: dict[str, str]) -> TextTable:
    """A table of names and values without headings."""
    return TextTable(title, (), list(values.items()), text_columns=2)


def _width(made: RichTable, console: Console, options: ConsoleOptions) -> int:
    return Measurement.get(console, options.update(width=1000), made).maximum


def inline_html(text: str) -> str:
    """Text as HTML; `code` and **bold** are marked as in Markdown."""
    escaped = html.escape(text)
    escaped = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escaped)
    return re.sub(r"`(.+?)`", r"<code>\1</code>", escaped)
