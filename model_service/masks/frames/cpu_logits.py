"""A mask frame meets logits in the processor's own memory, which bounds it: a row of a large vocabulary is half a megabyte. So what is
forbidden by a list is written alone, and where a list says what is allowed, the rest is overwritten without being read.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from model_service.masks.frames.header import FREE, FrameHeader, forced_code

Ints = npt.NDArray[np.int32]
Places = npt.NDArray[np.intp]


def mask_cpu_logits(header: FrameHeader, words: Ints, logits: torch.Tensor) -> None:
    """See `Frame.apply`."""
    index = words[header.index_at]
    lists = _Lists(words[header.ends_at], words[header.tokens_at])
    forced, allowed = np.flatnonzero(index < FREE), np.flatnonzero((index >= 0) & (index < header.allowed))
    at, tokens = lists.pairs(allowed, index[allowed])
    kept = _places(np.concatenate([forced, at]), np.concatenate([forced_code(0) - index[forced], tokens]))
    values = logits[kept]
    logits[torch.from_numpy(np.concatenate([forced, allowed]))] = -torch.inf
    logits[kept] = values
    refusing = np.flatnonzero((index >= header.allowed) & (index < header.lists))
    logits[_places(*lists.pairs(refusing, index[refusing]))] = -torch.inf
    rows = words[header.rows_at].reshape(header.rows, header.row_words)
    for row in np.flatnonzero(index >= header.lists).tolist():
        bits = np.unpackbits(~rows[index[row] - header.lists].view(np.uint8), bitorder="little", count=header.vocab_size)
        logits[row].masked_fill_(torch.from_numpy(bits.view(np.bool_)), -torch.inf)


class _Lists:
    def __init__(self, ends: Ints, tokens: Ints) -> None:
        self._starts = ends - np.diff(ends, prepend=0)
        self._lengths = ends - self._starts
        self._tokens = tokens

    def pairs(self, at: Places, lists: Ints) -> tuple[Places, Ints]:
        """Each of the rows of logits with each token of its list."""
        lengths = self._lengths[lists]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return np.repeat(at, lengths), self._tokens[np.repeat(self._starts[lists], lengths) + within]


def _places(at: Places, tokens: Ints) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.from_numpy(at), torch.from_numpy(tokens.astype(np.int64))
