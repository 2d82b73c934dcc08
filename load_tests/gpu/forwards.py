"""What a forward of m tokens for each of b requests takes, G(b, m), against that of one token; and with which graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch

from load_tests.gpu.attention import fastest
from load_tests.gpu.device import Device
from load_tests.gpu.model import Forward, Weights
from load_tests.gpu.plan import Clock, Plan, Row

FORWARDS, GRAPHS = "forwards", "graphs"
FULL, PIECEWISE, EAGER = "full", "piecewise", "eager"
_SPARE = 1.3
"""Of the memory that tensors of a forward are known to need."""


def forwards(plan: Plan, device: Device, clock: Clock) -> Iterator[Row]:
    """A row for each number of requests and each segment, as one graph."""
    yield from _measured(plan, device, clock, FORWARDS, (plan.requests, plan.segments), (FULL,))


def graphs(plan: Plan, device: Device, clock: Clock) -> Iterator[Row]:
    """The same forwards as one graph, as graphs between attentions that are not captured, and without graphs."""
    yield from _measured(plan, device, clock, GRAPHS, (plan.graph_requests, plan.graph_segments), (FULL, PIECEWISE, EAGER))


def _measured(
    plan: Plan, device: Device, clock: Clock, part: str, sizes: tuple[Sequence[int], Sequence[int]], ways: Sequence[str]
) -> Iterator[Row]:
    if not device.has_room(plan.shape.size_bytes * _SPARE):
        yield {"part": part, "skipped": f"no room for {plan.shape.size_bytes / 1e9:.0f} GB of weights"}
        return
    weights = Weights(plan.shape, device.torch_device)
    for requests in sizes[0]:
        for segment in sizes[1]:
            row = {"part": part, "requests": requests, "segment": segment, "context": plan.context}
            needed = plan.shape.cache_bytes(requests, plan.context + segment) + 12 * requests * segment * plan.shape.inner
            if clock.is_over or not device.has_room(needed * _SPARE):
                yield {**row, "skipped": "no time was left" if clock.is_over else f"no room for {needed / 1e9:.0f} GB"}
                continue
            with torch.inference_mode():
                try:
                    yield from ({**row, **found} for found in _of(weights, device, (requests, segment, plan.context), ways))
                except torch.OutOfMemoryError:
                    yield {**row, "skipped": "no room for what lies between"}


def _of(weights: Weights, device: Device, sizes: tuple[int, int, int], ways: Sequence[str]) -> Iterator[Row]:
    forward = Forward(weights, device, *sizes)
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
