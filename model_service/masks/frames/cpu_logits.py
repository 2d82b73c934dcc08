"""A mask frame meets logits in the processor's own memory, which bounds it: a row of a large vocabulary is half a megabyte. So what is
forbidden by a list is written alone, and where a list says what is allowed, the rest is overwritten without being read.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from model_service.masks.frames.header import FREE, FrameHeader, forced_code, listed_tokens

Ints = npt.NDArray[np.int32]
Places = npt.NDArray[np.intp]


def mask_cpu_logits(header: FrameHeader, words: Ints, logits: torch.Tensor) -> None:
    """See `Frame.apply`."""
    index = words[header.index_at]
    lists = _Lists(words[header.ends_at][header.pages - 1 :: header.pages], listed_tokens(header, words))
    forced, allowed = np.flatnonzero(index < FREE), np.flatnonzero((index >= 0) & (index < header.allowed))
    at, tokens = lists.pairs(allowed, index[allowed])
    kept = _places(np.concatenate([forced, at]), np.concatenate([forced_code(0) - index[forced], tokens]))
    values = logits[kept]
    logits[torch.from_numpy(np.concatenate([forced, allowed]))] = -torch.inf
    logits[kept] = values
    refusing = np.flatnonzero((index >= header.allowed) & (index < header.allowed + header.forbidden))
    logits[_places(*lists.pairs(refusing, index[refusing]))] = -torch.inf
    for row in np.flatnonzero(index >= header.allowed + header.forbidden).tolist():
        forbidden = _forbidden(header, words, lists, int(index[row]))
        logits[row].masked_fill_(torch.from_numpy(forbidden.view(np.bool_)), -torch.inf)


class _Lists:
    def __init__(self, ends: Ints, tokens: Ints) -> None:
        self._starts = ends - np.diff(ends, prepend=0)
        self._lengths = ends - self._starts
        self._tokens = tokens

    def of(self, number: int) -> Ints:
        start = self._starts[number]
        return self._tokens[start : start + self._lengths[number]]

    def pairs(self, at: Places, lists: Ints) -> tuple[Places, Ints]:
        """Each of the rows of logits with each token of its list."""
        lengths = self._lengths[lists]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return np.repeat(at, lengths), self._tokens[np.repeat(self._starts[lists], lengths) + within]


def _forbidden(header: FrameHeader, words: Ints, lists: _Lists, entry: int) -> npt.NDArray[np.uint8]:
    """uint8 [V]: 1 where a row, or what differs from one, forbids the token."""
    base = entry - header.lists if entry >= header.lists else int(words[header.bases_at][entry - header.lists])
    row = words[header.rows_at].reshape(header.rows, header.row_words)[base]
    bits = np.unpackbits(~row.view(np.uint8), bitorder="little", count=header.vocab_size)
    if entry < header.lists:
        bits[lists.of(entry)] ^= 1
    return bits


def _places(at: Places, tokens: Ints) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.from_numpy(at), torch.from_numpy(tokens.astype(np.int64))
