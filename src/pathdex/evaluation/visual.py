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
TEXT_CONTRAST, SHAPE_CONTRAST = 4.5, 3.0
"""Least contrast of text and of lines and bars to their ground, as in WCAG 2.2 AA."""


@cache
def palette() -> Mapping[str, Any]:
    """The colours by use: `methods`, `arms`, `roles`, `surfaces`, `sequential`, `series`."""
    found: dict[str, Any] = json.loads(files("pathdex.evaluation").joinpath("palette.json").read_text("utf-8"))
    return found


def method_colour(name: str) -> str:
    """The colour of a method; variants of a method, such as `deep-retrieval (no neighbours)`, share it."""
    methods: dict[str, str] = palette()["methods"]
    known = [one for one in methods if name == one or name.startswith((f"{one} ", f"{one}-", f"{one},"))]
    return methods[max(known, key=len) if known else "other"]


def arm_colour(name: str) -> str:
    """The colour of an arm of a live experiment; the arms with Deep Retrieval are shades of its colour."""
    arms: dict[str, str] = palette()["arms"]
    return arms[name] if name in arms else method_colour(name)


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


def readable(colour: str, ground: str = "#FFFFFF", least: float = TEXT_CONTRAST) -> str:
    """The colour, darker or lighter until its contrast to the ground is at least `least`."""
    toward = 0.0 if luminance(ground) > 0.18 else 1.0
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    for step in range(101):
        mixed = [one + (toward - one) * step / 100 for one in channels]
        found = "#" + "".join(f"{round(255 * one):02X}" for one in mixed)
        if contrast(found, ground) >= least:
            break
    return found


def luminance(colour: str) -> float:
    """Relative luminance of a colour, as in WCAG 2."""
    values = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in values]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """The contrast ratio of two colours, from 1 to 21, as in WCAG 2."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def on_dark(colour: str) -> str:
    """What a colour of a chart becomes on a dark page: its own dark value, or lighter until it is seen."""
    found = palette()
    known = dict(zip(found["sequential"]["light"], found["sequential"]["dark"], strict=True))
    known |= {one["light"]: one["dark"] for one in found["surfaces"].values()}
    return known.get(colour.upper()) or readable(colour, found["surfaces"]["background"]["dark"], SHAPE_CONTRAST)


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
