"""The committed page is what its source builds, and its packages are pinned without naming a registry."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.snippets import ROOT

SOURCE, BUILT = ROOT / "explorer", ROOT / "src" / "pathdex" / "server" / "explorer_page"

needs_node = pytest.mark.skipif(
    shutil.which("npm") is None or not (SOURCE / "node_modules").is_dir(),
    reason="npm or the page's packages are not installed; see make install",
)


def run(*command: str) -> None:
    done = subprocess.run(command, cwd=SOURCE, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


@needs_node
def test_the_committed_page_is_what_the_source_builds(tmp_path: Path) -> None:
    """If not: make explorer."""
    run("npx", "--no-install", "vite", "build", "--logLevel", "warn", "--outDir", str(tmp_path / "page"))
    fresh = files_in(tmp_path / "page")
    assert list(fresh) == list(files_in(BUILT))
    assert fresh == files_in(BUILT)


@needs_node
def test_the_types_are_those_of_the_servers_document(tmp_path: Path) -> None:
    """If not: make explorer-types."""
    done = subprocess.run([sys.executable, str(SOURCE / "openapi.py")], check=True, capture_output=True, text=True)
    (tmp_path / "openapi.json").write_text(done.stdout)
    options = ["--default-non-nullable=false", "--output", str(tmp_path / "schema.ts")]
    run("npx", "--no-install", "openapi-typescript", str(tmp_path / "openapi.json"), *options)
    assert (tmp_path / "schema.ts").read_text() == (SOURCE / "src" / "api" / "schema.ts").read_text()


@needs_node
@pytest.mark.slow
def test_the_source_has_the_types_that_it_says() -> None:
    run("npx", "--no-install", "tsc", "--noEmit")


def test_the_lock_file_names_no_registry_and_pins_every_package() -> None:
    lock = json.loads((SOURCE / "package-lock.json").read_text())
    wanted = json.loads((SOURCE / "package.json").read_text())
    assert all("resolved" not in package for package in lock["packages"].values())
    assert all("integrity" in package for name, package in lock["packages"].items() if name)
    versions = {**wanted["dependencies"], **wanted["devDependencies"]}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions.values())


def test_the_page_asks_no_other_host_and_runs_nothing_inline() -> None:
    index = (BUILT / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*\bsrc=)", index) == []
    assert "<style" not in index
    assert all(link.startswith(("./", "data:")) for link in re.findall(r"(?:src|href)=\"([^\"]+)\"", index))
    text = "".join(file.read_text() for file in (BUILT / "assets").iterdir())
    hosts = set(re.findall(r"https?://([\w.-]+)", text))
    assert hosts <= {"www.w3.org"}, "only the names of XML namespaces"
    assert re.findall(r"\beval\(|new Function", text) == []
    sources = [file.read_text() for file in (SOURCE / "src").rglob("*.ts*")]
    assert [text for text in sources if re.search("innerHTML|outerHTML|insertAdjacentHTML", text, re.IGNORECASE)] == []
