"""What a model says behind one context and many continuations of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import DynamicCache, LlamaForCausalLM

Tokens = tuple[int, ...]
Floats = npt.NDArray[np.float64]


class TokenTree:
    """Probabilities of the next token, float64 [V] over the whole vocabulary, behind a context and each sequence that was read. Sequences
    that begin alike share what they begin with: each node is computed once, and sees the context and its own ancestors only."""

    def __init__(self, model: LlamaForCausalLM, context: Sequence[int]) -> None:
        """`context`: at least one token."""
        self._model = model
        self._length = len(context)
        self._cache = DynamicCache()
        self._ancestors: list[list[int]] = []
        """Of each node, its own place included."""
        self._places: dict[Tokens, int] = {}
        everything = np.tril(np.ones((self._length, self._length), bool))
        self._next: dict[Tokens, Floats] = {(): self._forward(context, range(self._length), everything)[-1]}

    def __getitem__(self, sequence: Tokens) -> Floats:
        """Raises KeyError: it has not been read."""
        return self._next[sequence]

    def __len__(self) -> int:
        """How many sequences have been read, the empty one among them."""
        return len(self._next)

    def read(self, sequences: Iterable[Tokens]) -> None:
        """Compute what is not known yet of these sequences and all they begin with, in one go."""
        whole = {sequence[:length] for sequence in sequences for length in range(1, len(sequence) + 1)}
        new = sorted(whole - self._next.keys(), key=lambda sequence: (len(sequence), sequence))
        if not new:
            return
        for sequence in new:
            above = self._ancestors[self._places[sequence[:-1]]] if len(sequence) > 1 else []
            self._places[sequence] = len(self._ancestors)
            self._ancestors.append([*above, len(self._ancestors)])
        seen = np.zeros((len(new), self._length + len(self._ancestors)), bool)
        seen[:, : self._length] = True
        for row, sequence in zip(seen, new, strict=True):
            row[[self._length + place for place in self._ancestors[self._places[sequence]]]] = True
        positions = [self._length + len(sequence) - 1 for sequence in new]
        found = self._forward([sequence[-1] for sequence in new], positions, seen)
        self._next.update(zip(new, found, strict=True))

    def _forward(self, tokens: Sequence[int], positions: Iterable[int], seen: npt.NDArray[np.bool_]) -> Floats:
        """`seen` bool [tokens, cached and tokens]: what each of them attends to."""
        with torch.inference_mode():
            found: Any = self._model(
                input_ids=torch.tensor([[*tokens]]),
                position_ids=torch.tensor([[*positions]]),
                attention_mask=torch.from_numpy(seen)[None, None],
                past_key_values=self._cache,
                use_cache=True,
            )
            probabilities: Floats = torch.softmax(found.logits[0].double(), -1).numpy()
        return probabilities
