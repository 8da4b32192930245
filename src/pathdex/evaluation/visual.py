"""The visual language of all charts: one palette, one colour per method everywhere, plain axes, direct labels.

The palette is `palette.json` beside this file, which the explorer's page reads too. Its series are told apart with the
common kinds of colour blindness, and charts add markers, dashes or labels, so that a print in grey can be read as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

INK, MUTED, LINE, PANEL = "#1B1F24", "#57606A", "#D0D7DE", "#F5F7FA"
"""Text, secondary text, rules and quiet areas."""


@cache
def palette() -> Mapping[str, Any]:
    """The colours by use: `methods`, `roles`, `surfaces`, `sequential`, `series`."""
    found: dict[str, Any] = json.loads(files("pathdex.evaluation").joinpath("palette.json").read_text("utf-8"))
    return found


def method_colour(name: str) -> str:
    """The colour of a method; variants of a method, such as `deep-retrieval (no neighbours)`, share it."""
    methods: dict[str, str] = palette()["methods"]
    known = [one for one in methods if name == one or name.startswith((f"{one} ", f"{one}-", f"{one},"))]
    return methods[max(known, key=len) if known else "other"]


def series_colour(number: int) -> str:
    """The colour of a series without a meaning of its own."""
    series: list[str] = palette()["series"]
    return series[number % len(series)]


def shades() -> list[str]:
    """From little to much."""
    found: list[str] = palette()["sequential"]["light"]
    return found


def plain(axes: Any, title: str = "", *, grid: str = "") -> None:
    """Axes without a frame; the title says what is shown; `grid` is `x`, `y` or empty."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(LINE)
    axes.tick_params(colors=MUTED, labelsize=8.5, length=0)
    if title:
        axes.set_title(title, loc="left", fontsize=10.5, color=INK, pad=10, wrap=True)
    if grid:
        axes.grid(axis=grid, color=LINE, linewidth=0.6)
        axes.set_axisbelow(True)


def label_end(axes: Any, x: float, y: float, text: str, colour: str) -> None:
    """Name a line where it ends, in place of a legend."""
    axes.annotate(
        text, (x, y), (6, 0), textcoords="offset points", va="center", fontsize=8.5, color=colour, annotation_clip=False
    )


def palette_css() -> str:
    """The palette as CSS variables, for light and dark."""
    found = palette()
    fixed = [f"  --method-{name}: {colour};" for name, colour in found["methods"].items()]
    parts: dict[str, list[str]] = {"light": [], "dark": []}
    for theme, lines in parts.items():
        for group in ("roles", "surfaces"):
            lines += [f"  --{name}: {colours[theme]};" for name, colours in found[group].items()]
        lines += [f"  --shade-{number}: {colour};" for number, colour in enumerate(found["sequential"][theme])]
    light, dark = ("\n".join(lines) for lines in parts.values())
    dark = "\n".join(f"  {line}" for line in dark.splitlines())
    methods = "\n".join(fixed)
    media = f"@media (prefers-color-scheme: dark) {{\n  :root {{\n{dark}\n  }}\n}}"
    return f":root {{\n{methods}\n{light}\n}}\n\n{media}\n"
