"""A mask frame meets the logits on a device of their own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from model_service.masks.frame_header import FREE, FrameHeader, forced_code

_MASKED = 1 << 25
"""Logits that are masked at a time, a byte each meanwhile: what a device has to spare."""


def mask_logits(header: FrameHeader, words: npt.NDArray[np.int32], logits: torch.Tensor) -> None:
    """See `Frame.apply`; works on any device. No sizes here depend on values on the device, so that nobody has to wait for it."""
    if not header.logits:
        return
    frame = _on_device(words, logits.device)
    index, table = frame[header.index_at], _table(header, frame)
    tokens = (forced_code(0) - index).clamp_(min=0).to(torch.int64).unsqueeze(1)
    forced = (index < FREE).unsqueeze(1)
    kept = logits.gather(1, tokens)
    _fill(logits, table, torch.where(index < FREE, header.entries + 1, torch.where(index < 0, header.entries, index)))
    logits.scatter_(1, tokens, torch.where(forced, kept, logits.gather(1, tokens)))


def _on_device(words: npt.NDArray[np.int32], device: torch.device) -> torch.Tensor:
    staged = torch.empty(len(words), dtype=torch.int32, pin_memory=device.type == "cuda")
    staged.numpy()[:] = words
    return staged.to(device, non_blocking=True)


def _table(header: FrameHeader, frame: torch.Tensor) -> torch.Tensor:
    """int32 [entries + 2, ceil(V/32)]: a row of allowed tokens for each entry, one that allows all, and one that allows none.

    Bits past V do not matter here.
    """
    table = torch.zeros(header.entries + 2, header.row_words, dtype=torch.int32, device=frame.device)
    table[header.allowed : header.lists] = -1
    table[header.lists : header.entries] = frame[header.rows_at].view(header.rows, header.row_words)
    table[header.entries] = -1
    tokens, ends = frame[header.tokens_at], frame[header.ends_at]
    lists = torch.searchsorted(ends, torch.arange(header.tokens, dtype=torch.int32, device=frame.device), right=True)
    bits = torch.ones_like(tokens) << (tokens & 31)
    # A list names a token once: what is added sets clear bits, what is subtracted clears set ones, and nothing is carried.
    signed = torch.where(lists < header.allowed, bits, -bits)
    table.view(-1).index_add_(0, lists * header.row_words + (tokens >> 5), signed)
    return table


def _fill(logits: torch.Tensor, table: torch.Tensor, entries: torch.Tensor) -> None:
    vocab_size = logits.shape[1]
    at_once = max(1, _MASKED // vocab_size)
    bits = torch.ones(8, dtype=torch.uint8, device=logits.device) << torch.arange(8, dtype=torch.uint8, device=logits.device)
    for start in range(0, len(entries), at_once):
        rows = table.index_select(0, entries[start : start + at_once]).view(torch.uint8)
        forbidden = (rows.unsqueeze(-1) & bits).view(len(rows), -1)[:, :vocab_size] == 0
        logits[start : start + at_once].masked_fill_(forbidden, -torch.inf)
