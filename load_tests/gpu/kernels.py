"""The kernel that masks logits, against xgrammar's and torch's: what each masks, and how long it takes for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from load_tests.errors import BenchFailed
from load_tests.gpu.device import Device
from load_tests.gpu.plan import Plan
from load_tests.gpu.rows import Row, said, tried
from model_service.masks.frames.logits import mask_by_torch

PART = "kernel"
TYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
OURS = "ours"
DIFFERENT, ONE = "all different", "one for all"
PADDED_TO = 64
"""Logits of a vocabulary that is no multiple of it are rows of a wider matrix, as vLLM's are."""
SEED = 20
OFTEN = 10
Masking = Callable[[torch.Tensor], object]


def measured(plan: Plan, device: Device) -> Iterator[Row]:
    """A row for each vocabulary, number of rows, type, and kind of masks. `wrong`, `xgrammar_wrong`: logits that are not as torch's own
    masking of a matrix of truth values leaves them. `…_not`: why a way was not timed."""
    for vocabulary, count, masks, kind in product(plan.vocabularies, plan.logits, (DIFFERENT, ONE), TYPES):
        row = {"part": PART, "vocabulary": vocabulary, "rows": count, "type": kind, "masks": masks}
        bits = _bits(count if masks == DIFFERENT else 1, vocabulary)
        yield from tried(row, partial(_compared, device, bits, count, vocabulary, TYPES[kind], plan.xgrammar_kernel))


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


def _compared(
    device: Device, bits: torch.Tensor, count: int, vocabulary: int, dtype: torch.dtype, xgrammar_kernel: Path | None
) -> Iterator[Row]:
    there, random = bits.to(device.torch_device), partial(padded, count, vocabulary, dtype, device.torch_device)
    expected = random().masked_fill_(forbidden(there, vocabulary).expand(count, -1), -torch.inf)
    row: dict[str, Any] = {}
    for name, way in _ways(device, there, count, vocabulary, xgrammar_kernel).items():
        logits = random()
        try:
            device.rehearsed(partial(way, logits))
        except (RuntimeError, ValueError, AttributeError, AssertionError) as error:
            row[f"{name}_not"] = said(error)
            continue
        row["wrong" if name == OURS else f"{name}_wrong"] = int((logits != expected).sum())
        row[f"{name}_us"] = _microseconds(device, partial(way, logits))
    yield row


def _ways(device: Device, bits: torch.Tensor, count: int, vocabulary: int, xgrammar_kernel: Path | None) -> Mapping[str, Masking]:
    """By name; xgrammar's is left out where there is none."""
    ends = torch.tensor([[-1], [0]], dtype=torch.int32, device=bits.device).expand(2, bits.shape[1])
    table = torch.cat([bits, ends])
    index = torch.arange(count, dtype=torch.int32, device=bits.device) % len(bits)
    torchs: Masking = partial(_masked, mask_by_torch, index, table)
    ways = {OURS: torchs, "torch": torchs}
    if device.is_gpu or os.environ.get("TRITON_INTERPRET") == "1":
        from model_service.masks.frames.triton_logits import mask_by_table

        ways[OURS] = partial(_masked, mask_by_table, index, table)
    if xgrammars := _xgrammars(xgrammar_kernel):
        whole = bits.expand(count, -1).contiguous()
        ways["xgrammar"] = lambda logits: xgrammars(logits, whole, vocab_size=vocabulary)
    return ways


def _xgrammars(kernel: Path | None) -> Callable[..., None] | None:
    """What is installed, or the kernel that it takes for GPUs, which asks for nothing of it but its file."""
    try:
        import xgrammar
    except ImportError:
        return None if kernel is None else vars(_module(kernel))["apply_token_bitmask_inplace_triton"]
    return xgrammar.apply_token_bitmask_inplace


def _module(path: Path) -> ModuleType:
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise BenchFailed(f"{path} is no Python file")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _often(work: Callable[[], object]) -> None:
    for _ in range(OFTEN):
        work()


def _masked(mask: Callable[..., object], index: torch.Tensor, table: torch.Tensor, logits: torch.Tensor) -> None:
    mask(logits, index, table)


def _microseconds(device: Device, work: Callable[[], object]) -> float:
    """Of a masking without its launches. A graph of one would be little but the start of a graph."""
    return device.seconds(device.captured(partial(_often, work))) / OFTEN * 1e6
