"""A server with a trained shop, and pages of Chromium that must stay silent."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.explorer_page.browser import CHROMIUM, ROOT, SIZES, chromium
from tests.explorer_page.shop import train_shop, write_shop
from tests.server.conftest import Running, deep, running

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["deep"]

OpenPage = Callable[..., "Page"]

# The first page on a busy machine waits for the compiler.
PATIENCE = 60_000


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two trained runs, `run` and `other`; trained by the first process that asks."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "explorer-shop"
    with open(shared / "explorer-shop.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            folder.mkdir()
            write_shop(folder, hostile=True)
            train_shop(folder)
            train_shop(folder, name="other", seed=1)
            (folder / "ready").touch()
    return folder


@pytest.fixture(scope="session")
def server(shop: Path) -> Iterator[Running]:
    with running(shop / "run", compare=shop / "other") as found:
        yield found


# Playwright keeps an event loop running in the thread, in which no other test could start one of its own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed; see make install")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed; see make install")
    with chromium() as found:
        yield found


@pytest.fixture
def open_page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[OpenPage]:
    """Opens an address in a new window; afterwards no page may have written errors or asked another host."""
    problems: list[str] = []
    allowed = set[str]()
    contexts = []

    def open_one(url: str, *, size: str | tuple[int, int] = "desktop", **options: Any) -> Page:
        width, height = SIZES[size] if isinstance(size, str) else size
        options = {"reduced_motion": "reduce", "color_scheme": "light", **options}
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        allowed.add(url.partition("/explore")[0])
        page.on(
            "console", lambda message: problems.append(message.text) if message.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda sent: problems.append(f"asked {sent.url}") if is_foreign(sent.url, allowed) else None)
        page.goto(url)
        page.get_by_role("heading", level=1).or_(page.get_by_role("alert")).first.wait_for()
        settle(page)
        return page

    yield open_one
    for context in contexts:
        context.close()
    # A test's own server may have stopped before the page asked it once more for its state.
    expected = ["ERR_CONNECTION_REFUSED", *(one.args[0] for one in request.node.iter_markers("expected_errors"))]
    assert [one for one in problems if not any(text in one for text in expected)] == []


def is_foreign(url: str, allowed: set[str]) -> bool:
    return not url.startswith(("data:", "file:")) and not any(url.startswith(f"{one}/") for one in allowed)


def settle(page: Page) -> None:
    """Wait until what was done is drawn and no view waits for an answer."""
    page.evaluate("() => new Promise(done => setTimeout(() => requestAnimationFrame(() => setTimeout(done))))")
    page.locator("[aria-busy=true]").first.wait_for(state="detached")


def axe_problems(page: Page) -> list[str]:
    """The serious and critical findings of axe-core."""
    file = ROOT / "explorer" / "node_modules" / "axe-core" / "axe.min.js"
    if not file.exists():
        pytest.skip("axe-core is not installed; see make install")
    page.evaluate(file.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {node['html'][:200]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
