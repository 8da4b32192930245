import subprocess
import sys

import pytest
import torch

from pathdex.model.adam import Adam


def _parameters() -> list[torch.nn.Parameter]:
    generator = torch.Generator().manual_seed(1)
    return [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in [(3, 4), (5,)]]


@pytest.mark.parametrize("fused", [False, True])
def test_steps_equal_torchs(fused: bool) -> None:
    found, expected = _parameters(), _parameters()
    ours, theirs = (
        kind(those, 0.1, weight_decay=0.01, fused=fused)
        for kind, those in ((Adam, found), (torch.optim.Adam, expected))
    )
    for _ in range(3):
        for optimizer, parameters in ((ours, found), (theirs, expected)):
            optimizer.zero_grad()
            torch.stack([(one**3).sum() for one in parameters]).sum().backward()
            optimizer.step()
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)


def test_a_parameter_without_a_gradient_keeps_its_value_and_state() -> None:
    found, expected = _parameters(), _parameters()
    ours, theirs = (kind(those, 0.1, fused=True) for kind, those in ((Adam, found), (torch.optim.Adam, expected)))
    for number in range(4):
        for optimizer, parameters in ((ours, found), (theirs, expected)):
            optimizer.zero_grad()
            for one in parameters[: 1 + number % 2]:
                one.grad = torch.ones_like(one)
            optimizer.step()
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)
    assert ours.state[found[1]]["step"] == 2


def test_a_state_continues() -> None:
    first, second = _parameters(), _parameters()
    one, other = Adam(first, 0.1), Adam(second, 0.1)
    for parameter in first:
        parameter.grad = torch.ones_like(parameter)
    one.step()
    other.load_state_dict(one.state_dict())
    assert torch.equal(other.state[second[0]]["exp_avg"], one.state[first[0]]["exp_avg"])


def test_torchs_compiler_is_not_imported() -> None:
    program = """
import sys, torch
from pathdex.model.adam import Adam
weight = torch.nn.Parameter(torch.ones(2))
optimizer = Adam([weight], 0.1)
weight.sum().backward()
optimizer.step()
optimizer.zero_grad()
optimizer.load_state_dict(optimizer.state_dict())
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
