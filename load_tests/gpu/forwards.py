"""What a forward of m tokens for each of b requests takes, G(b, m), against that of one token; and with which graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product

import torch

from load_tests.gpu.attention import fastest
from load_tests.gpu.device import Device
from load_tests.gpu.model import Forward, Weights
from load_tests.gpu.plan import Plan
from load_tests.gpu.rows import Row, tried

FORWARDS, GRAPHS = "forwards", "graphs"
FULL, PIECEWISE, EAGER = "full", "piecewise", "eager"
_SPARE = 1.3
"""Of the memory that tensors of a forward are known to need."""


def forwards(plan: Plan, device: Device) -> Iterator[Row]:
    """A row for each number of requests and each segment, as one graph."""
    yield from _measured(plan, device, FORWARDS, (plan.requests, plan.segments), (FULL,))


def graphs(plan: Plan, device: Device) -> Iterator[Row]:
    """The same forwards as one graph, as graphs between attentions that are not captured, and without graphs."""
    yield from _measured(plan, device, GRAPHS, (plan.graph_requests, plan.graph_segments), (FULL, PIECEWISE, EAGER))


def _measured(plan: Plan, device: Device, part: str, sizes: tuple[Sequence[int], Sequence[int]], ways: Sequence[str]) -> Iterator[Row]:
    if not device.has_room(plan.shape.size_bytes * _SPARE):
        yield {"part": part, "skipped": f"no room for {plan.shape.size_bytes / 1e9:.0f} GB of weights"}
        return
    weights = Weights(plan.shape, device.torch_device)
    for requests, segment in product(*sizes):
        row = {"part": part, "requests": requests, "segment": segment, "context": plan.context}
        yield from tried(row, partial(_of, weights, device, (requests, segment, plan.context), ways))


def _of(weights: Weights, device: Device, sizes: tuple[int, int, int], ways: Sequence[str]) -> Iterator[Row]:
    requests, segment, context = sizes
    needed = weights.shape.cache_bytes(requests, context + segment) + 12 * requests * segment * weights.shape.inner
    if not device.has_room(needed * _SPARE):
        yield {"skipped": f"no room for {needed / 1e9:.0f} GB"}
        return
    with torch.inference_mode():
        yield from _timed(Forward(weights, device, *sizes), device, ways)


def _timed(forward: Forward, device: Device, ways: Sequence[str]) -> Iterator[Row]:
    name, forward.attend = fastest(device, forward.queries, forward.keys[0], forward.values[0])
    for way in ways:
        seconds = device.seconds(_run(forward, device, way))
        yield {"graph": way, "attention": name, "ms": seconds * 1000, "finite": bool(forward.logits.isfinite().all())}


def _run(forward: Forward, device: Device, way: str) -> Callable[[], object]:
    if way == FULL:
        return device.captured(forward.run)
    if way == EAGER:
        return forward.run
    pieces = [device.captured(partial(forward.piece, number)) for number in range(len(forward.keys) + 1)]
    return partial(forward.run_with, pieces)
