"""A report as parts that render to HTML and Markdown: paragraphs, lists, tables, figures."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pathdex.tables import TextTable, inline_html


@dataclass(frozen=True)
class Text:
    """A paragraph. `code` and **bold** are marked as in Markdown."""

    words: str


@dataclass(frozen=True)
class Points:
    """A bulleted list, marked up as `Text`."""

    items: Sequence[str]


@dataclass(frozen=True)
class Figure:
    """An SVG drawing: inline in HTML, a separate file beside the Markdown."""

    name: str
    svg: str
    caption: str


Part: TypeAlias = Text | Points | TextTable | Figure


@dataclass(frozen=True)
class Section:
    title: str
    parts: Sequence[Part] = field(default_factory=tuple)

    @property
    def anchor(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


@dataclass(frozen=True)
class Document:
    title: str
    subtitle: str
    sections: Sequence[Section]


def to_markdown(document: Document, figures: str) -> str:
    """The document in Markdown; `figures` is the folder of its drawings, relative to the page."""
    parts = [f"# {document.title}", document.subtitle]
    for section in document.sections:
        parts.append(f"## {section.title}")
        parts += [_markdown(part, figures) for part in section.parts]
    return "\n\n".join(parts) + "\n"


def to_html(document: Document) -> str:
    """The document as one self-contained HTML page, with style and drawings inline."""
    contents = "".join(f'<li><a href="#{one.anchor}">{html.escape(one.title)}</a></li>' for one in document.sections)
    body = [f"<h1>{html.escape(document.title)}</h1>", f'<p class="subtitle">{inline_html(document.subtitle)}</p>']
    body.append(f"<nav><ol>{contents}</ol></nav>")
    for section in document.sections:
        body.append(f'<section id="{section.anchor}"><h2>{html.escape(section.title)}</h2>')
        body += [_html(part) for part in section.parts]
        body.append("</section>")
    title = html.escape(document.title)
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>'
    return f'<!doctype html>\n<html lang="en"><head>{head}<style>{_STYLE}</style></head>\n<body>\n' + (
        "\n".join(body) + "\n</body></html>\n"
    )


def _markdown(part: Part, figures: str) -> str:
    if isinstance(part, Text):
        return part.words
    if isinstance(part, Points):
        return "\n".join(f"- {item}" for item in part.items)
    if isinstance(part, Figure):
        return f"![{part.caption}]({figures}/{part.name}.svg)\n\n*{part.caption}*"
    return f"*{part.title}*\n\n{part.markdown()}"


def _html(part: Part) -> str:
    if isinstance(part, Text):
        return f"<p>{inline_html(part.words)}</p>"
    if isinstance(part, Points):
        return "<ul>" + "".join(f"<li>{inline_html(item)}</li>" for item in part.items) + "</ul>"
    if isinstance(part, Figure):
        return f"<figure>{_embedded(part)}<figcaption>{inline_html(part.caption)}</figcaption></figure>"
    return part.html()


def _embedded(figure: Figure) -> str:
    """The drawing inline: without the XML head, with unique ids and with a text alternative."""
    svg = figure.svg[figure.svg.index("<svg") :]
    svg = re.sub(r'\b(id="|href="#|url\(#)', lambda found: f"{found[1]}{figure.name}-", svg)
    return svg.replace("<svg", f'<svg role="img" aria-label="{html.escape(figure.caption, quote=True)}"', 1)


_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; }
h2 { font-size: 1.3rem; margin-top: 2.5rem; border-bottom: 1px solid #999; }
.subtitle { color: #444; } nav ol { columns: 2; font-size: .95rem; } a { color: #0b4f8a; }
.table { overflow-x: auto; margin: 1rem 0; } table { border-collapse: collapse; font-size: .88rem; }
caption { text-align: left; font-weight: 600; padding-bottom: .3rem; }
th, td { padding: .2rem .6rem; text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
th { border-bottom: 1.5px solid #1a1a1a; vertical-align: bottom; white-space: normal; }
tbody tr { border-bottom: 1px solid #ddd; }
th.word, td.word { text-align: left; } td.word + td.word { white-space: normal; } tr.strong td { font-weight: 700; }
code { font: .9em ui-monospace, monospace; background: #f3f3f3; padding: 0 .2em; overflow-wrap: anywhere; }
figure { margin: 1.2rem 0; } figure svg { max-width: 100%; height: auto; } figcaption { font-size: .9rem; color: #333; }
@media print {
  body { font-size: 10pt; max-width: none; margin: 0; } nav { display: none; } a { color: inherit; }
  .table { overflow: visible; } table { font-size: 7.5pt; } td.word + td.word { overflow-wrap: anywhere; }
  th, td { padding: .1rem .3rem; }
  figure, tr { break-inside: avoid; } h2 { break-after: avoid; }
  code { background: none; }
}
"""
