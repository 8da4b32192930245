"""Torch's Adam without torch's compiler.

Every method of a torch optimizer first imports `torch._dynamo`, which takes two seconds, to exclude itself from
compilation. Nothing here is compiled by torch.
"""

from __future__ import annotations

from inspect import unwrap
from typing import Any

import torch
from torch.optim import Optimizer

_step: Any = unwrap(torch.optim.Adam.step)


class Adam(torch.optim.Adam):
    """The same numbers as `torch.optim.Adam`, from the functions that it wraps."""

    add_param_group = unwrap(Optimizer.add_param_group)
    zero_grad = unwrap(Optimizer.zero_grad)
    state_dict = unwrap(Optimizer.state_dict)
    load_state_dict = unwrap(Optimizer.load_state_dict)

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Take a step."""
        _step(self)
