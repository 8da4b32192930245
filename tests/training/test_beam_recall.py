"""The recall of the beam in each round of a training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pathdex
from pathdex.data.ragged import Ragged
from pathdex.data.splits import Split
from pathdex.kernels.beam import beam_search
from tests.tiny import TINY


@pytest.fixture(scope="module")
def chosen() -> tuple[pathdex.DeepRetrieval, Split]:
    """A model with enough validation users to choose by."""
    data = pathdex.read(cycles(200, 12))
    split = pathdex.split_users(data, valid_users=60, test_users=10, seed=0)
    return fitted(split), split


def fitted(split: Split, **more: Any) -> pathdex.DeepRetrieval:
    model = pathdex.DeepRetrieval(**TINY, beam_size=2, threads=1)
    return model.fit(split.train, validation=split.valid, **{"callbacks": (), "record": True, **more})


def cycles(users: int, items: int) -> pl.DataFrame:
    """Users who go through the items in order."""
    user, step = np.repeat(np.arange(users), 6), np.tile(np.arange(6), users)
    return pl.DataFrame({"user": user, "item": (user + step) % items, "time": step})


def test_the_recall_of_the_last_round_is_that_of_the_model(chosen: Any) -> None:
    model, split = chosen
    recall = model.recording.recall
    assert len(recall) == len(model.recording.rounds)
    assert ((recall >= 0) & (recall <= 1)).all()
    shares = []
    for history, truth in zip(split.valid.history, split.valid.truth, strict=True):
        # The compiled search over the paths in use, with the same width.
        user = model.user_vectors(Ragged.from_rows([history]))[0]
        found, _ = beam_search(model.retriever.structure, model.retriever.trie, user, 2, TINY["depth"])
        beam = model.postings.paths[found]
        shares.append(np.mean([bool(np.isin(model.paths[item], beam).any()) for item in truth]))
    assert 0 < np.mean(shares) < 1
    assert recall[-1] == pytest.approx(np.mean(shares))


def test_recalls_survive_a_resume(tmp_path: Path, chosen: Any) -> None:
    class Stop(pathdex.Callback):
        def on_epoch_end(self, record: dict[str, object]) -> None:
            if record["phase"] == "structure" and record["number"] == 2:
                raise KeyboardInterrupt

    model, split = chosen
    file = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        fitted(split, callbacks=[Stop()], checkpoint=file)
    again = fitted(split, checkpoint=file, resume=True)
    assert again.recording is not None
    assert again.recording.recall.tolist() == model.recording.recall.tolist()
