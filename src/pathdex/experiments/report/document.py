"""A report as parts that render to HTML and Markdown: paragraphs, lists, tables, figures."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pathdex.evaluation.visual import on_dark, palette
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
    text = "\n".join(body)
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>'
    style = f"<style>{_theme(text)}{_STYLE}</style>"
    return f'<!doctype html>\n<html lang="en"><head>{head}{style}</head>\n<body>\n{text}\n</body></html>\n'


def _theme(body: str) -> str:
    """The page's colours, and those of its drawings, for light and for dark; prints are light."""
    surfaces = palette()["surfaces"]
    light = {name: one["light"] for name, one in surfaces.items()} | {"link": "#0B4F8A"}
    dark = {name: one["dark"] for name, one in surfaces.items()} | {"link": "#7CC0F0"}
    for digits in sorted(set(re.findall(r"var\(--c([0-9a-f]{6})\)", body))):
        colour = f"#{digits.upper()}"
        light[f"c{digits}"], dark[f"c{digits}"] = colour, on_dark(colour)
    rules = ["".join(f"--{name}: {colour}; " for name, colour in theme.items()) for theme in (light, dark)]
    night = f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {rules[1]}}} }}"
    return f"\n:root {{ color-scheme: light dark; {rules[0]}}}\n{night}"


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
        # The drawing scrolls where the page is narrower than it can be read, so it takes the keyboard's focus.
        drawing = f'<div class="drawing" tabindex="0">{_embedded(part)}</div>'
        return f"<figure>{drawing}<figcaption>{inline_html(part.caption)}</figcaption></figure>"
    return part.html()


def _embedded(figure: Figure) -> str:
    """The drawing inline: without the XML head, with unique ids, colours by theme and a text alternative."""
    svg = figure.svg[figure.svg.index("<svg") :]
    svg = re.sub(r'\b(id="|href="#|url\(#)', lambda found: f"{found[1]}{figure.name}-", svg)
    svg = re.sub(r'fill="(#[0-9a-f]{6})"', r'style="fill: \1"', svg)
    svg = _COLOUR.sub(lambda found: f"{found[1]}var(--c{found[2].lower()})", svg)
    return svg.replace("<svg", f'<svg role="img" aria-label="{html.escape(figure.caption, quote=True)}"', 1)


_COLOUR = re.compile(r"((?:fill|stroke): )#([0-9a-f]{6})\b")
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--background); max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; }
h2 { font-size: 1.3rem; margin-top: 2.5rem; border-bottom: 1px solid var(--muted); }
.subtitle { color: var(--muted); } nav ol { columns: 18rem 2; font-size: .95rem; } a { color: var(--link); }
.table { overflow-x: auto; margin: 1rem 0; } table { border-collapse: collapse; font-size: .88rem; }
caption { text-align: left; font-weight: 600; padding-bottom: .3rem; }
th, td { padding: .2rem .6rem; text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
th { border-bottom: 1.5px solid var(--text); vertical-align: bottom; white-space: normal; }
tbody tr { border-bottom: 1px solid var(--line); }
th.word, td.word { text-align: left; } td.word + td.word { white-space: normal; } tr.strong td { font-weight: 700; }
code { font: .9em ui-monospace, monospace; background: var(--panel); padding: 0 .2em; overflow-wrap: anywhere; }
figure { margin: 1.2rem 0; } figcaption { font-size: .9rem; color: var(--muted); max-width: 44rem; }
.drawing { overflow-x: auto; } .drawing svg { display: block; width: 100%; min-width: 42rem; height: auto; }
@media print {
  body { font-size: 10pt; max-width: none; margin: 0; } nav { display: none; } a { color: inherit; }
  .drawing { overflow: visible; } .drawing svg { min-width: 0; }
  .table { overflow: visible; } table { font-size: 7.5pt; } td.word + td.word { overflow-wrap: anywhere; }
  th, td { padding: .1rem .3rem; }
  figure, tr { break-inside: avoid; } h2 { break-after: avoid; }
  code { background: none; }
}
"""
