"""The code in the Markdown pages, and the folder in which it is run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pathdex

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "README.md", *(ROOT / "docs").rglob("*.md")]
)

TINY: dict[str, Any] = {
    "num_nodes": 8,
    "depth": 2,
    "embedding_dim": 8,
    "structure_hidden": 8,
    "node_dim": 4,
    "epochs": 1,
    "rounds": 1,
    "final_epochs": 1,
    "candidate_paths": 10,
    "score_beam": 8,
    "score_samples": 4,
}
"""A model that is trained in a moment; whatever a page itself sets stays as the page has it."""
MOVIES = [260, 1196, 1210, 2571, *range(1, 21)]


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def code_blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def typed_lines(page: Path, program: str) -> list[list[str]]:
    """The arguments of every `$ program ...` line in console blocks."""
    text = "".join(code_blocks(page, "console")).replace("\\\n", " ")
    lines = [shlex.split(line[2:], comments=True) for line in text.splitlines() if line.startswith("$ ")]
    return [line[1:] for line in lines if line[:1] == [program]]


def make_workbench(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Enter a folder with a small `ratings.csv`, where Deep Retrieval starts from `TINY`."""
    random = np.random.default_rng(0)
    lines = ["userId,movieId,rating,timestamp"]
    for user in range(60):
        half = MOVIES[user % 2 :: 2] + MOVIES[:4]
        for step, movie in enumerate(random.permutation(list(dict.fromkeys(half)))):
            lines.append(f"{user + 1},{movie},{3 if step % 7 == 6 else 4 + step % 2},{1_000_000 + 60 * step}")
    (folder / "ratings.csv").write_text("\n".join(lines) + "\n")
    patch.chdir(folder)
    made = pathdex.DeepRetrieval
    # A configuration of the page's own is complete; otherwise parameters change those of `TINY`.
    patch.setattr(
        pathdex,
        "DeepRetrieval",
        lambda config=None, **given: made(config or pathdex.Config(**TINY), **given),
    )


def run_python(page: Path) -> dict[str, Any]:
    """Run the Python blocks of a page one after the other, as a reader would paste them; returns their names."""
    names: dict[str, Any] = {"__name__": page.stem}
    for number, block in enumerate(code_blocks(page, "python"), start=1):
        exec(compile(block, f"{page_name(page)}, python block {number}", "exec"), names)
    return names
