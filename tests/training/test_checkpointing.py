"""Optimiser state goes through arrays and back; a checkpoint belongs to one training."""

from pathlib import Path

import numpy as np
import pytest
import torch

from pathdex.errors import RunError
from pathdex.training import checkpointing
from pathdex.training.checkpointing import Checkpointer, load_optimizer_arrays, optimizer_arrays


def test_an_optimizer_continues_as_if_it_had_not_been_saved() -> None:
    torch.manual_seed(0)
    gradients = torch.randn(6, 4)
    kept, restored = (torch.nn.Parameter(torch.ones(4)) for _ in range(2))
    first, second = torch.optim.Adam([kept], 0.1), torch.optim.Adam([restored], 0.1)
    for gradient in gradients[:3]:
        kept.grad = gradient
        first.step()
    restored.data.copy_(kept.data)
    saved = {name: array.copy() for name, array in optimizer_arrays("adam", first).items()}
    load_optimizer_arrays("adam", second, saved)
    for gradient in gradients[3:]:
        for parameter, optimizer in ((kept, first), (restored, second)):
            parameter.grad = gradient
            optimizer.step()
    assert kept.equal(restored)


def test_values_and_arrays_come_back(tmp_path: Path) -> None:
    one = Checkpointer(tmp_path / "state", {"seed": 3})
    one.save({"cursor": {"phase": 1}}, {"paths": np.arange(4)})
    values, arrays = one.load()
    assert values == {"seed": 3, "cursor": {"phase": 1}}
    assert arrays["paths"].tolist() == [0, 1, 2, 3]


def test_a_missing_checkpoint_and_another_identity_are_errors(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="there is no checkpoint"):
        Checkpointer(tmp_path / "state", {}).load()
    Checkpointer(tmp_path / "state", {"seed": 3, "data": [1]}).save({}, {})
    with pytest.raises(RunError, match="written with a different seed and data"):
        Checkpointer(tmp_path / "state", {"seed": 4, "data": [2]}).load()


def test_a_checkpoint_is_due_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Checkpointer(tmp_path / "state", {})
    assert not one.due()
    monkeypatch.setattr(checkpointing, "CHECKPOINT_SECONDS", -1.0)
    assert one.due()
