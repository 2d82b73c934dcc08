"""The model that is timed computes what such a model computes: otherwise its times would be another one's."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch

from load_tests.gpu.attention import WAYS, by_products
from load_tests.gpu.device import Device
from load_tests.gpu.model import Forward, Weights
from load_tests.gpu.plan import SMALL

DEVICE = Device(torch.device("cpu"), 1)
CONTEXT, REQUESTS = 10, 2


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("m", [1, 3])
def test_each_attention_sees_what_came_before_each_token(way: str, m: int) -> None:
    torch.manual_seed(0)
    queries, keys, values = torch.randn(REQUESTS, m, 4, 8), torch.randn(REQUESTS, 2, CONTEXT, 8), torch.randn(REQUESTS, 2, CONTEXT, 8)
    found = WAYS[way](queries, keys, values)
    for b in range(REQUESTS):
        for place in range(m):
            for head in range(4):
                seen = CONTEXT - m + place + 1
                weights = (keys[b, head // 2, :seen] @ queries[b, place, head] / math.sqrt(8)).softmax(-1)
                torch.testing.assert_close(found[b, place, head], weights @ values[b, head // 2, :seen], rtol=1e-4, atol=1e-5)


def test_one_forward_of_a_segment_makes_the_logits_of_one_for_each_token() -> None:
    with torch.inference_mode():
        weights, m = Weights(SMALL.shape, DEVICE.torch_device), 3
        whole = Forward(weights, DEVICE, REQUESTS, m, CONTEXT)
        whole.attend = by_products
        steps = [Forward(weights, DEVICE, REQUESTS, 1, CONTEXT + number) for number in range(m)]
        tokens = whole.tokens.view(REQUESTS, m)
        before = whole
        for number, step in enumerate(steps):
            step.attend, step.tokens = by_products, tokens[:, number].contiguous()
            for layer in range(SMALL.shape.layers):
                step.keys[layer][:, :, :-1] = before.keys[layer][:, :, : CONTEXT + number]
                step.values[layer][:, :, :-1] = before.values[layer][:, :, : CONTEXT + number]
            step.run()
            before = step
        whole.run()
        torch.testing.assert_close(whole.logits, steps[-1].logits, rtol=0.05, atol=0.02)
        assert whole.logits.std() > 0.01


def test_pieces_that_are_run_one_by_one_make_the_same_logits() -> None:
    with torch.inference_mode():
        forward = Forward(Weights(SMALL.shape, DEVICE.torch_device), DEVICE, REQUESTS, 2, CONTEXT)
        forward.attend = by_products
        forward.run()
        expected = forward.logits.clone()
        forward.logits.zero_()
        forward.run_with([partial(forward.piece, number) for number in range(SMALL.shape.layers + 1)])
        assert torch.equal(forward.logits, expected)


def test_a_shape_knows_its_weights() -> None:
    weights = Weights(SMALL.shape, DEVICE.torch_device)
    parts = [weights.embedding, weights.logits, *weights.projected, *weights.joined, *weights.widened, *weights.narrowed]
    assert sum(part.numel() * part.element_size() for part in parts) == SMALL.shape.size_bytes
    forward = Forward(weights, DEVICE, REQUESTS, 2, CONTEXT)
    kept = [*forward.keys, *forward.values]
    assert sum(each.numel() * each.element_size() for each in kept) == SMALL.shape.cache_bytes(REQUESTS, CONTEXT + 2)
