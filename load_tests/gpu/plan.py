"""What is measured, at which sizes, and for how long at most."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Shape:
    """Of a model: `inner` is the width of its feed-forward layers."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_size: int
    inner: int
    vocabulary: int

    @property
    def size_bytes(self) -> int:
        """Of its weights, two bytes each."""
        attention = self.hidden * self.head_size * (2 * self.heads + 2 * self.kv_heads)
        return 2 * (self.layers * (attention + 3 * self.hidden * self.inner) + 2 * self.vocabulary * self.hidden)

    def cache_bytes(self, requests: int, places: int) -> int:
        """Of keys and values."""
        return 4 * self.layers * requests * places * self.kv_heads * self.head_size


LLAMA_8B = Shape(layers=32, hidden=4096, heads=32, kv_heads=8, head_size=128, inner=14336, vocabulary=128256)
"""Llama 3.1 8B."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`logits`, `frame_logits`: rows of them; `requests`, `segments`, `context`: of forwards, how many requests have a segment of how many
    tokens behind how many; `graph_requests`, `graph_segments`: of the comparison of graphs; `steps`: of frames and of staged writes;
    `xgrammar_kernel`: xgrammar's file with its kernel for Triton, for a machine where xgrammar is not installed."""

    vocabularies: Sequence[int]
    logits: Sequence[int]
    frame_logits: int
    shape: Shape
    requests: Sequence[int]
    segments: Sequence[int]
    context: int
    graph_requests: Sequence[int]
    graph_segments: Sequence[int]
    steps: int
    repeats: int
    xgrammar_kernel: Path | None = None


FULL = Plan(
    vocabularies=(128256, 151936, 262144, 49155),
    logits=(1, 32, 256, 1024),
    frame_logits=256,
    shape=LLAMA_8B,
    requests=(1, 8, 32, 64, 256),
    segments=(1, 2, 4, 8, 16, 32, 64),
    context=1024,
    graph_requests=(1, 8, 64),
    graph_segments=(1, 8),
    steps=200,
    repeats=20,
)
SMALL = Plan(
    vocabularies=(1027, 2048),
    logits=(1, 5),
    frame_logits=12,
    shape=Shape(layers=2, hidden=32, heads=4, kv_heads=2, head_size=8, inner=48, vocabulary=1027),
    requests=(1, 3),
    segments=(1, 2, 4),
    context=24,
    graph_requests=(2,),
    graph_segments=(1, 4),
    steps=4,
    repeats=2,
)
"""To try the script where there is no GPU: its figures say nothing."""


@dataclass
class Clock:
    """`now`: seconds."""

    seconds: float
    now: Callable[[], float] = time.monotonic
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.now()

    @property
    def left(self) -> float:
        return self._began + self.seconds - self.now()

    @property
    def is_over(self) -> bool:
        return self.left <= 0
