"""The code of the home page, tutorials, how-to guides and concepts runs as a reader would paste it."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from pathdex.cli.app import app
from tests.snippets import ROOT, code_blocks, make_workbench, page_name, run_python

DOCS = ROOT / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
HEAD = [DOCS / "index.md", DOCS / "getting-started.md"]
GUIDES = sorted(
    page
    for page in [*HEAD, *(DOCS / "how-to").glob("*.md"), *(DOCS / "concepts").glob("*.md")]
    if code_blocks(page, "python")
)
ADDRESS = "http://127.0.0.1:8000"
_BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def follow(page: Path) -> Iterator[tuple[str, str]]:
    """The Python and console blocks of a page in the order of the page."""
    yield from _BLOCK.findall(page.read_text())


def commands(block: str) -> list[list[str]]:
    """The `$ ...` lines of a console block as arguments."""
    lines = block.replace("\\\n", " ").splitlines()
    return [shlex.split(line[2:]) for line in lines if line.startswith("$ ")]


def run_command(line: list[str]) -> str:
    done = CliRunner().invoke(app, line[1:])
    assert done.exit_code == 0, f"{' '.join(line)}\n{done.output}"
    return done.output


@contextlib.contextmanager
def served(arguments: list[str]) -> Iterator[str]:
    """`pathdex serve ...` in a process, on any free port; yields the address."""
    given = [*arguments[: arguments.index("--port")], "--port", "0", *arguments[arguments.index("--port") + 2 :]]
    command = [sys.executable, "-c", "from pathdex.cli import main; main()", *given[1:]]
    environment = {**os.environ, "COLUMNS": "200"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"http://[\d.:]+", line)
            assert found is not None, line
            yield found[0]
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0


def test_every_tutorial_is_known() -> None:
    assert [page.stem for page in TUTORIALS] == ["csv-to-recommendations", "serve-and-query"]


def test_from_a_csv_to_recommendations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "tutorial"}
    outputs: dict[str, str] = {}
    for language, block in follow(DOCS / "tutorials" / "csv-to-recommendations.md"):
        if language == "python":
            exec(block, names)
        else:
            outputs |= {" ".join(line): run_command(line) for line in commands(block)}
    assert "finished" in outputs["pathdex train --out runs/shop --resume"]
    assert pl.read_parquet("recommendations.parquet")["user"].n_unique() == 600
    assert len(names["gifts"]) == 5
    assert Path("figures.json").exists()


def test_serve_a_model_and_query_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "tutorial"}
    address = ADDRESS
    with contextlib.ExitStack() as stack:
        for language, block in follow(DOCS / "tutorials" / "serve-and-query.md"):
            if language == "python":
                exec(block.replace(ADDRESS, address), names)
            for line in commands(block) if language == "console" else []:
                if line[:2] == ["pathdex", "serve"]:
                    address = stack.enter_context(served(line))
    assert names["before"]
    assert len(names["many"]) == 2


@pytest.mark.parametrize("page", GUIDES, ids=page_name)
def test_the_blocks_of_a_guide_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_workbench(tmp_path, monkeypatch)
    run_python(page)
