"""CDLH, CDLH-appx and CDSL as plain loops, one text at a time, nothing kept from one step to the next: what the machines must equal.

Written from the paper's algorithms and section 3.2.3, and on purpose not with the code that it judges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np
from numpy.typing import NDArray

Logits = Callable[[Sequence[int]], NDArray[np.float32]]
"""Of the next token after a text, prompt included."""


@dataclass
class Reference:
    """`limit` and `ends` bound the text; `margins` gets, for each decision by likelihood, how near the next best was, with the length of
    the text at the time; calls are counted as the paper counts them, but for those of tokens that a grammar leaves no choice of."""

    target: Logits
    draft: Logits
    prompt: tuple[int, ...]
    reward: Callable[[tuple[int, ...]], float]
    limit: int
    ends: frozenset[int]
    d: int = 3
    k: int = 3
    target_calls: int = 0
    draft_calls: int = 0
    margins: list[tuple[int, float]] = field(default_factory=list)

    def greedy(self) -> tuple[int, ...]:
        return self._roll("target", (), self.limit)

    def cdlh(self, by: str = "target") -> tuple[int, ...]:
        text: tuple[int, ...] = ()
        while not self._done(text):
            text = (*text, self._best(text, self._row(text, self.k), by))
        return text

    def cdlh_appx(self) -> tuple[int, ...]:
        return self.cdlh("draft")

    def cdsl(self, a_t: float, r_t: float, b: int, keep: bool, chance: Random | None = None) -> tuple[int, ...]:
        """`chance` given: rejection by sampling."""
        text: tuple[int, ...] = ()
        while not self._done(text):
            drafts = self._roll("draft", text, self.d)
            self.target_calls += 1
            rows = [self._logits("target", text + drafts[:place]) for place in range(len(drafts) + 1)]
            n = 0
            while n < len(drafts) and self._accepts(text + drafts[:n], rows[n], drafts[n], chance):
                n += 1
            a, r = n / len(drafts), self.reward(text + drafts[:n])
            if a >= a_t and r >= r_t:
                text += drafts[:n]
                continue
            kept = drafts[:n] if keep else ()
            if kept and kept[-1] in self.ends:
                kept = kept[:-1]
            text += kept
            if len(text) == self.limit:
                continue
            led = self._led(text, rows[len(kept)], r_t, b) if a < a_t else ()
            text += led or (self._best(text, self._top(text, rows[len(kept)], self.k), "draft"),)
        return text

    def _led(self, text: tuple[int, ...], row: NDArray[np.float32], r_t: float, b: int) -> tuple[int, ...]:
        """Step 1; empty where it fails."""
        own: tuple[int, ...] = ()
        for place in range(b):
            if self._done(text + own):
                break
            if place:
                row = self._row_of(text + own)
            own = (*own, self._top(text + own, row, 1)[0])
            if self.reward(text + own + self._roll("draft", text + own, self.d)) >= r_t:
                return own
        return ()

    def _best(self, text: tuple[int, ...], candidates: list[int], by: str) -> int:
        rewards = [self.reward((*text, c, *self._roll(by, (*text, c), self.d))) for c in candidates]
        return candidates[rewards.index(max(rewards))]

    def _roll(self, by: str, text: tuple[int, ...], length: int) -> tuple[int, ...]:
        ahead: tuple[int, ...] = ()
        while len(ahead) < length and not self._done(text + ahead):
            row = self._logits(by, text + ahead)
            if np.isfinite(row).sum() > 1:
                self.draft_calls += by == "draft"
                self.target_calls += by == "target"
            ahead = (*ahead, self._top(text + ahead, row, 1)[0])
        return ahead

    def _row_of(self, text: tuple[int, ...]) -> NDArray[np.float32]:
        self.target_calls += 1
        return self._logits("target", text)

    def _row(self, text: tuple[int, ...], k: int) -> list[int]:
        return self._top(text, self._row_of(text), k)

    def _top(self, text: tuple[int, ...], row: NDArray[np.float32], k: int) -> list[int]:
        """The k likeliest tokens that are allowed at all."""
        order = np.argsort(-row, kind="stable")[: k + 1]
        order = order[np.isfinite(row[order])]
        gaps = -np.diff(row[order])
        self.margins.append((len(text), float(gaps.min()) if len(gaps) else math.inf))
        return [int(token) for token in order[:k]]

    def _accepts(self, text: tuple[int, ...], row: NDArray[np.float32], token: int, chance: Random | None) -> bool:
        if chance is None:
            return self._top(text, row, 1) == [token]
        p, q = log_softmax(row)[token], log_softmax(self._logits("draft", text))[token]
        return chance.random() < math.exp(min(0.0, float(p) - float(q)))

    def _logits(self, by: str, text: tuple[int, ...]) -> NDArray[np.float32]:
        return (self.target if by == "target" else self.draft)((*self.prompt, *text))

    def _done(self, text: tuple[int, ...]) -> bool:
        return len(text) >= self.limit or bool(text and text[-1] in self.ends)


def log_softmax(row: NDArray[np.float32]) -> NDArray[np.float64]:
    shifted = row.astype(np.float64) - row.max()
    return np.asarray(shifted - np.log(np.exp(shifted).sum()))
