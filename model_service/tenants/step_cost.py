"""What a step of an engine takes, learnt from those that it has computed."""

from __future__ import annotations

import numpy as np

MEMORY = 0.998
"""What a step still counts when one more has come: some 500 count, which is seconds."""
FIT_EVERY = 64
"""Steps; before so many nothing is known."""
OUTLIER = 4.0
"""No step counts for more than so many times what it was expected to take: the process was not on a processor meanwhile."""
RIDGE = 1e-5
"""Where all steps were alike, each figure has a part of what they took, so that steps are bounded, differ, and tell; it is nothing beside
what steps do tell."""


class StepCost:
    """`base` + `row` times rows + `token` times the tokens that are more than one a row + `draft` times the drafts among these, in ns,
    fitted by least squares. Made with the most rows and tokens of a step, which only scale."""

    def __init__(self, rows: int, tokens: int) -> None:
        self._scale = np.array([1.0, 1.0 / max(rows, 1), 1.0 / max(tokens, 1), 1.0 / max(rows, 1)])
        self._squares = np.zeros((4, 4))
        self._products = np.zeros(4)
        self._steps = 0
        self.base = self.row = self.token = self.draft = 0.0

    @property
    def is_known(self) -> bool:
        return self._steps >= FIT_EVERY

    def of(self, rows: int, tokens: int, drafts: int = 0) -> float:
        return self.base + self.row * rows + self.token * tokens + self.draft * drafts

    def add(self, rows: int, tokens: int, ns: int, drafts: int = 0) -> None:
        """A step has taken that long."""
        took = min(float(ns), OUTLIER * self.of(rows, tokens, drafts)) if self.is_known else float(ns)
        step = self._scale * (1.0, rows, tokens, drafts)
        self._squares = MEMORY * self._squares + np.outer(step, step)
        self._products = MEMORY * self._products + took * step
        self._steps += 1
        if self._steps % FIT_EVERY == 0:
            self._fit()

    def _fit(self) -> None:
        ridge = RIDGE * self._squares[0, 0] * np.eye(4)
        found = np.linalg.solve(self._squares + ridge, self._products) * self._scale
        self.base, self.row, self.token, self.draft = (max(float(one), 0.0) for one in found)
