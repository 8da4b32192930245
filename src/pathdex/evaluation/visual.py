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

import numpy as np

INK, MUTED, LINE, PANEL = "#1B1F24", "#57606A", "#D0D7DE", "#F5F7FA"
"""Text, secondary text, rules and quiet areas."""
TEXT_CONTRAST = 4.5
"""Least contrast of text to its ground, as in WCAG 2.2 AA."""


DECILES = 10
"""Shades of a chart of popularity deciles."""


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


def shades(count: int | None = None, theme: str = "light") -> list[str]:
    """Colours from little to much; with `count`, so many in between, without the palest."""
    found: list[str] = palette()["sequential"][theme]
    if count is None:
        return found
    channels = np.array([[int(one[place : place + 2], 16) for place in (1, 3, 5)] for one in found[1:]])
    places = np.linspace(0, len(channels) - 1, count)
    mixed = np.column_stack([np.interp(places, range(len(channels)), column) for column in channels.T])
    return ["#" + "".join(f"{round(one):02X}" for one in row) for row in mixed]


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
    """What a colour of a chart becomes on a dark page: its own dark value, or lighter until text in it is read."""
    found = palette()
    known = dict(zip(shades(), shades(theme="dark"), strict=True))
    known |= dict(zip(shades(DECILES), shades(DECILES, "dark"), strict=True))
    known |= {one["light"]: one["dark"] for one in found["surfaces"].values()}
    return known.get(colour.upper()) or readable(colour, found["surfaces"]["background"]["dark"])


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
