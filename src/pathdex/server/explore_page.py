"""The explorer's page: files that `make explorer` built, served with a strict content security policy.

The page is public, like /docs; the data that it asks for is not.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from pathdex.errors import Problem
from pathdex.server.asgi import HTML, Response
from pathdex.server.errors import SERVER, RequestError, invalid
from pathdex.server.model_loader import ServedModel
from pathdex.server.route import RouteTable
from pathdex.server.worker_context import WorkerContext

PAGE_ROUTES = RouteTable()
FOLDER = "explorer_page"
"""In this package: `index.html` and the folder `assets`."""
TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
    "png": "image/png",
    "woff2": "font/woff2",
}
"""Content types by the ending of a file."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Nothing inline, nothing from other hosts, no frames."""
SAFETY = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
FRESH = ((b"cache-control", b"no-cache"),)
"""A browser asks each time, and gets status 304 for what it has: a page and its script are always of one build."""
NOT_BUILT = Problem("the page of the explorer is not built", remedy="run `make explorer`, or install a wheel")


@cache
def page_files() -> dict[str, bytes]:
    """The files by name, `index.html` and `assets/NAME`; none if the page is not built."""
    folder = files("pathdex.server").joinpath(FOLDER)
    index, assets = folder.joinpath("index.html"), folder.joinpath("assets")
    if not index.is_file():
        return {}
    found = {"index.html": index.read_bytes()}
    if assets.is_dir():
        found |= {f"assets/{one.name}": one.read_bytes() for one in assets.iterdir() if one.is_file()}
    return found


CHANGED = {200: "Success.", 304: "Not changed since the ETag."}


@PAGE_ROUTES.get("/explore", bytes, content_type=HTML, operational=True, public=True, statuses={307: "See /explore/."})
async def explore(_: WorkerContext, __: ServedModel | None, ___: None) -> Response:
    """Go to the explorer."""
    # Relative: behind a proxy, the address may have a prefix that the server does not know.
    return Response(b"", 307, ((b"location", b"explore/"),))


@PAGE_ROUTES.get("/explore/", bytes, content_type=HTML, operational=True, public=True, statuses=CHANGED, errors=(404,))
async def explore_page(_: WorkerContext, __: ServedModel | None, ___: None) -> Response:
    """Explore the model in a browser."""
    page = page_files().get("index.html")
    if page is None:
        raise RequestError(404, NOT_BUILT, type=SERVER)
    return Response(page, headers=(*SAFETY, *FRESH, (b"etag", _etag(page))))


@PAGE_ROUTES.get("/explore/assets/{file}", bytes, content_type="*/*", operational=True, public=True, statuses=CHANGED)
async def explore_asset(_: WorkerContext, __: ServedModel | None, file: str) -> Response:
    """Get a script, style or image of the explorer."""
    content, kind = page_files().get(f"assets/{file}"), TYPES.get(file.rpartition(".")[2])
    if content is None or kind is None:
        raise invalid("file", file, "is not a file of the explorer", "reload the page", status=404)
    return Response(content, headers=(*SAFETY, *FRESH, (b"etag", _etag(content))), content_type=kind)


@cache
def _etag(content: bytes) -> bytes:
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'.encode()
