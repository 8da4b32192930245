"""Hooks of the site build: files outside `docs/` that pages link to join the site, so that links work in both places.

A page links to the repository's files by relative paths (`../README.md`, `../benchmarks/results/query.json`). The site
has them under `repository/`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS = "docs/"
REPOSITORY = "repository/"
PROJECT_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "RELEASING.md", "SECURITY.md", "benchmarks/README.md")

_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*?\bsrc=["']?(?:https?:)?//|<link\b[^>]*?\bhref=["']?(?:https?:)?//"""
)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill the section Decisions with its pages, the index first."""
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"), key=lambda page: (page.stem != "index", _title(page)))
    uris = [f"decisions/{page.name}" for page in pages]
    entries: list[Any] = [{"Overview": uris[0]}, *uris[1:]]
    config.nav = [{"Decisions": entries} if item == {"Decisions": "decisions"} else item for item in config.nav or []]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the repository's files that pages link to, directly or through such files."""
    waiting = [*PROJECT_PAGES, *(DOCS + file.src_uri for file in files.documentation_pages())]
    known = set(waiting)
    while waiting:
        path = waiting.pop()
        if not path.startswith(DOCS):
            files.append(_repository_file(path, config))
        if path.endswith(".md"):
            found = linked_files((ROOT / path).read_text(encoding="utf-8"), path)
            waiting += sorted(found - known)
            known |= found
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Point links to where the site has their files, and read the text as CommonMark does."""
    uri = page.file.src_uri
    path = uri.removeprefix(REPOSITORY) if uri.startswith(REPOSITORY) else DOCS + uri
    return _outside_code(relink(markdown, path), escape_hashes)


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """Fail for a page that would load something from another host."""
    if found := _LOADED.search(output):
        raise PluginError(f"{page.file.src_uri} loads a file from another host: {found[0]}")
    return output


def relink(markdown: str, path: str) -> str:
    """The text of the repository's file `path` with its links as the site needs them."""

    def site_link(target: str) -> str:
        file, _, anchor = target.partition("#")
        found = _resolve(file, path)
        if found is None:
            return target
        relative = posixpath.relpath(site_uri(found), posixpath.dirname(site_uri(path)) or ".")
        return f"{relative}#{anchor}" if anchor else relative

    return _outside_code(markdown, lambda text: _LINK.sub(lambda link: link[1] + site_link(link[2]) + link[3], text))


def escape_hashes(markdown: str) -> str:
    """A `#word` at the start of a line is text in CommonMark and a heading in Python-Markdown."""
    return re.sub(r"^#(?=[^#\s])", r"\\#", markdown, flags=re.MULTILINE)


def linked_files(markdown: str, path: str) -> set[str]:
    """The files outside `docs/` that a page links to."""
    targets = [link[2].partition("#")[0] for link in _LINK.finditer(_FENCE.sub("", markdown))]
    found = {_resolve(target, path) for target in targets}
    return {file for file in found if file is not None and not file.startswith(DOCS)}


def site_uri(path: str) -> str:
    """Where the site has a file of the repository."""
    return path.removeprefix(DOCS) if path.startswith(DOCS) else REPOSITORY + path


def _resolve(target: str, path: str) -> str | None:
    """The repository's file that a relative link of `path` leads to; a folder is its index page."""
    if not target or "://" in target or target.startswith(("/", "mailto:")):
        return None
    found = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    for file in (found, f"{found}/index.md", f"{found}/README.md"):
        if (ROOT / file).is_file():
            return file
    return None


def _repository_file(path: str, config: MkDocsConfig) -> File:
    file = File.generated(config, site_uri(path), abs_src_path=str(ROOT / path))
    if path not in PROJECT_PAGES:
        file.inclusion = InclusionLevel.NOT_IN_NAV
    return file


def _outside_code(markdown: str, change: Callable[[str], str]) -> str:
    parts, end = [], 0
    for fence in _FENCE.finditer(markdown):
        parts += [change(markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, change(markdown[end:])])


def _title(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ").lower()
