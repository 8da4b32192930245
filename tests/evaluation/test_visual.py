"""The palette: complete, told apart also without colour vision, and readable on its background."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.typing import NDArray

from pathdex.evaluation.visual import label_end, method_colour, palette, palette_css, plain, series_colour, shades
from pathdex.recommenders.registry import ESTIMATORS
from tests.snippets import ROOT

BLINDNESS = {
    "none": np.eye(3),
    "protanopia": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "deuteranopia": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
}
"""How linear RGB looks with the two common kinds (Machado et al., 2009, severity 1)."""


def linear(colour: str) -> NDArray[np.float64]:
    values = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(rgb: NDArray[np.float64]) -> NDArray[np.float64]:
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(np.clip(to_xyz @ rgb, 1e-4, None) / np.array([0.9505, 1.0, 1.089]))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(first: str, second: str) -> float:
    light = sorted(float(linear(one) @ [0.2126, 0.7152, 0.0722]) for one in (first, second))
    return (light[1] + 0.05) / (light[0] + 0.05)


@pytest.mark.parametrize("kind", BLINDNESS)
def test_the_first_series_are_told_apart(kind: str) -> None:
    seen = [lab(np.clip(BLINDNESS[kind] @ linear(series_colour(number)), 0, 1)) for number in range(6)]
    assert min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(seen, 2)) > 10


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_and_roles_are_readable(theme: str) -> None:
    surfaces = {name: colours[theme] for name, colours in palette()["surfaces"].items()}
    for ground in ("background", "panel"):
        assert contrast(surfaces["text"], surfaces[ground]) >= 7
        assert contrast(surfaces["muted"], surfaces[ground]) >= 4.5
    for name, colours in palette()["roles"].items():
        least = 2.5 if name == "pruned" else 3
        assert contrast(colours[theme], surfaces["background"]) >= least, name


def test_every_method_has_its_own_colour() -> None:
    colours = [method_colour(name) for name in ESTIMATORS]
    assert len(set(colours)) == len(colours)
    assert method_colour("deep-retrieval (no neighbours)") == method_colour("deep-retrieval")
    assert method_colour("unheard-of") == palette()["methods"]["other"]


def test_shades_grow_darker() -> None:
    light = [float(linear(one) @ [0.2126, 0.7152, 0.0722]) for one in shades()]
    assert light == sorted(light, reverse=True)


def test_the_style_sheet_of_the_docs_is_the_palette() -> None:
    css = palette_css()
    assert (ROOT / "docs" / "assets" / "palette.css").read_text() == css
    assert len(set(re.findall(r"--([\w-]+):", css))) == len(re.findall(r"--([\w-]+):", css.split("@media")[0]))


def test_axes_are_plain_and_lines_have_their_name() -> None:
    axes = Figure().subplots()
    plain(axes, "What is shown", grid="y")
    label_end(axes, 1, 2, "a line", "#000000")
    assert not axes.spines["top"].get_visible()
    assert axes.get_title(loc="left") == "What is shown"
    assert [text.get_text() for text in axes.texts] == ["a line"]
