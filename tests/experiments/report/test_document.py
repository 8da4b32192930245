"""The same document in HTML and Markdown."""

from __future__ import annotations

from pathdex.evaluation.visual import on_dark, palette
from pathdex.experiments.report.document import Document, Figure, Points, Section, Text, to_html, to_markdown
from pathdex.tables import TextTable

DRAWING = '<?xml version="1.0"?><svg width="1"><g id="a"/><use href="#a"/><path clip-path="url(#a)"/></svg>'
DOCUMENT = Document(
    "A <b> & c",
    "with `code`",
    [
        Section(
            "Part one, and more",
            [
                Text("**Bold** and 1 < 2."),
                Points(["first", "second `x`"]),
                TextTable("Sizes", ["name", "size"], [["a|b", "1"], ["c", "2"]], bold=[1]),
                Figure("plot", DRAWING, 'It says "so"'),
            ],
        )
    ],
)


def test_markdown() -> None:
    assert to_markdown(DOCUMENT, "figures") == (
        "# A <b> & c\n\nwith `code`\n\n## Part one, and more\n\n**Bold** and 1 < 2.\n\n- first\n- second `x`\n\n"
        "*Sizes*\n\n| name | size |\n| --- | ---: |\n| a\\|b | 1 |\n| **c** | **2** |\n\n"
        '![It says "so"](figures/plot.svg)\n\n*It says "so"*\n'
    )


def test_html_is_escaped_and_linked() -> None:
    page = to_html(DOCUMENT)
    assert "<title>A &lt;b&gt; &amp; c</title>" in page
    assert '<a href="#part-one-and-more">Part one, and more</a>' in page
    assert '<section id="part-one-and-more">' in page
    assert "<p><strong>Bold</strong> and 1 &lt; 2.</p>" in page
    assert "<li>second <code>x</code></li>" in page
    assert '<tr class=strong><td class="word">c</td><td>2</td></tr>' in page


def test_inline_drawings_have_unique_ids() -> None:
    """Equal ids would make two drawings share elements."""
    page = to_html(DOCUMENT)
    assert '<g id="plot-a"/><use href="#plot-a"/><path clip-path="url(#plot-a)"/>' in page
    assert 'role="img" aria-label="It says &quot;so&quot;"' in page
    assert "<?xml" not in page


def test_drawings_take_the_colours_of_the_theme() -> None:
    svg = '<svg><path style="fill: #1b1f24; stroke: #0072b2"/><rect fill="#ffffff"/></svg>'
    page = to_html(Document("T", "S", [Section("One", [Figure("plot", svg, "Words.")])]))
    assert '<path style="fill: var(--c1b1f24); stroke: var(--c0072b2)"/><rect style="fill: var(--cffffff)"/>' in page
    light, dark = page.split("<style>")[1].split("@media screen and (prefers-color-scheme: dark)")
    assert "--c1b1f24: #1B1F24;" in light
    assert f"--c1b1f24: {palette()['surfaces']['text']['dark']};" in dark
    assert f"--c0072b2: {on_dark('#0072B2')};" in dark


def test_a_drawing_scrolls_on_a_narrow_page() -> None:
    page = to_html(DOCUMENT)
    assert '<div class="drawing" tabindex="0"><svg' in page
    assert ".drawing { overflow-x: auto; }" in page
