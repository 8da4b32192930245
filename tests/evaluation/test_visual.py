"""The palette: complete, told apart also without colour vision, and readable on its background."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.typing import NDArray

from pathdex.evaluation.visual import (
    arm_colour,
    contrast,
    luminance,
    method_colour,
    on_dark,
    palette,
    palette_css,
    plain,
    readable,
    shades,
)
from pathdex.recommenders.registry import ESTIMATORS
from tests.snippets import ROOT

BLINDNESS = {
    "none": np.eye(3),
    "protanopia": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "deuteranopia": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
    "tritanopia": np.array([[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]]),
}
"""How linear RGB looks with each kind (Machado et al., 2009, severity 1)."""
LEAST_DIFFERENCE = 15
"""Distance of two colours in CIELAB; about 2 is just noticed."""


def linear(colour: str) -> NDArray[np.float64]:
    values = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(rgb: NDArray[np.float64]) -> NDArray[np.float64]:
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(np.clip(to_xyz @ rgb, 1e-4, None) / np.array([0.9505, 1.0, 1.089]))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("kind", BLINDNESS)
@pytest.mark.parametrize("group", ["methods", "arms", "series"])
def test_colours_are_told_apart(group: str, kind: str) -> None:
    colours = palette()[group]
    named = colours if isinstance(colours, dict) else {str(place): one for place, one in enumerate(colours)}
    seen = {name: lab(np.clip(BLINDNESS[kind] @ linear(one), 0, 1)) for name, one in named.items()}
    close = {
        (one, two): distance
        for one, two in itertools.combinations(seen, 2)
        if (distance := float(np.linalg.norm(seen[one] - seen[two]))) < LEAST_DIFFERENCE
    }
    assert close == {}


def test_lines_and_bars_are_seen_on_white() -> None:
    for group in ("methods", "arms"):
        assert min(contrast(one, "#FFFFFF") for one in palette()[group].values()) > 2.2


def test_a_colour_is_changed_until_text_in_it_is_read() -> None:
    assert readable("#0072B2") == "#0072B2"
    for ground in ("#FFFFFF", "#12161C"):
        for colour in palette()["series"]:
            assert contrast(readable(colour, ground), ground) >= 4.5


def test_a_dark_page_has_its_own_colours() -> None:
    surfaces = palette()["surfaces"]
    assert on_dark("#1b1f24") == surfaces["text"]["dark"]
    assert on_dark("#FFFFFF") == surfaces["background"]["dark"]
    assert [on_dark(one) for one in shades()] == shades(theme="dark")
    for colour in palette()["methods"].values():
        assert contrast(on_dark(colour), surfaces["background"]["dark"]) >= 4.5


def test_shades_in_between_keep_their_ends() -> None:
    many = shades(10)
    assert (many[0], many[-1]) == (shades()[1], shades()[-1])
    light = [luminance(one) for one in many]
    assert light == sorted(light, reverse=True)
    assert len(set(many)) == 10


def test_arms_of_deep_retrieval_have_shades_of_its_colour() -> None:
    assert arm_colour("streaming") == method_colour("deep-retrieval")
    assert arm_colour("ffm-hnsw") == method_colour("ffm-hnsw")
    assert arm_colour("one-pass") == method_colour("other")


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
    light = [luminance(one) for one in shades()]
    assert light == sorted(light, reverse=True)


def test_the_style_sheet_of_the_docs_is_the_palette() -> None:
    css = palette_css()
    assert (ROOT / "docs" / "assets" / "palette.css").read_text() == css
    assert len(set(re.findall(r"--([\w-]+):", css))) == len(re.findall(r"--([\w-]+):", css.split("@media")[0]))


def test_axes_are_plain() -> None:
    axes = Figure().subplots()
    plain(axes, "What is shown", grid="y")
    assert not axes.spines["top"].get_visible()
    assert axes.get_title(loc="left") == "What is shown"
