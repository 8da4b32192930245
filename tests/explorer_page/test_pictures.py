"""The views look as they did: coarse comparisons with the screenshots in `pictures`.

After a wanted change of looks: make explorer-pictures, and look at the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from tests.explorer_page.pictures import KEPT, SIZES, VIEWS, blurred, screenshots
from tests.server.conftest import Running
from tests.snippets import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

MEAN, WORST = 6.0, 70.0
"""Differences of mean colours, of 255: fonts and the numbers of another processor stay below, a lost panel does not."""


def difference(one: Image.Image, other: Image.Image) -> tuple[float, float]:
    apart = np.abs(blurred(one) - blurred(other)).mean(axis=-1)
    return float(apart.mean()), float(apart.max())


@pytest.mark.slow
def test_every_view_looks_as_before(browser: Browser, server: Running) -> None:
    found = dict(screenshots(browser, server))
    assert sorted(found) == sorted(file.name for file in KEPT.glob("*.png"))
    apart = {name: difference(picture, Image.open(KEPT / name)) for name, picture in found.items()}
    assert {name: (mean, worst) for name, (mean, worst) in apart.items() if mean > MEAN or worst > WORST} == {}


def test_the_comparison_tells_views_and_themes_apart() -> None:
    """No two screenshots of a size pass for each other, so the tolerance is not too wide."""
    for size in SIZES:
        for scheme in ("light", "dark"):
            pictures = [Image.open(KEPT / f"{view}-{size}-{scheme}.png") for view in VIEWS]
            for place, one in enumerate(pictures):
                for other in pictures[place + 1 :]:
                    mean, worst = difference(one, other)
                    assert mean > MEAN / 2 or worst > WORST / 2
            dark = Image.open(KEPT / f"overview-{size}-dark.png")
            light = Image.open(KEPT / f"overview-{size}-light.png")
            assert difference(dark, light)[0] > MEAN


def test_pictures_are_small() -> None:
    assert all(file.stat().st_size < 40_000 for file in KEPT.glob("*.png"))
    shown = [ROOT / "docs" / "assets" / f"explorer-{view}.png" for view in ("overview", "query")]
    assert all(file.stat().st_size < 200_000 for file in shown)
