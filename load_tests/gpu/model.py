"""A model of Llama's shape with random weights (Touvron et al., "LLaMA: Open and Efficient Foundation Language Models", section 2.2, with
the groups of queries of Ainslie et al., "GQA", section 2.2): what it says means nothing, what it costs is what the trained one costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch.nn import functional

from load_tests.gpu.attention import Attend
from load_tests.gpu.device import Device
from load_tests.gpu.plan import Shape

_SCALE = 0.02
_THETA = 500000.0
TYPE = torch.bfloat16


class Weights:
    """Of all layers, on the device."""

    def __init__(self, shape: Shape, device: torch.device) -> None:
        self.shape = shape
        generator = torch.Generator(device).manual_seed(8)
        width, heads = shape.hidden, shape.heads * shape.head_size

        def made(*size: int) -> torch.Tensor:
            return torch.empty(size, dtype=TYPE, device=device).normal_(0, _SCALE, generator=generator)

        self.embedding = made(shape.vocabulary, width)
        self.logits = made(shape.vocabulary, width)
        self.projected = [made(heads + 2 * shape.kv_heads * shape.head_size, width) for _ in range(shape.layers)]
        self.joined = [made(width, heads) for _ in range(shape.layers)]
        self.widened = [made(2 * shape.inner, width) for _ in range(shape.layers)]
        self.narrowed = [made(width, shape.inner) for _ in range(shape.layers)]
        self.norm = torch.ones(width, dtype=TYPE, device=device)


class Forward:
    """Of so many tokens of each request behind `context` others, whose keys and values are there.

    It stands in pieces, as vLLM's compiled model does: what lies between two attentions, and the attentions. All of them work on the same
    tensors, and may be captured together or one by one.
    """

    def __init__(self, weights: Weights, device: Device, requests: int, segment: int, context: int) -> None:
        self._weights, self._shape, self._device = weights, weights.shape, device
        self._requests, self._segment, self._context = requests, segment, context
        shape, on = self._shape, device.torch_device
        places = context + segment
        sizes = (requests, shape.kv_heads, places, shape.head_size)
        self.keys = [torch.empty(sizes, dtype=TYPE, device=on).normal_() for _ in range(shape.layers)]
        self.values = [torch.empty(sizes, dtype=TYPE, device=on).normal_() for _ in range(shape.layers)]
        self.tokens = torch.randint(shape.vocabulary, (requests * segment,), device=on)
        self.hidden = torch.zeros(requests * segment, shape.hidden, dtype=TYPE, device=on)
        self.queries = torch.empty(requests, segment, shape.heads, shape.head_size, dtype=TYPE, device=on).normal_()
        self.attended = torch.zeros_like(self.queries)
        self.logits = torch.zeros(requests, shape.vocabulary, dtype=TYPE, device=on)
        self._turns = _turns(shape, context, segment, on)
        self.attend: Attend | None = None

    def run(self) -> None:
        """All pieces, one after another."""
        self.run_with([partial(self.piece, number) for number in range(self._shape.layers + 1)])

    def run_with(self, pieces: Sequence[Callable[[], object]]) -> None:
        """With pieces that were captured, say."""
        for number, piece in enumerate(pieces):
            piece()
            if number < self._shape.layers:
                assert self.attend is not None
                self.attended.copy_(self.attend(self.queries, self.keys[number], self.values[number]))

    def piece(self, number: int) -> None:
        """What comes before the attention of a layer, and behind that of the layer ahead; the last one makes logits."""
        if number == 0:
            self.hidden.copy_(functional.embedding(self.tokens, self._weights.embedding))
        else:
            self._after(number - 1)
        if number < self._shape.layers:
            self._before(number)
        else:
            last = self.hidden.view(self._requests, self._segment, -1)[:, -1]
            self.logits.copy_(functional.linear(self._normed(last), self._weights.logits))

    def _before(self, layer: int) -> None:
        shape, grouped = self._shape, (self._requests, self._segment, -1, self._shape.head_size)
        heads = [shape.heads * shape.head_size, shape.kv_heads * shape.head_size, shape.kv_heads * shape.head_size]
        queries, keys, values = torch.split(functional.linear(self._normed(self.hidden), self._weights.projected[layer]), heads, dim=-1)
        self.queries.copy_(_turned(queries.view(grouped), *self._turns))
        self.keys[layer][:, :, self._context :] = _turned(keys.view(grouped), *self._turns).transpose(1, 2)
        self.values[layer][:, :, self._context :] = values.view(grouped).transpose(1, 2)

    def _after(self, layer: int) -> None:
        weights = self._weights
        self.hidden += functional.linear(self.attended.view(len(self.hidden), -1), weights.joined[layer])
        gates, widened = functional.linear(self._normed(self.hidden), weights.widened[layer]).chunk(2, dim=-1)
        self.hidden += functional.linear(functional.silu(gates) * widened, weights.narrowed[layer])

    def _normed(self, hidden: torch.Tensor) -> torch.Tensor:
        return functional.rms_norm(hidden, (self._shape.hidden,), self._weights.norm, 1e-5)


def _turns(shape: Shape, context: int, segment: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines [m, 1, d / 2] of the places (Su et al., "RoFormer", section 3.2)."""
    rates = _THETA ** -(torch.arange(0, shape.head_size, 2, dtype=torch.float32, device=device) / shape.head_size)
    angles = torch.arange(context, context + segment, dtype=torch.float32, device=device).unsqueeze(1) * rates
    return angles.cos().to(TYPE).unsqueeze(1), angles.sin().to(TYPE).unsqueeze(1)


def _turned(heads: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    first, second = heads.chunk(2, dim=-1)
    return torch.cat((first * cosines - second * sines, second * cosines + first * sines), dim=-1)
