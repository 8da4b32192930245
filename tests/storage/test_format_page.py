"""docs/bundle-format.md lists what estimators, runs and checkpoints really write."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

import pathdex
from pathdex.recommenders.registry import ESTIMATORS
from pathdex.storage.bundle import Bundle
from pathdex.storage.checkpoint import load_checkpoint
from tests.snippets import ROOT

PAGE = (ROOT / "docs" / "bundle-format.md").read_text()
GOLDEN = ROOT / "tests" / "golden"
BUNDLES = sorted((GOLDEN / "bundles").iterdir())


def rows(head: str) -> list[list[str]]:
    """The cells of the table with this first cell in its header."""
    table = PAGE.split(f"\n| {head} |")[1].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.splitlines()[2:]]


def in_quotes(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def documented() -> dict[str, list[str]]:
    """Settings, arrays and weights of each estimator as the page writes them."""
    lines = PAGE.split("\n| estimator |")[1].split("\n\n")[0].splitlines()[2:]
    found = {}
    for line in lines:
        names, *cells = [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")]
        found |= dict.fromkeys(in_quotes(names), cells)
    return found


def saved_again(folder: Path) -> Bundle:
    """What today's code writes for a golden bundle."""
    return pathdex.load(folder).to_bundle()


def matches(names: set[str], patterns: list[str]) -> bool:
    """Whether every name has a pattern, and every pattern a name."""
    return all(any(fnmatch(name, one) for one in patterns) for name in names) and all(
        any(fnmatch(name, one) for name in names) for one in patterns
    )


def test_every_estimator_is_listed() -> None:
    assert set(documented()) == set(ESTIMATORS)


@pytest.mark.parametrize("folder", BUNDLES, ids=lambda folder: folder.name)
def test_the_settings_arrays_and_weights_of_an_estimator(folder: Path) -> None:
    bundle = saved_again(folder)
    settings, arrays, weights = documented()[bundle.estimator]
    if bundle.estimator == "brute-force":
        assert set(bundle.settings) == set(in_quotes(settings))
        _, arrays, weights = documented()[bundle.settings["model"]]
    elif settings == "hyper-parameters":
        assert bundle.settings == pathdex.load(folder).get_params()
    else:
        assert set(bundle.settings) == set(in_quotes(settings))
    found = {name for name in bundle.arrays if not name.startswith("items.")}
    optional = {name for group in re.findall(r"\(([^)]*)\)", arrays) for name in in_quotes(group)}
    required = set(in_quotes(arrays)) - optional
    assert required <= found <= required | optional
    assert matches(set(bundle.weights), in_quotes(weights))


@pytest.mark.parametrize("folder", BUNDLES, ids=lambda folder: folder.name)
def test_every_array_and_weight_is_explained(folder: Path) -> None:
    explained = [name for row in rows("name") for name in in_quotes(row[0])]
    bundle = saved_again(folder)
    arrays = {name for name in bundle.arrays if not name.startswith("items.")}
    assert {name for name in arrays if not any(fnmatch(name, one) for one in explained)} == set()
    # Layers of a network are named for what they compute.
    single = {name for name in bundle.weights if "." not in name} - {"recency"}
    assert single <= set(explained)


def test_the_item_ids() -> None:
    listed = {name for row in rows("array") for name in in_quotes(row[0])}
    assert "items.removed" in listed
    listed -= {"items.removed"}  # Of a live model only.
    found = {name for folder in BUNDLES for name in saved_again(folder).arrays if name.startswith("items.")}
    assert found <= listed == {"items.ids", "items.text", "items.offsets", "items.slots"}


def test_the_files_of_a_run() -> None:
    listed = {name.rstrip("/") for row in rows("in RUN") for name in in_quotes(row[0])}
    assert {file.name for file in (GOLDEN / "runs" / "finished").iterdir()} | {
        "LOCK",
        "tensorboard",
        "tracked.json",
        "wandb",
    } == listed


def test_the_state_and_arrays_of_a_checkpoint() -> None:
    state, arrays = load_checkpoint(GOLDEN / "runs" / "interrupted" / "checkpoint.safetensors")
    assert set(state) == {name for row in rows("key of the state") for name in in_quotes(row[0])}
    patterns = [name for row in rows("array of the checkpoint") for name in in_quotes(row[0])]
    assert matches(set(arrays), [one for one in patterns if one != "joint-adam.*"])
