"""EM rounds: which epochs end with an M-step, and where the paths start."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from pathdex.config import Config
from pathdex.data import generate
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.model.network import Network
from pathdex.storage.scratch import VARIABLE
from pathdex.training import position_vectors, sample_order
from pathdex.training.path_assigner import PathAssigner
from pathdex.training.random_streams import RandomStreams
from pathdex.training.structure_phase import StructurePhase
from tests.index_checks import assert_assignment
from tests.tiny import TINY

ITEMS = 12


def make(**parameters: object) -> StructurePhase:
    torch.manual_seed(0)
    config = Config.from_dict({**TINY, **parameters})
    rows = [np.random.default_rng(user).integers(0, ITEMS, 9) for user in range(30)]
    data = Interactions(Ragged.from_rows(rows), Vocabulary(np.arange(30)), Vocabulary(np.arange(ITEMS)))
    network = Network(config, ITEMS, config)
    assigner = PathAssigner(network, config, data, [], seed=0)
    return StructurePhase(network, config, data, RandomStreams(0, 1), assigner, seed=0)


@pytest.mark.parametrize(
    ("rounds", "each", "final", "epochs", "m_steps"),
    [(2, 1, 1, 3, [0, 1]), (2, 2, 1, 5, [1, 3]), (3, 1, 0, 3, [0, 1, 2]), (0, 2, 2, 0, [])],
)
def test_rounds_end_with_m_steps_and_final_epochs_do_not(
    rounds: int, each: int, final: int, epochs: int, m_steps: list[int]
) -> None:
    phase = make(rounds=rounds, structure_epochs=each, final_epochs=final)
    assert phase.epochs == epochs
    assert list(phase.m_steps) == m_steps


def test_paths_start_from_codes_of_the_item_vectors_or_at_random() -> None:
    coded, random = make(start="residual-kmeans"), make(start="random")
    before = random.assigner.paths.copy()
    for phase in (coded, random):
        phase.begin()
        assert_assignment(phase.assigner.paths, 4, 2)
    np.testing.assert_array_equal(random.assigner.paths, before)
    assert not np.array_equal(coded.assigner.paths, before)


def test_the_encoder_and_the_item_vectors_stay_frozen() -> None:
    phase = make()
    phase.begin()
    before = {name: value.copy() for name, value in phase.network.export().items()}
    for step in range(phase.begin_epoch(0)):
        phase.step(0, step)
    for name, value in phase.network.export().items():
        assert np.array_equal(value, before[name]) != name.startswith("structure."), name


@pytest.mark.parametrize("next_items", [1, 4])
@pytest.mark.parametrize("scoring", ["item", "streaming"])
@pytest.mark.filterwarnings("ignore::pathdex.errors.IndexHealthWarning")
def test_large_data_gives_the_same_model_from_memory_and_from_disk(
    monkeypatch: pytest.MonkeyPatch, scoring: str, next_items: int
) -> None:
    monkeypatch.setattr(sample_order, "LARGE", 100)
    monkeypatch.setattr(sample_order, "WINDOW", 64)
    monkeypatch.setattr(sample_order, "SAMPLE_BLOCK", 8)

    def trained(limit: int, ahead: int) -> dict[str, np.ndarray]:
        monkeypatch.setenv(VARIABLE, str(limit))
        monkeypatch.setattr(position_vectors, "AHEAD_BYTES", ahead)
        phase = make(scoring=scoring, next_items=next_items, rounds=1, final_epochs=1, structure_batch_size=16)
        phase.begin()
        for epoch in range(phase.epochs):
            visited = phase.begin_epoch(epoch)
            assert sorted(phase.order) == list(range(270))
            for step in range(visited):
                phase.step(epoch, step)
            phase.end_epoch(epoch)
        return {**phase.network.export(), "paths": phase.assigner.paths}

    memory, disk = trained(10**9, 10**9), trained(0, 1000)
    for name, value in memory.items():
        np.testing.assert_array_equal(value, disk[name], err_msg=name)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the memory figures of Linux")
def test_data_whose_user_vectors_exceed_the_memory_limit_is_prepared_and_trained_on(tmp_path: Path) -> None:
    """The user vectors have 307 MB; the process may allocate 224 MiB."""
    log, room = tmp_path / "log.parquet", 224 * 2**20
    generate(log, users=20_000, items=1000, interactions=1_200_000, seed=0)
    command = [sys.executable, "-m", "tests.limited_training", str(log), str(tmp_path), str(room)]
    environment = {**os.environ, VARIABLE: str(2**20), "TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    found = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=1200, check=False)
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    if "too little for the user vectors" not in lines:
        pytest.skip("this system does not limit the data segment")
    assert lines == ["prepared 1200000", "too little for the user vectors", "trained 5"]
