"""Links of a page work both in a checkout and in the built site."""

from __future__ import annotations

import pytest
import yaml
from docs.hooks import escape_hashes, linked_files, on_post_page, relink
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File
from mkdocs.structure.pages import Page

from tests.snippets import ROOT


@pytest.mark.parametrize(
    ("path", "link", "in_site"),
    [
        ("docs/results.md", "evaluation.md#json", "evaluation.md#json"),
        ("docs/results.md", "../benchmarks/results/query.json", "repository/benchmarks/results/query.json"),
        ("docs/index.md", "../CONTRIBUTING.md#set-up", "repository/CONTRIBUTING.md#set-up"),
        ("docs/how-to/serve-behind-a-token.md", "../../SECURITY.md", "../repository/SECURITY.md"),
        ("CONTRIBUTING.md", "docs/index.md", "../index.md"),
        ("CONTRIBUTING.md", "benchmarks", "benchmarks/README.md"),
        ("docs/index.md", "https://arxiv.org/abs/2007.07203", "https://arxiv.org/abs/2007.07203"),
        ("docs/index.md", "#about-these-pages", "#about-these-pages"),
        ("docs/index.md", "missing.md", "missing.md"),
    ],
)
def test_a_link_in_the_site(path: str, link: str, in_site: str) -> None:
    assert relink(f"See [it]({link}).", path) == f"See [it]({in_site})."


def test_code_is_left_as_it_is() -> None:
    text = "```text\n[it](../README.md)\n```\n"
    assert relink(text, "docs/index.md") == text
    assert linked_files(text, "docs/index.md") == set()


def test_a_hash_without_a_space_is_no_heading() -> None:
    assert escape_hashes("# Title\n#nowplaying has sessions\n## Next") == "# Title\n\\#nowplaying has sessions\n## Next"


def test_linked_files_are_those_outside_the_docs() -> None:
    text = "[a](../LICENSE) [b](cli.md) ![c](../benchmarks/results/query-growth.png) [d](https://example.org)"
    assert linked_files(text, "docs/index.md") == {"LICENSE", "benchmarks/results/query-growth.png"}


@pytest.mark.parametrize("tag", ['<script src="https://example.org/a.js">', "<link rel=x href=//example.org/a.css>"])
def test_a_page_that_loads_from_another_host_fails(tag: str) -> None:
    page = Page("Home", File("index.md", "docs", "site", False), {"use_directory_urls": False})  # type: ignore[arg-type]
    with pytest.raises(PluginError, match=r"index\.md loads a file from another host"):
        on_post_page(tag, page=page)
    assert on_post_page('<a href="https://example.org">', page=page)


def test_the_site_uses_no_fonts_from_another_host() -> None:
    class Loader(yaml.SafeLoader):
        pass

    Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: None)
    theme = yaml.load((ROOT / "mkdocs.yml").read_text(), Loader)["theme"]
    assert theme["font"] is False
