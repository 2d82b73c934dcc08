"""Bitmask rows become a mask frame: distinct rows travel once, rows of all ones not at all, and one-hot rows as token ids."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from model_service.masks.frames.frame import free_row
from model_service.masks.frames.header import FREE, MOST_VOCABULARY, FrameHeader, forced_code

Ints = npt.NDArray[np.int32]
Places = npt.NDArray[np.intp]
Wide = npt.NDArray[np.uint64] | npt.NDArray[np.uint32]
_COMPARED = 1 << 15
_ALLOWED, _FORBIDDEN, _ROW = 0, 1, 2


def encode(rows: Ints | torch.Tensor, vocab_size: int) -> bytes:
    """A frame for logits whose masks are the rows, int32 [n, ceil(V/32)], bit set = allowed, on the CPU; what stands past V is ignored.

    Raises:
        ValueError: not such a matrix.
    """
    return encode_indexed(rows, np.arange(len(rows), dtype=np.int32), vocab_size)


def encode_indexed(rows: Ints | torch.Tensor, index: Ints, vocab_size: int) -> bytes:
    """The same, where masks are known to be equal, free or forced, and need no rows.

    `index` int32 [n]: for each row of logits the number of its mask among the rows, `FREE`, or `forced_code(token)`.

    Raises:
        ValueError: no such matrix, or an index that points out of it.
    """
    masks = _matrix(rows, vocab_size)
    if index.ndim != 1 or (index >= len(masks)).any() or (index < forced_code(vocab_size - 1)).any():
        raise ValueError(f"the index points out of {len(masks)} masks and {vocab_size} tokens")
    used = np.zeros(len(masks), dtype=np.bool_)
    used[index[index >= 0]] = True
    codes, entries, kinds = _entries(masks, used, vocab_size)
    places = np.flatnonzero(index >= 0)
    found = index.astype(np.int32)
    found[places] = codes[index[places]]
    return _packed(found, masks[entries], kinds, vocab_size)


def _matrix(rows: Ints | torch.Tensor, vocab_size: int) -> Ints:
    masks = rows.numpy() if isinstance(rows, torch.Tensor) else rows
    if not 1 <= vocab_size <= MOST_VOCABULARY or masks.dtype != np.int32 or masks.shape[1:] != ((vocab_size + 31) // 32,):
        raise ValueError(f"masks for {vocab_size} tokens are no {masks.dtype} {list(masks.shape)}")
    if vocab_size % 32:
        masks = masks.copy()
        masks[:, -1] &= free_row(vocab_size)[-1]
    return np.ascontiguousarray(masks)


def _entries(masks: Ints, used: npt.NDArray[np.bool_], vocab_size: int) -> tuple[Ints, Places, Ints]:
    """What stands for each mask in the index; the masks that become entries, in their order; and what kind each of these is of."""
    counts = np.bitwise_count(_widest(masks)).sum(axis=1, dtype=np.int64)
    codes = np.full(len(masks), FREE, dtype=np.int32)
    free, forced = counts == vocab_size, counts == 1
    codes[forced & ~free] = forced_code(0) - _single_tokens(masks[forced & ~free])
    others = np.flatnonzero(used & ~free & ~forced)
    first = _first_equal(masks, others)
    distinct = np.flatnonzero(first == np.arange(len(others)))
    kinds = _kinds(counts[others[distinct]], vocab_size)
    order = np.argsort(kinds, kind="stable")
    numbers = np.empty(len(others), dtype=np.int32)
    numbers[distinct[order]] = np.arange(len(order))
    codes[others] = numbers[first]
    return codes, others[distinct[order]], kinds[order]


def _widest(masks: Ints) -> Wide:
    return masks.view(np.uint32) if masks.shape[1] % 2 else masks.view(np.uint64)


def _single_tokens(masks: Ints) -> Ints:
    """Of masks with one bit each."""
    words = (masks != 0).argmax(axis=1)
    values = masks[np.arange(len(masks)), words].view(np.uint32)
    tokens: Ints = (words * 32 + np.bitwise_count(values - np.uint32(1))).astype(np.int32)
    return tokens


def _first_equal(masks: Ints, among: Places) -> Places:
    """For each of some masks, where among them the first stands that equals it: by a digest, whose collisions cost time and no more."""
    wide = _widest(masks)
    factors = np.random.default_rng(wide.shape[1]).integers(1 << 63, size=wide.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    _, firsts, which = np.unique((wide @ factors)[among], return_index=True, return_inverse=True)
    first: Places = firsts[which]
    later = np.flatnonzero(first != np.arange(len(among)))
    colliding = later[_differing(wide, among[later], among[first[later]])]
    if len(colliding):
        whole = masks[among[colliding]].view(np.dtype((np.void, masks.shape[1] * masks.itemsize))).reshape(-1)
        _, firsts, which = np.unique(whole, return_index=True, return_inverse=True)
        first[colliding] = colliding[firsts[which]]
    return first


def _differing(wide: Wide, some: Places, others: Places) -> npt.NDArray[np.bool_]:
    """Whether masks differ, pair by pair; in portions that fit a cache."""
    found = np.empty(len(some), dtype=np.bool_)
    at_once = max(1, _COMPARED // wide.shape[1])
    for start in range(0, len(some), at_once):
        part = slice(start, start + at_once)
        found[part] = (wide[some[part]] != wide[others[part]]).any(axis=1)
    return found


def _kinds(counts: npt.NDArray[np.int64], vocab_size: int) -> Ints:
    """Whatever is shortest: a list has a word for each token, and one for its end."""
    row_words = (vocab_size + 31) // 32
    shortest = np.minimum(counts, vocab_size - counts) + 1 < row_words
    return np.where(shortest, np.where(counts <= vocab_size - counts, _ALLOWED, _FORBIDDEN), _ROW).astype(np.int32)


def _packed(index: Ints, entries: Ints, kinds: Ints, vocab_size: int) -> bytes:
    allowed, forbidden, rows = (int(count) for count in np.bincount(kinds, minlength=3))
    lists = entries[: allowed + forbidden]
    lists[allowed:] ^= free_row(vocab_size)
    ends, tokens = _listed(lists)
    header = FrameHeader(vocab_size, len(index), allowed, forbidden, len(tokens), rows)
    parts = [header.packed_words(), index, ends, tokens, entries[allowed + forbidden :].reshape(-1)]
    return np.concatenate(parts, dtype="<i4").tobytes()


def _listed(masks: Ints) -> tuple[Ints, Ints]:
    """The set bits of each mask as tokens, mask after mask, and where those of each end."""
    flat = masks.reshape(-1)
    words = np.flatnonzero(flat != 0)
    # One flat array of truth values: anything else is searched many times slower.
    bits = np.unpackbits(flat[words].astype("<i4").view(np.uint8), bitorder="little").view(np.bool_)
    places = np.flatnonzero(bits)
    word = words[places >> 5]
    ends = np.searchsorted(word, np.arange(1, len(masks) + 1) * masks.shape[1])
    return ends.astype(np.int32), (word % masks.shape[1] * 32 + (places & 31)).astype(np.int32)
