"""What a frame costs on a device, as far as that can be counted without one: operations, sizes of staging memory, and compiled kernels."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.compiler import compile as compile_kernel
from triton.runtime.jit import create_function_from_signature

from model_service.masks.frames import triton_logits
from model_service.masks.frames.encoding import encode
from model_service.masks.frames.frame import Frame, decode
from model_service.masks.frames.header import FREE
from model_service.masks.frames.logits import Staging, mask_logits, warm_up

V = 4096
HOPPER = GPUTarget("cuda", 90, 32)


class Counted(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch annotates no metaclass
    """Operations of torch by name, and the sizes of what they made anew."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []
        self.made: list[int] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.overloadpacket.__name__)
        if self.names[-1] == "empty":
            self.made.append(int(np.prod(args[0])))
        return func(*args, **(kwargs or {}))


def frame(*masks: Sequence[int]) -> Frame:
    """For logits whose masks allow these tokens."""
    bits = np.zeros((len(masks), V), dtype=np.uint8)
    for row, tokens in zip(bits, masks, strict=True):
        row[list(tokens)] = 1
    return decode(encode(np.packbits(bits, axis=1, bitorder="little").view(np.int32), V))


def masked(made: Frame, staging: Staging) -> Counted:
    counted = Counted()
    with counted:
        mask_logits(made.header, made.words, torch.zeros(made.header.logits, V), staging)
    return counted


def test_lists_are_built_only_where_there_are_some() -> None:
    forced, listed, rows = frame([5], range(V)), frame([5, 6], [7]), frame(range(0, V, 2), [7])
    names = {made: masked(made, Staging(2)).names for made in (forced, listed, rows)}
    assert {"searchsorted", "index_add_"} <= set(names[listed])
    assert not {"searchsorted", "index_add_"} & {*names[forced], *names[rows]}
    assert len(names[forced]) + 8 <= len(names[listed])


def test_every_frame_of_an_engine_gets_memory_of_one_size() -> None:
    staging = Staging(most_rows=64)
    sizes = {masked(made, staging).made[0] for made in (frame([5]), frame([5, 6], [7]), frame(*(range(k, V, 2) for k in range(64))))}
    assert len(sizes) == 1


def test_the_largest_frame_fits_that_memory() -> None:
    chance = np.random.default_rng(1)
    rows = chance.integers(-(2**31), 2**31, size=(64, V // 32), dtype=np.int64).astype(np.int32)
    whole = decode(encode(rows, V))
    assert masked(whole, Staging(64)).made[0] == len(whole.words)


def test_warming_up_takes_every_way_that_a_frame_takes() -> None:
    made = frame([5], [5, 6], range(2, V), range(0, V, 2))
    assert (made.header.allowed, made.header.forbidden, made.header.rows) == (1, 1, 1)
    with Counted() as counted:
        warm_up(torch.zeros(1, V), Staging(64))
    assert set(masked(made, Staging(64)).names) <= set(counted.names)


@pytest.mark.parametrize("vocab_size", [49155, 128256, 151936, 262144])
def test_one_kernel_serves_padded_and_unpadded_logits_of_any_vocabulary(vocab_size: int) -> None:
    padded = torch.zeros(2, -(-vocab_size // 64) * 64)[:, :vocab_size]
    assert specialized(padded) == specialized(torch.zeros(1, 64))


def specialized(logits: torch.Tensor) -> list[Any]:
    """By what Triton tells compiled kernels apart."""
    kernel = triton_logits._kernel
    of = create_function_from_signature(inspect.signature(kernel.fn), kernel.params, make_backend(HOPPER))
    table = torch.zeros(3, -(-logits.shape[1] // 32), dtype=torch.int32)
    index = torch.zeros(len(logits), dtype=torch.int32)
    strides = logits.stride(0), table.stride(0)
    _, found, _ = of(logits, strides[0], index, table, strides[1], logits.shape[1], FREE=FREE, BLOCK=4096)
    return list(found)


@pytest.mark.parametrize("logits", ["bf16", "fp32"])
def test_the_kernel_compiles_for_a_gpu(logits: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")  # or Triton warns that its default will change
    pointers = {"logits": f"*{logits}", "index": "*i32", "table": "*i32"}
    numbers = dict.fromkeys(("logits_stride", "table_stride", "vocab_size"), "i32")
    signature = {**pointers, **numbers, "FREE": "constexpr", "BLOCK": "constexpr"}
    ordered = {name: signature[name] for name in inspect.signature(triton_logits._kernel.fn).parameters}
    source = ASTSource(triton_logits._kernel, ordered, {"FREE": FREE, "BLOCK": 4096})
    assert "st.global" in compile_kernel(source, target=HOPPER).asm["ptx"]
