"""Attention of the last tokens of each request on all before them, in the ways that torch has for it: none is the fastest everywhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch.nn import functional
from torch.nn.attention.bias import causal_lower_right

from load_tests.errors import BenchFailed
from load_tests.gpu.device import Device

Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""Of queries [b, m, heads, d], keys and values [b, kv_heads, places, d], the last m of which are the queries' own: [b, m, heads, d]."""
MOST_WRONG = 2e-2
"""Of the largest value; numbers of 16 bits have eight of them."""


def fastest(device: Device, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> tuple[str, Attend]:
    """By name; of those that run on the device, and are right.

    Raises:
        BenchFailed: there is none.
    """
    expected = by_products(queries.float(), keys.float(), values.float())
    works = {name: partial(way, queries, keys, values) for name, way in WAYS.items()}
    right = [name for name, work in works.items() if _is_right(device, work, expected)]
    if not right:
        raise BenchFailed("no attention of torch's is right on this device")
    name = min(right, key=lambda name: device.seconds(device.captured(works[name])))
    return name, WAYS[name]


def _is_right(device: Device, work: Callable[[], torch.Tensor], expected: torch.Tensor) -> bool:
    try:
        found = device.rehearsed(work)
    except RuntimeError:  # torch has none of this kind for the device, or it waits, or has no room
        return False
    return bool((found.float() - expected).abs().max() < MOST_WRONG * expected.abs().max())


def by_products(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Two products of matrices and a softmax; the queries that share keys are rows of one matrix, so that keys are read once."""
    packed = _packed(queries, keys.shape[1])
    scores = packed @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])
    scores = scores.masked_fill_(~_seen(queries, keys), -torch.inf)
    return _unpacked(scores.softmax(-1, dtype=torch.float32).to(values.dtype) @ values, queries)


def by_torch(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Torch's own, with the same rows."""
    packed = _packed(queries, keys.shape[1])
    return _unpacked(functional.scaled_dot_product_attention(packed, keys, values, attn_mask=_seen(queries, keys)), queries)


def by_flash(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Torch's own, which knows of groups and of masks that are not there as a matrix."""
    m, places = queries.shape[1], keys.shape[2]
    mask = None if m == 1 else causal_lower_right(m, places)
    found: torch.Tensor = functional.scaled_dot_product_attention(queries.transpose(1, 2), keys, values, attn_mask=mask, enable_gqa=True)
    return found.transpose(1, 2)


WAYS: Mapping[str, Attend] = {"products": by_products, "torch": by_torch, "flash": by_flash}


def _packed(queries: torch.Tensor, kv_heads: int) -> torch.Tensor:
    """[b, kv_heads, group x m, d], in each group the tokens in their order."""
    b, m, heads, d = queries.shape
    return queries.view(b, m, kv_heads, heads // kv_heads, d).permute(0, 2, 3, 1, 4).reshape(b, kv_heads, -1, d)


def _unpacked(found: torch.Tensor, queries: torch.Tensor) -> torch.Tensor:
    b, m, heads, d = queries.shape
    kv_heads = found.shape[1]
    return found.view(b, kv_heads, heads // kv_heads, m, d).permute(0, 3, 1, 2, 4).reshape(b, m, heads, d)


def _seen(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """bool [group x m, places]: a token sees those up to its own."""
    m, places = queries.shape[1], keys.shape[2]
    own = torch.arange(places - m, places, device=keys.device).repeat(queries.shape[2] // keys.shape[1])
    return torch.arange(places, device=keys.device) <= own.unsqueeze(1)
