"""A model by torch alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM


class TorchModel:
    def __init__(self, folder: Path) -> None:
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self._known: dict[tuple[int, ...], NDArray[np.float32]] = {}

    @torch.inference_mode()
    def rows(self, text: Sequence[int], last: int) -> NDArray[np.float32]:
        """Log-probabilities, float32 `[last, V]`, after each of the last tokens."""
        logits: torch.Tensor = self._model(torch.tensor([list(text)])).logits[0, -last:]
        return np.asarray(logits.log_softmax(-1).numpy(), dtype=np.float32)

    def logits(self, text: Sequence[int]) -> NDArray[np.float32]:
        """Of the next token, but for a constant; once for each text."""
        key = tuple(text)
        if key not in self._known:
            self._known[key] = self.rows(text, 1)[0]
        return self._known[key]

    def greedy(self, text: Sequence[int], length: int) -> tuple[int, ...]:
        said: tuple[int, ...] = ()
        while len(said) < length:
            said = (*said, int(self.logits((*text, *said)).argmax()))
        return said
