"""The index kernel for GPUs: each row of logits is masked by the row of the table that its entry names, and no logits are read."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from model_service.masks.frames.header import FREE

_BLOCK = 4096
"""Logits of one program: 128 words of a mask."""


def mask_by_table(logits: torch.Tensor, index: torch.Tensor, table: torch.Tensor) -> None:
    """Set forbidden logits to minus infinity, in place; nothing waits for the device.

    Args:
        logits: [n, V], of any float type; its rows may be padded.
        index: int32 [n], as in a frame.
        table: int32 [entries, ceil(V/32)], a bitmask of allowed tokens for each entry.
    """
    count, vocab_size = logits.shape
    grid = (count, triton.cdiv(vocab_size, _BLOCK))
    _kernel[grid](logits, logits.stride(0), index, table, table.stride(0), vocab_size, FREE=FREE, BLOCK=_BLOCK)


# One kernel for all: logits have other strides where the vocabulary is padded, and steps must not wait for a compiler.
@triton.jit(do_not_specialize=["logits_stride", "table_stride", "vocab_size"])  # type: ignore[untyped-decorator]
def _kernel(  # type: ignore[no-untyped-def]  # noqa: ANN202  # Triton compiles annotations too, and knows none but its own
    logits,  # noqa: ANN001
    logits_stride,  # noqa: ANN001
    index,  # noqa: ANN001
    table,  # noqa: ANN001
    table_stride,  # noqa: ANN001
    vocab_size,  # noqa: ANN001
    FREE: tl.constexpr,  # noqa: N803  # Triton's constants
    BLOCK: tl.constexpr,  # noqa: N803
):
    row = tl.program_id(0).to(tl.int64)  # many drafts of a large vocabulary are more than 2^31 logits
    entry = tl.load(index + row)
    if entry != FREE:
        token = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        inside = token < vocab_size
        if entry < FREE:
            allowed = token == -2 - entry  # `forced_code`
        else:
            words = tl.load(table + entry.to(tl.int64) * table_stride + (token >> 5), mask=inside, other=0)
            allowed = ((words >> (token & 31)) & 1) != 0
        tl.store(logits + row * logits_stride + token, -float("inf"), mask=inside & (allowed == 0))
