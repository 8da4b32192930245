"""Readers see all of one model or all of another while a process saves over a bundle again and again."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

import pytest

import pathdex
from pathdex.recommenders.base import Recommender
from pathdex.recommenders.live_model import LiveModel
from pathdex.recommenders.popularity import Popularity
from tests.recommender_contract import TEXT_IDS
from tests.server.test_model_manager import favourite

SAVES = 60


def first_items(model: Recommender) -> list[Any]:
    return model.recommend([], 5)


def save_over(path: Path, exchange: bool) -> None:
    """Save two models in turn."""
    import pathdex.storage.atomic

    if not exchange:
        pathdex.storage.atomic.exchange = lambda *_: False  # type: ignore[assignment]
    models = favourite(1), favourite(2)
    for number in range(SAVES):
        models[number % 2].save(path, overwrite=True)


@pytest.mark.parametrize("exchange", [True, False], ids=["exchange", "two renames"])
@pytest.mark.parametrize("limit", [0, 2**30], ids=["large", "small"])
def test_every_load_is_one_of_the_two_models(
    tmp_path: Path, exchange: bool, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As for a large bundle, no checksum would notice files of two saves.
    monkeypatch.setattr("pathdex.storage.array_folder.VERIFY_LIMIT", limit)
    monkeypatch.setenv("PATHDEX_CACHE", str(tmp_path / "cache"))
    path = favourite(1).save(tmp_path / "bundle")
    wanted = [first_items(favourite(1)), first_items(favourite(2))]
    process = multiprocessing.get_context("spawn").Process(target=save_over, args=(path, exchange))
    process.start()
    seen, loads = set(), 0
    try:
        while process.is_alive():
            model = pathdex.load(path) if loads % 2 else Popularity.load(path)
            answer = first_items(model)
            assert answer in wanted
            assert model.items.ids(range(3)) == TEXT_IDS[:3]
            seen.add(wanted.index(answer))
            loads += 1
    finally:
        process.join()
    assert process.exitcode == 0
    assert loads > 10
    assert seen == {0, 1}


def save_deep(path: Path) -> None:
    from tests.random_model import random_model

    for number in range(15):
        random_model(25, seed=number % 2).save(path, overwrite=True)


def test_a_live_model_maps_the_files_of_one_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.random_model import random_model

    monkeypatch.setattr("pathdex.storage.array_folder.VERIFY_LIMIT", 0)
    monkeypatch.setenv("PATHDEX_CACHE", str(tmp_path / "cache"))
    models = random_model(25, seed=0), random_model(25, seed=1)
    path = models[0].save(tmp_path / "bundle")
    wanted = [model.recommend([100, 101], 9) for model in models]
    process = multiprocessing.get_context("spawn").Process(target=save_deep, args=(path,))
    process.start()
    try:
        while process.is_alive():
            assert LiveModel.open(path).recommend([100, 101], 9) in wanted
    finally:
        process.join()
    assert process.exitcode == 0
