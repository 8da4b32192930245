"""Screenshots of the views: small ones that the tests compare with, and the pictures of the docs.

python -m tests.explorer_page.pictures
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tests.explorer_page.browser import ROOT, SIZES, chromium
from tests.explorer_page.places import place
from tests.explorer_page.shop import train_shop, write_shop
from tests.server.conftest import Running, running

if TYPE_CHECKING:
    from playwright.sync_api import Browser

KEPT = Path(__file__).parent / "pictures"
ASSETS = ROOT / "docs" / "assets"
VIEWS = ("overview", "path", "item", "query", "replay", "compare")
COLOURS = 32
GRID = (32, 20)
"""Cells of the comparison: letters are lost in them, layout and colours are not."""


def capture(
    browser: Browser, address: str, *, size: tuple[int, int], scheme: str, scale: float = 1.0, full_page: bool = False
) -> Image.Image:
    """A picture of one address, without animations."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        device_scale_factor=scale,
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    try:
        page = context.new_page()
        page.goto(address)
        page.get_by_role("heading", level=1).wait_for()
        page.locator("[aria-busy=true]").first.wait_for(state="detached")
        return Image.open(io.BytesIO(page.screenshot(full_page=full_page))).convert("RGB")
    finally:
        context.close()


def screenshots(browser: Browser, server: Running) -> Iterator[tuple[str, Image.Image]]:
    """Every view at both sizes in both themes, at half size."""
    for view in VIEWS:
        address = f"{server.url}/explore/{place(server, view)}"
        for name, size in SIZES.items():
            for scheme in ("light", "dark"):
                picture = capture(browser, address, size=size, scheme=scheme)
                yield f"{view}-{name}-{scheme}.png", picture.resize((size[0] // 2, size[1] // 2), Image.Resampling.BOX)


def blurred(picture: Image.Image) -> NDArray[np.float64]:
    """Mean colours of a coarse grid."""
    grid = GRID if picture.width > picture.height else GRID[::-1]
    return np.asarray(picture.convert("RGB").resize(grid, Image.Resampling.BOX), np.float64)


def save(picture: Image.Image, file: Path, colours: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    picture.quantize(colours, dither=Image.Dither.NONE).save(file, optimize=True)
    print(f"{file.relative_to(ROOT)}: {file.stat().st_size / 1000:.0f} kB")


def main() -> None:
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        for hostile in (True, False):
            folder = Path(name) / str(hostile)
            folder.mkdir()
            write_shop(folder, hostile=hostile)
            run, other = train_shop(folder), train_shop(folder, name="other", seed=1)
            with running(run, compare=other) as server:
                if hostile:
                    for file, picture in screenshots(browser, server):
                        save(picture, KEPT / file, COLOURS)
                    continue
                for view, height in (("overview", 1470), ("query", 1270)):
                    address = f"{server.url}/explore/{place(server, view)}"
                    picture = capture(browser, address, size=(1180, height), scheme="light", scale=1.5)
                    save(picture, ASSETS / f"explorer-{view}.png", 64)


if __name__ == "__main__":
    main()
