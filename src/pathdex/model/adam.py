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
    state_dict = unwrap(Optimizer.state_dict)
    load_state_dict = unwrap(Optimizer.load_state_dict)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients."""
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Take a step."""
        if not all(self._fused_step(group) for group in self.param_groups):
            _step(self)

    def _fused_step(self, group: dict[str, Any]) -> bool:
        """Call torch's operator without its checks of devices and types, which take as long; False if that is not safe.

        The first step is torch's, which makes the states.
        """
        given = [one for one in group["params"] if one.grad is not None]
        states = [self.state[one] for one in given]
        usual = group["fused"] and len(self.param_groups) == 1 and given and given[0].device.type == "cpu"
        if not usual or not all(states):
            return False
        first, second, steps = ([one[name] for one in states] for name in ("exp_avg", "exp_avg_sq", "step"))
        torch._foreach_add_(steps, 1)
        torch._fused_adam_(
            given,
            [one.grad for one in given],
            first,
            second,
            [],
            steps,
            lr=group["lr"],
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=False,
            maximize=False,
        )
        return True
