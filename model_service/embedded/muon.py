"""Muon (Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks") in float32.

`torch.optim.Muon` orthogonalizes in bfloat16, one matrix at a time, which takes half of a training step on CPUs that cannot
multiply bfloat16. Here matrices of one shape go through the iteration together, in the precision that every CPU has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor, nn

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5
ADAMW_RMS = 0.2  # update size that lets AdamW's learning rates be used (Liu et al. 2025, "Muon is Scalable for LLM Training", 2.2)


def orthogonalized(stack: Tensor) -> Tensor:
    """The nearest semi-orthogonal matrix of each, roughly (singular values in about 0.7 to 1.2); `[n, rows, columns]`."""
    a, b, c = COEFFICIENTS
    wide = stack.size(1) <= stack.size(2)
    x = stack if wide else stack.mT
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    result: Tensor = x if wide else x.mT
    return result


class Muon(torch.optim.Optimizer):
    """For matrices only."""

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float, momentum: float = 0.95, weight_decay: float = 0.01) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # without a closure
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[nn.Parameter]] = defaultdict(list)
            for parameter in group["params"]:
                by_shape[parameter.shape].append(parameter)
            for shape, parameters in by_shape.items():
                updates = orthogonalized(torch.stack([self._direction(p, group["momentum"]) for p in parameters]))
                scale = group["lr"] * ADAMW_RMS * max(shape) ** 0.5
                for parameter, update in zip(parameters, updates, strict=True):
                    parameter.mul_(1 - group["lr"] * group["weight_decay"]).add_(update, alpha=-scale)

    def _direction(self, parameter: nn.Parameter, momentum: float) -> Tensor:
        """Nesterov's momentum."""
        assert parameter.grad is not None
        average = self.state[parameter].setdefault("average", torch.zeros_like(parameter))
        average.lerp_(parameter.grad, 1 - momentum)
        return parameter.grad.lerp(average, momentum)
