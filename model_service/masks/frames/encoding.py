"""Bitmask rows become a mask frame: distinct rows travel once, rows of all ones not at all, one-hot rows as token ids, and rows that are
nearly alike as the tokens in which they differ."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from model_service.masks.frames.frame import free_row
from model_service.masks.frames.header import FREE, MOST_VOCABULARY, PAGE_WORDS, FrameHeader, forced_code

Ints = npt.NDArray[np.int32]
Places = npt.NDArray[np.intp]
Wide = npt.NDArray[np.uint64] | npt.NDArray[np.uint32]
_COMPARED = 1 << 15
_ALLOWED, _FORBIDDEN, _CHANGED, _ROW = range(4)
_BASES = 8
"""Rows that the others are compared with: strings of which so much is left have masks that differ in few tokens."""


def encode(rows: Ints | torch.Tensor, vocab_size: int) -> bytes:
    """A frame for logits whose masks are the rows, int32 [n, ceil(V/32)], bit set = allowed, on the CPU; what stands past V is ignored.
    Raises ValueError: not such a matrix."""
    return encode_indexed(rows, np.arange(len(rows), dtype=np.int32), vocab_size)


def encode_indexed(rows: Ints | torch.Tensor, index: Ints, vocab_size: int) -> bytes:
    """The same, where masks are known to be equal, free or forced, and need no rows.

    `index` int32 [n]: for each row of logits the number of its mask among the rows, `FREE`, or `forced_code(token)`. Raises ValueError: no
    such matrix, or an index that points out of it.
    """
    masks = _matrix(rows, vocab_size)
    if index.ndim != 1 or (index >= len(masks)).any() or (index < forced_code(vocab_size - 1)).any():
        raise ValueError(f"the index points out of {len(masks)} masks and {vocab_size} tokens")
    used = np.zeros(len(masks), dtype=np.bool_)
    used[index[index >= 0]] = True
    codes, entries, kinds, bases = _entries(masks, used, vocab_size)
    places = np.flatnonzero(index >= 0)
    found = index.astype(np.int32)
    found[places] = codes[index[places]]
    return _packed(found, masks[entries], kinds, bases, vocab_size)


def _matrix(rows: Ints | torch.Tensor, vocab_size: int) -> Ints:
    masks = rows.numpy() if isinstance(rows, torch.Tensor) else rows
    if not 1 <= vocab_size <= MOST_VOCABULARY or masks.dtype != np.int32 or masks.shape[1:] != ((vocab_size + 31) // 32,):
        raise ValueError(f"masks for {vocab_size} tokens are no {masks.dtype} {list(masks.shape)}")
    if vocab_size % 32:
        masks = masks.copy()
        masks[:, -1] &= free_row(vocab_size)[-1]
    return np.ascontiguousarray(masks)


def _entries(masks: Ints, used: npt.NDArray[np.bool_], vocab_size: int) -> tuple[Ints, Places, Ints, Ints]:
    """What stands for each mask in the index; the masks that become entries, in their order; what kind each of these is of; and of those
    that differ from a row in a list of tokens, the number of that row."""
    counts = np.bitwise_count(_widest(masks)).sum(axis=1, dtype=np.int64)
    codes = np.full(len(masks), FREE, dtype=np.int32)
    free, forced = counts == vocab_size, counts == 1
    codes[forced & ~free] = forced_code(0) - _single_tokens(masks[forced & ~free])
    others = np.flatnonzero(used & ~free & ~forced)
    first = _first_equal(masks, others)
    distinct = np.flatnonzero(first == np.arange(len(others)))
    kinds = _kinds(counts[others[distinct]], vocab_size)
    rows = np.flatnonzero(kinds == _ROW)
    near = _near(masks[others[distinct[rows]]])
    kinds[rows[near >= 0]] = _CHANGED
    order = np.argsort(kinds, kind="stable")
    numbers = np.empty(len(others), dtype=np.int32)
    numbers[distinct[order]] = np.arange(len(order))
    codes[others] = numbers[first]
    return codes, others[distinct[order]], kinds[order], near[near >= 0]


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
    """Whatever is shortest."""
    short = _fits_a_list(np.minimum(counts, vocab_size - counts), (vocab_size + 31) // 32)
    return np.where(short, np.where(counts <= vocab_size - counts, _ALLOWED, _FORBIDDEN), _ROW).astype(np.int32)


def _fits_a_list(tokens: npt.NDArray[np.int64], row_words: int) -> npt.NDArray[np.bool_]:
    """Whether a list of so many is shorter than a row: it has half a word for each, and one for its base and for the end of each page."""
    short: npt.NDArray[np.bool_] = tokens // 2 + row_words // PAGE_WORDS + 2 < row_words
    return short


def _near(rows: Ints) -> Ints:
    """For each of some rows the number of one that it differs from in few tokens, among those that stay rows; -1 for these."""
    wide = _widest(rows)
    base, near = np.full(len(rows), -1, dtype=np.int32), np.zeros(len(rows), dtype=np.bool_)
    left = np.arange(len(rows))
    for _ in range(_BASES):
        if not len(left):
            break
        first, left = left[0], left[1:]
        few = _fits_a_list(np.bitwise_count(wide[left] ^ wide[first]).sum(axis=1, dtype=np.int64), rows.shape[1])
        base[left[few]], near[left[few]] = first, True
        left = left[~few]
    numbers = np.cumsum(~near, dtype=np.int32) - 1
    found: Ints = np.where(near, numbers[base], np.int32(-1))
    return found


def _packed(index: Ints, entries: Ints, kinds: Ints, bases: Ints, vocab_size: int) -> bytes:
    allowed, forbidden, changed, rows = (int(count) for count in np.bincount(kinds, minlength=4))
    lists, kept = np.split(entries, [len(entries) - rows])
    lists[allowed : allowed + forbidden] ^= free_row(vocab_size)
    lists[allowed + forbidden :] ^= kept[bases]
    ends, tokens = _listed(lists)
    header = FrameHeader(vocab_size, len(index), allowed, forbidden, changed, len(tokens), rows)
    places = np.append(tokens, 0)[: len(tokens) + len(tokens) % 2].astype("<u2")
    parts = [header.packed_words(), index, bases, ends, places.view("<i4"), kept.reshape(-1)]
    return np.concatenate(parts, dtype="<i4").tobytes()


def _listed(masks: Ints) -> tuple[Ints, Ints]:
    """Where the set bits of each page of each mask end, and all of them as tokens, mask after mask."""
    flat = masks.reshape(-1)
    words = np.flatnonzero(flat != 0)
    # One flat array of truth values: anything else is searched many times slower.
    bits = np.unpackbits(flat[words].astype("<i4").view(np.uint8), bitorder="little").view(np.bool_)
    places = np.flatnonzero(bits)
    word = words[places >> 5]
    pages = np.minimum(np.arange(PAGE_WORDS, masks.shape[1] + PAGE_WORDS, PAGE_WORDS), masks.shape[1])
    ends = np.searchsorted(word, (np.arange(len(masks))[:, None] * masks.shape[1] + pages).reshape(-1))
    return ends.astype(np.int32), (word % masks.shape[1] * 32 + (places & 31)).astype(np.int32)
