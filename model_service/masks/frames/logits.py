"""A mask frame meets the logits on a device of their own: one copy of the frame, a table of its entries, and then one kernel, or torch's
operations where there is no Triton for the device."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt
import torch

from model_service.masks.frames.header import FREE, HEADER_WORDS, PAGE_WORDS, FrameHeader, forced_code

_MASKED = 1 << 25
"""Logits that are masked at a time, a byte each meanwhile: what a device has to spare."""


class Staging:
    """Where frames of a worker stand on their way to its device: pinned memory. A frame gets as much of it as the largest one needs, since
    torch keeps what has been given back for the next who asks for that size, and new pinned memory stops the device.

    `most_rows`: of logits in one frame.
    """

    def __init__(self, most_rows: int) -> None:
        self._most_rows = most_rows

    def on_device(self, header: FrameHeader, words: npt.NDArray[np.int32], device: torch.device) -> torch.Tensor:
        # No entry is longer than its row.
        most = HEADER_WORDS + self._most_rows * (1 + header.row_words)
        staged = torch.empty(max(most, len(words)), dtype=torch.int32, pin_memory=device.type == "cuda")[: len(words)]
        staged.numpy()[:] = words
        return staged.to(device, non_blocking=True)


def mask_logits(header: FrameHeader, words: npt.NDArray[np.int32], logits: torch.Tensor, staging: Staging) -> None:
    """See `Frame.apply`; works on any device. No sizes here depend on values on the device, so that nobody has to wait for it."""
    if not header.logits:
        return
    index, table = index_and_table(header, staging.on_device(header, words, logits.device))
    if logits.is_cuda and (by_kernel := _kernel()):
        by_kernel(logits, index, table)
    else:
        mask_by_torch(logits, index, table)


def warm_up(logits: torch.Tensor, staging: Staging) -> None:
    """Compile the kernel for logits of this kind [1, V], and load torch's, before a step has to wait for them. The logits are spoilt."""
    row = np.zeros((logits.shape[-1] + 31) // 32, dtype=np.int32)
    header = FrameHeader(logits.shape[-1], logits=1, allowed=1, forbidden=1, changed=1, tokens=3, rows=1)
    ends = [end for end in (1, 2, 3) for _ in range(header.pages)]
    body = [forced_code(0), 0, *ends, 0, 0]
    words = np.concatenate([header.packed_words(), np.array(body, dtype=np.int32), row])
    # Twice: while the first frame is under way, the second needs memory of its own.
    for _ in range(2):
        mask_logits(header, words, logits, staging)


def index_and_table(header: FrameHeader, frame: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Of a frame, on its device: the index, and int32 [entries + 2, ceil(V/32)], a bitmask of allowed tokens for each entry, one that
    allows all, and one that allows none. Bits past V do not matter there."""
    return frame[header.index_at], _table(header, frame)


def mask_by_torch(logits: torch.Tensor, index: torch.Tensor, table: torch.Tensor) -> None:
    """As `triton_logits.mask_by_table` does; the last two rows of the table allow all and nothing."""
    free, none = len(table) - 2, len(table) - 1
    tokens = (forced_code(0) - index).clamp_(min=0).to(torch.int64).unsqueeze(1)
    forced = (index < FREE).unsqueeze(1)
    kept = logits.gather(1, tokens)
    _fill(logits, table, torch.where(index < FREE, none, torch.where(index < 0, free, index)))
    logits.scatter_(1, tokens, torch.where(forced, kept, logits.gather(1, tokens)))


@cache
def _kernel() -> Callable[[torch.Tensor, torch.Tensor, torch.Tensor], None] | None:
    try:
        from model_service.masks.frames.triton_logits import mask_by_table
    except ImportError:
        return None
    return mask_by_table


def _table(header: FrameHeader, frame: torch.Tensor) -> torch.Tensor:
    """Each operation is a launch: none is for entries that the frame does not have."""
    table = torch.zeros(header.entries + 2, header.row_words, dtype=torch.int32, device=frame.device)
    table[header.entries] = -1
    if header.rows:
        table[header.lists : header.entries] = frame[header.rows_at].view(header.rows, header.row_words)
    if header.lists:
        _add_lists(table, header, frame)
    return table


def _add_lists(table: torch.Tensor, header: FrameHeader, frame: torch.Tensor) -> None:
    if header.forbidden:
        table[header.allowed : header.allowed + header.forbidden] = -1
    if header.changed:
        table[header.lists - header.changed : header.lists] = table.index_select(0, frame[header.bases_at] + header.lists)
    places, ends = frame[header.tokens_at].view(torch.int16)[: header.tokens].to(torch.int32) & 0xFFFF, frame[header.ends_at]
    parts = torch.searchsorted(ends, torch.arange(header.tokens, dtype=torch.int32, device=frame.device), right=True)
    words = parts // header.pages * header.row_words + parts % header.pages * PAGE_WORDS + (places >> 5)
    # A list names a token once: what is added sets clear bits, what is subtracted clears set ones, and nothing is carried.
    bits = torch.ones_like(places) << (places & 31)
    table, was = table.view(-1), table.view(-1)[words] & bits
    table.index_add_(0, words, bits - 2 * was)


def _fill(logits: torch.Tensor, table: torch.Tensor, entries: torch.Tensor) -> None:
    vocab_size = logits.shape[1]
    at_once = max(1, _MASKED // vocab_size)
    bits = torch.ones(8, dtype=torch.uint8, device=logits.device) << torch.arange(8, dtype=torch.uint8, device=logits.device)
    for start in range(0, len(entries), at_once):
        rows = table.index_select(0, entries[start : start + at_once]).view(torch.uint8)
        forbidden = (rows.unsqueeze(-1) & bits).view(len(rows), -1)[:, :vocab_size] == 0
        logits[start : start + at_once].masked_fill_(forbidden, -torch.inf)
