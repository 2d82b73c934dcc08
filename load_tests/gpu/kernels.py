"""The kernel that masks logits, against xgrammar's and torch's: what each masks, and how long it takes for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np
import torch

from load_tests.gpu.device import Device
from load_tests.gpu.plan import Plan, Row
from model_service.masks.frames.logits import mask_by_torch

PART = "kernel"
TYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
DIFFERENT, ONE = "all different", "one for all"
PADDED_TO = 64
"""Logits of a vocabulary that is no multiple of it are rows of a wider matrix, as vLLM's are."""
SEED = 20
OFTEN = 10
Masking = Callable[[torch.Tensor], object]


def measured(plan: Plan, device: Device) -> Iterator[Row]:
    """A row for each vocabulary, number of rows, type, and kind of masks. `wrong`: logits of ours that are not as torch's own masking of a
    matrix of truth values leaves them."""
    for vocabulary in plan.vocabularies:
        for count in plan.logits:
            for masks in (DIFFERENT, ONE):
                bits = _bits(count if masks == DIFFERENT else 1, vocabulary)
                for kind, dtype in TYPES.items():
                    row = {"part": PART, "vocabulary": vocabulary, "rows": count, "type": kind, "masks": masks}
                    yield {**row, **_compared(device, bits, count, vocabulary, dtype)}


def padded(count: int, vocabulary: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Random logits [count, vocabulary]."""
    width = -(-vocabulary // PADDED_TO) * PADDED_TO
    generator = torch.Generator(device).manual_seed(SEED)
    return torch.randn(count, width, generator=generator, device=device, dtype=dtype)[:, :vocabulary]


def forbidden(bits: torch.Tensor, vocabulary: int) -> torch.Tensor:
    """bool [n, V] of bitmasks int32 [n, ceil(V/32)]."""
    places = torch.arange(32, dtype=torch.int32, device=bits.device)
    allowed = (bits.unsqueeze(-1) >> places) & 1
    return (allowed == 0).view(len(bits), -1)[:, :vocabulary]


def _bits(count: int, vocabulary: int) -> torch.Tensor:
    words = np.random.default_rng(SEED).integers(-(2**31), 2**31, size=(count, -(-vocabulary // 32)), dtype=np.int64)
    return torch.from_numpy(words.astype(np.int32))


def _compared(device: Device, bits: torch.Tensor, count: int, vocabulary: int, dtype: torch.dtype) -> Row:
    there = bits.to(device.torch_device)
    logits = padded(count, vocabulary, dtype, device.torch_device)
    unmasked = logits.clone()
    ways = _ways(device, there, count, vocabulary)
    ways["ours"](logits)
    expected = unmasked.masked_fill_(forbidden(there, vocabulary).expand(count, -1), -torch.inf)
    wrong = int((logits != expected).sum())
    del unmasked, expected
    return {"wrong": wrong, **{f"{name}_us": _microseconds(device, partial(way, logits)) for name, way in ways.items()}}


def _ways(device: Device, bits: torch.Tensor, count: int, vocabulary: int) -> Mapping[str, Masking]:
    """By name; xgrammar's is left out where it is not installed."""
    ends = torch.tensor([[-1], [0]], dtype=torch.int32, device=bits.device).expand(2, bits.shape[1])
    table = torch.cat([bits, ends])
    index = torch.arange(count, dtype=torch.int32, device=bits.device) % len(bits)
    torchs: Masking = partial(_masked, mask_by_torch, index, table)
    ways = {"ours": torchs, "torch": torchs}
    if device.is_gpu or os.environ.get("TRITON_INTERPRET") == "1":
        from model_service.masks.frames.triton_logits import mask_by_table

        ways["ours"] = partial(_masked, mask_by_table, index, table)
    try:
        import xgrammar
    except ImportError:
        return ways
    whole = bits.expand(count, -1).contiguous()
    ways["xgrammar"] = lambda logits: xgrammar.apply_token_bitmask_inplace(logits, whole, vocab_size=vocabulary)
    return ways


def _often(work: Callable[[], object]) -> None:
    for _ in range(OFTEN):
        work()


def _masked(mask: Callable[..., object], index: torch.Tensor, table: torch.Tensor, logits: torch.Tensor) -> None:
    mask(logits, index, table)


def _microseconds(device: Device, work: Callable[[], object]) -> float | None:
    """Of a masking without its launches; None: it cannot be done. A graph of one would be little but the start of a graph."""
    try:
        return device.seconds(device.captured(partial(_often, work))) / OFTEN * 1e6
    except (RuntimeError, ValueError, AttributeError):
        return None
