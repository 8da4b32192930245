"""Training is deterministic, resumes to the same result, and recovers planted structure."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pathdex.config import Config, RunOptions
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import ConfigError, DataError, RunError
from pathdex.recommenders.brute_force import BruteForce
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.training.trainer import Trainer
from tests.recommender_contract import StopAfter
from tests.tiny import TINY


def blocks(users: int = 120, groups: int = 4, size: int = 8, seed: int = 0) -> Interactions:
    """Data in which every user takes items of one group only."""
    random = np.random.default_rng(seed)
    rows = [random.integers(0, size, 12) + size * (user % groups) for user in range(users)]
    return Interactions(Ragged.from_rows(rows), Vocabulary(np.arange(users)), Vocabulary(np.arange(groups * size)))


def trainer(data: Interactions, checkpoint: Path | None = None, threads: int = 1, **parameters: Any) -> Trainer:
    config = Config.from_dict({**TINY, **parameters})
    return Trainer(config, RunOptions(seed=1, threads=threads), data, checkpoint=checkpoint)


def test_missing_device_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"^device='tpu': this machine has cpu"):
        Trainer(Config.from_dict(TINY), RunOptions(device="tpu"), blocks())


def outcome(one: Trainer) -> list[np.ndarray]:
    return [one.paths, *(value for _, value in sorted(one.network.export().items()))]


def assert_same(first: Trainer, second: Trainer) -> None:
    for a, b in zip(outcome(first), outcome(second), strict=True):
        np.testing.assert_array_equal(a, b)


SCHEDULES = [
    {"schedule": "warm"},
    {"schedule": "warm", "scoring": "streaming", "start": "random", "structure": "recurrent", "next_items": 3},
    {"schedule": "paper", "start": "random", "scoring": "streaming", "penalty": 0.01, "next_items": 3},
]


@pytest.mark.parametrize("parameters", SCHEDULES)
def test_same_seed_gives_the_same_model(parameters: dict[str, Any]) -> None:
    first, second = trainer(blocks(), **parameters), trainer(blocks(), **parameters)
    first.run()
    second.run()
    assert_same(first, second)


def test_same_seed_gives_the_same_model_with_several_threads() -> None:
    """Batches are large enough for torch to use several threads."""
    large = {"threads": 2, "embedding_dim": 64, "batch_size": 4096, "structure_batch_size": 4096, "num_nodes": 32}
    first, second = (trainer(blocks(users=600), **large) for _ in range(2))
    first.run()
    second.run()
    assert_same(first, second)


def test_torch_is_deterministic_only_during_training() -> None:
    trainer(blocks()).run()
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.parametrize("parameters", SCHEDULES)
@pytest.mark.parametrize("steps", [5, 14, 25, 38])
def test_interrupted_training_resumes_to_the_same_result(
    parameters: dict[str, Any], steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = trainer(blocks(), **parameters)
    whole.run()
    monkeypatch.setattr("pathdex.training.checkpointing.CHECKPOINT_SECONDS", 0.0)  # a checkpoint after every step
    interrupted = trainer(blocks(), tmp_path / "state", **parameters)
    interrupted.loop.callbacks = [StopAfter(steps)]
    with pytest.raises(KeyboardInterrupt):
        interrupted.run()
    resumed = trainer(blocks(), tmp_path / "state", **parameters)
    resumed.resume()
    resumed.run()
    assert_same(whole, resumed)
    losses = [{key: record.get(key) for key in ("phase", "number", "structure")} for record in resumed.records]
    assert losses == [{key: record.get(key) for key in ("phase", "number", "structure")} for record in whole.records]


def test_resume_rejects_another_configuration_or_data(tmp_path: Path) -> None:
    trainer(blocks(), tmp_path / "state").run()
    with pytest.raises(RunError, match="a different config"):
        trainer(blocks(), tmp_path / "state", epochs=3).resume()
    with pytest.raises(RunError, match="a different data"):
        trainer(blocks(users=100), tmp_path / "state").resume()


def test_resume_needs_an_intact_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no checkpoint"):
        trainer(blocks(), tmp_path / "state").resume()
    (tmp_path / "state").write_bytes(b"not a checkpoint")
    with pytest.raises(RunError, match="cannot be read"):
        trainer(blocks(), tmp_path / "state").resume()


def test_empty_data_is_an_error() -> None:
    with pytest.raises(DataError, match="no interactions"):
        trainer(blocks().take(np.arange(0)))


@pytest.mark.parametrize("start", ["random", "residual-kmeans"])
def test_planted_groups_are_recovered(start: str) -> None:
    """No two groups share the first path of an item, the one with the largest gain."""
    one = trainer(
        blocks(users=400),
        start=start,
        epochs=6,
        rounds=6,
        num_nodes=6,
        path_size=8.0,
        learning_rate=0.01,
        structure_learning_rate=0.02,
    )
    one.run()
    groups = [set(one.paths[group * 8 : (group + 1) * 8, 0].tolist()) for group in range(4)]
    assert sum(len(paths) for paths in groups) == len(set.union(*groups))
    assert (
        one.records[-1]["structure"] < 0.2
    )  # -log p of the right path; a random choice of four paths would give log 4


@pytest.mark.parametrize(("each", "m_steps"), [(1, {1, 2}), (2, {2, 4})])
def test_there_is_a_record_per_epoch_and_m_step(each: int, m_steps: set[int]) -> None:
    one = trainer(blocks(), rounds=2, structure_epochs=each, final_epochs=1)
    one.run()
    epochs = [*(("encoder", number) for number in (1, 2)), *(("structure", n + 1) for n in range(2 * each + 1))]
    assert [(record["phase"], record["number"]) for record in one.records] == epochs
    assert {record["number"] for record in one.records if "objective" in record} == m_steps
    for record in one.records[2:]:
        assert np.isfinite(record["structure"])
        if "objective" in record:
            assert 0 <= record["score_seconds"] + record["m_step_seconds"] <= record["seconds"]


def test_threads_are_unchanged_by_default() -> None:
    before = torch.get_num_threads()
    Trainer(Config.from_dict(TINY), RunOptions(), blocks())
    assert torch.get_num_threads() == before


def test_adopted_encoder_gives_the_result_of_a_full_training() -> None:
    """This holds for an index of another shape as well."""
    trained = trainer(blocks())
    trained.run()
    for parameters in ({}, {"num_nodes": 3, "paths_per_item": 1, "depth": 3}):
        whole, shared = trainer(blocks(), **parameters), trainer(blocks(), **parameters)
        whole.run()
        shared.adopt_encoder(trained.config, trained.network.export())
        shared.run()
        assert_same(whole, shared)
        assert {record["phase"] for record in shared.records} == {"structure"}


def test_mismatched_encoder_is_rejected() -> None:
    trained = trainer(blocks())
    weights = trained.network.export()
    with pytest.raises(ConfigError, match=r"^embedding_dim=4: the earlier model has 8; choose the same, or train"):
        trainer(blocks(), embedding_dim=4).adopt_encoder(trained.config, weights)
    with pytest.raises(ConfigError, match=r"^schedule='paper': trains the encoder jointly with the paths; use 'warm'$"):
        trainer(blocks(), schedule="paper", start="random").adopt_encoder(trained.config, weights)
    with pytest.raises(DataError, match=r"^data has 40 items and the trained encoder 32: must have the same catalogue"):
        trainer(blocks(groups=5)).adopt_encoder(trained.config, weights)


@pytest.mark.parametrize("reach", [1, 3])
def test_next_items_are_predicted(reach: int) -> None:
    """Users walk around a ring of items. With `next_items=3`, the three items ahead rank first."""
    items, steps = 24, 30
    rows = [(start + np.arange(steps)) % items for start in range(items)] * 3
    data = Interactions(Ragged.from_rows(rows), Vocabulary(np.arange(len(rows))), Vocabulary(np.arange(items)))
    training = {"epochs": 30, "rounds": 6, "dropout": 0.0, "learning_rate": 0.01, "structure_learning_rate": 0.02}
    model = DeepRetrieval(**{**TINY, **training, "num_nodes": 6, "path_size": 2.0}, next_items=reach, threads=1)
    model.fit(data, callbacks=())
    for searched in (model, BruteForce(model)):
        found = [searched.recommend([(last - 1) % items, last], n=3) for last in range(items)]
        ahead = [{(last + step) % items for step in range(1, 4)} for last in range(items)]
        right = np.mean([len({one for one, _ in some} & wanted) for some, wanted in zip(found, ahead, strict=True)])
        assert right > 2.8 if reach == 3 else right < 2.3


@pytest.mark.parametrize("parameters", [{}, {"next_items": 8}, {"scoring": "streaming"}])
def test_arrays_in_files_and_in_blocks_give_the_same_model(
    parameters: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = trainer(blocks(), **parameters)
    first.run()
    monkeypatch.setenv("PATHDEX_SCRATCH_LIMIT", "0")
    for module in ("storage.scratch", "data.ragged", "data.interactions", "training.scoring"):
        monkeypatch.setattr(f"pathdex.{module}.BLOCK", 50)
    second = trainer(blocks(), **parameters)
    second.run()
    assert_same(first, second)
