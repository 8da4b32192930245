"""A small trained model with titles and a recording."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import pathdex
from pathdex.explorer.explorer import Explorer
from tests.recommender_contract import TEXT_IDS, grouped_data
from tests.tiny import TINY

FRUIT, TOOLS = "Ripe apple", "Steel hammer"


def details() -> pl.DataFrame:
    """Titles and genres: the first half are fruit, the others tools."""
    half = len(TEXT_IDS) // 2
    return pl.DataFrame(
        {
            "item": TEXT_IDS,
            "title": [f"{FRUIT if place < half else TOOLS} {place}" for place in range(len(TEXT_IDS))],
            "genre": ["food|sweet" if place < half else "work" for place in range(len(TEXT_IDS))],
            "year": list(range(1990, 1990 + len(TEXT_IDS))),
        }
    )


@pytest.fixture(scope="session")
def trained() -> pathdex.DeepRetrieval:
    """Trained with `record=True`, with titles."""
    better = {**TINY, "batch_size": 64, "structure_batch_size": 64, "epochs": 3}
    model = pathdex.DeepRetrieval(**better, learning_rate=0.02, item_learning_rate=0.02, threads=1)
    return model.fit(grouped_data(TEXT_IDS), items=details(), callbacks=(), record=True)


@pytest.fixture
def explorer(trained: pathdex.DeepRetrieval) -> Explorer:
    assert trained.recording is not None
    return Explorer(trained, "0123456789ab", recording=trained.recording)


@pytest.fixture(scope="session")
def run_folder(trained: pathdex.DeepRetrieval, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model and its recording, as in a run folder."""
    folder = tmp_path_factory.mktemp("explored") / "run"
    folder.mkdir()
    trained.save(folder / "bundle")
    assert trained.recording is not None
    trained.recording.save(folder / "recording")
    return folder
