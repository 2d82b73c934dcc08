"""A frame says the same as the naive matrix of bitmask rows."""

from __future__ import annotations

import importlib
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from model_service.errors import InvalidFrame
from model_service.masks.frames.encoding import encode, encode_indexed
from model_service.masks.frames.frame import Frame, decode, free_row
from model_service.masks.frames.header import FREE, HEADER_WORDS, forced_code
from model_service.masks.frames.logits import Staging, index_and_table, mask_logits

Ints = npt.NDArray[np.int32]
VOCABULARIES = [1, 2, 31, 32, 33, 64, 95, 128, 257, 1024, 2050]


def row_of(tokens: Sequence[int] | npt.NDArray[np.intp], vocab_size: int) -> Ints:
    bits = np.zeros((vocab_size + 31) // 32 * 32, dtype=np.uint8)
    bits[np.asarray(tokens, dtype=np.intp)] = 1
    return np.packbits(bits, bitorder="little").view(np.int32)


TWO_PAGES = 65_536 + 8
"""A vocabulary."""


def _few(chance: np.random.Generator, vocab_size: int) -> npt.NDArray[np.intp]:
    return np.asarray(chance.choice(vocab_size, size=min(vocab_size, int(chance.integers(0, 9))), replace=False))


def _one_half(vocab_size: int) -> Ints:
    return row_of(np.flatnonzero(np.random.default_rng(0).random(vocab_size) < 0.5), vocab_size)


MAKERS: dict[str, Callable[[np.random.Generator, int], Ints]] = {
    "free": lambda chance, size: free_row(size),
    "none": lambda chance, size: row_of([], size),
    "forced": lambda chance, size: row_of([int(chance.integers(size))], size),
    "last": lambda chance, size: row_of([size - 1], size),
    "few allowed": lambda chance, size: row_of(_few(chance, size), size),
    "few forbidden": lambda chance, size: free_row(size) ^ row_of(_few(chance, size), size),
    "one half": lambda chance, size: _one_half(size),
    "nearly that": lambda chance, size: _one_half(size) ^ row_of(_few(chance, size), size),
    "half": lambda chance, size: row_of(np.flatnonzero(chance.random(size) < 0.5), size),
}


@st.composite
def matrices(draw: st.DrawFn) -> tuple[Ints, int]:
    """Masks of a step: requests, each with as many positions as there are drafts and one more, some of them equal to others."""
    vocab_size = draw(st.sampled_from(VOCABULARIES))
    chance = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    kinds = draw(st.lists(st.sampled_from(sorted(MAKERS)), min_size=1, max_size=12))
    known = np.stack([MAKERS[kind](chance, vocab_size) for kind in kinds])
    requests, positions = draw(st.integers(0, 12)), 1 + draw(st.sampled_from([0, 1, 8]))
    return known[chance.integers(len(known), size=requests * positions)], vocab_size


def expanded(frame: Frame) -> Ints:
    """The rows that say what it does to logits."""
    logits = torch.zeros(frame.header.logits, frame.header.row_words * 32)
    logits[:, frame.header.vocab_size :] = -torch.inf
    frame.apply(logits[:, : frame.header.vocab_size])
    return np.packbits(logits.numpy() == 0, axis=1, bitorder="little").view(np.int32)


def naively_masked(logits: torch.Tensor, rows: Ints) -> torch.Tensor:
    bits = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little")[:, : logits.shape[1]]
    return logits.masked_fill(torch.from_numpy(bits == 0), -torch.inf)


@given(matrices())
@settings(max_examples=300, deadline=None)
def test_a_frame_masks_as_the_rows_that_it_was_made_of(given: tuple[Ints, int]) -> None:
    rows, vocab_size = given
    data = encode(rows, vocab_size)
    frame = decode(data)
    assert np.array_equal(expanded(frame), rows)
    assert len(data) == frame.header.size_bytes
    assert len(data) <= rows.nbytes + 4 * (HEADER_WORDS + len(rows))
    assert frame.header.naive_bytes == rows.nbytes


@given(matrices(), st.sampled_from([torch.float32, torch.bfloat16]))
@settings(max_examples=200, deadline=None)
def test_logits_are_masked_as_by_the_rows(given: tuple[Ints, int], dtype: torch.dtype) -> None:
    rows, vocab_size = given
    logits = torch.randn(len(rows), vocab_size).to(dtype)
    wanted = naively_masked(logits, rows)
    padded = torch.randn(len(rows), vocab_size + 3).to(dtype)
    padded[:, :vocab_size] = logits
    as_on_a_device = logits.clone()
    frame = decode(encode(rows, vocab_size))
    frame.apply(logits)
    frame.apply(padded[:, :vocab_size])
    mask_logits(frame.header, frame.words, as_on_a_device, Staging(len(rows)))
    assert torch.equal(logits, wanted)
    assert torch.equal(padded[:, :vocab_size], wanted)
    assert torch.equal(as_on_a_device, wanted)


@pytest.fixture(scope="module")
def interpreted() -> Iterator[ModuleType]:
    """The GPU's kernel, run by Triton's interpreter: Triton decides by the environment when the kernel is defined."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        name = "model_service.masks.frames.triton_logits"
        patch.delitem(sys.modules, name, raising=False)
        yield importlib.import_module(name)
        patch.delitem(sys.modules, name)


@given(matrices(), st.sampled_from([torch.float32, torch.bfloat16]))
@settings(max_examples=50, deadline=None)
def test_the_kernel_masks_logits_as_by_the_rows(interpreted: ModuleType, given: tuple[Ints, int], dtype: torch.dtype) -> None:
    rows, vocab_size = given
    frame = decode(encode(rows, vocab_size))
    padded = torch.randn(len(rows), vocab_size + 3).to(dtype)
    rest, wanted = padded[:, vocab_size:].clone(), naively_masked(padded[:, :vocab_size], rows)
    index, table = index_and_table(frame.header, torch.from_numpy(frame.words.copy()))
    interpreted.mask_by_table(padded[:, :vocab_size], index, table)
    assert torch.equal(padded[:, :vocab_size], wanted)
    assert torch.equal(padded[:, vocab_size:], rest)


@pytest.mark.parametrize("vocab_size", [65_536, TWO_PAGES, 131_072, 150_001])
def test_lists_reach_over_all_pages(vocab_size: int) -> None:
    chance = np.random.default_rng(vocab_size)
    listed = [row_of(chance.choice(vocab_size, size=size, replace=False), vocab_size) for size in (2, 3, 2_000)]
    pages = [row_of(range(start, start + 3), vocab_size) for start in range(0, vocab_size - 2, 65_534)]
    rows = np.stack([*listed, *pages, *(row ^ free_row(vocab_size) for row in (*listed, *pages))])
    frame = decode(encode(rows, vocab_size))
    assert frame.header.lists == len(rows)
    assert np.array_equal(expanded(frame), rows)
    logits = torch.zeros(len(rows), vocab_size)
    mask_logits(frame.header, frame.words, logits, Staging(len(rows)))
    assert torch.equal(logits, naively_masked(torch.zeros_like(logits), rows))


@given(matrices(), st.integers(0, 20), st.integers(0, 1 << 32))
@settings(max_examples=100, deadline=None)
def test_a_frame_serves_logits_in_any_order(given: tuple[Ints, int], wide: int, seed: int) -> None:
    rows, vocab_size = given
    places = np.random.default_rng(seed).integers(-1, len(rows), size=wide)
    frame = decode(encode(rows, vocab_size)).arranged(places)
    wanted = np.vstack([rows, free_row(vocab_size)])[places]
    assert np.array_equal(expanded(frame), wanted)
    logits = torch.randn(len(places), vocab_size)
    masked = naively_masked(logits, wanted)
    frame.apply(logits)
    assert torch.equal(logits, masked)


@given(matrices())
@settings(max_examples=100, deadline=None)
def test_masks_that_are_known_to_be_equal_free_or_forced_need_no_rows(given: tuple[Ints, int]) -> None:
    rows, vocab_size = given
    index = np.array([FREE, forced_code(0), forced_code(vocab_size - 1), *range(len(rows))[::-1]], dtype=np.int32)
    wanted = np.vstack([free_row(vocab_size), row_of([0], vocab_size), row_of([vocab_size - 1], vocab_size), rows[::-1]])
    assert np.array_equal(expanded(decode(encode_indexed(rows, index, vocab_size))), wanted)


@given(matrices(), st.data())
@settings(max_examples=300, deadline=None)
def test_no_bytes_lead_a_reader_astray(given: tuple[Ints, int], data: st.DataObject) -> None:
    words = np.frombuffer(encode(*given), dtype="<i4").copy()
    for place in data.draw(st.lists(st.integers(0, len(words) - 1), min_size=1, max_size=4)):
        words[place] = data.draw(st.sampled_from([-(2**31), -3, -2, -1, 0, 1, 2, 31, 2**31 - 1, int(words[place]) + 1 & 0xFFFF]))
    try:
        frame = decode(words.tobytes())
    except InvalidFrame:
        return
    if frame.header.naive_bytes < 1 << 24:
        rows = expanded(frame)
        logits = torch.zeros(frame.header.logits, frame.header.vocab_size)
        wanted = naively_masked(logits, rows)
        mask_logits(frame.header, frame.words, logits, Staging(1))
        assert torch.equal(logits, wanted)
        assert np.array_equal(expanded(decode(encode(rows, frame.header.vocab_size))), rows)


@given(matrices(), st.data())
@settings(max_examples=100, deadline=None)
def test_a_frame_that_is_cut_or_longer_is_refused(given: tuple[Ints, int], data: st.DataObject) -> None:
    whole = encode(*given)
    for torn in (whole[: data.draw(st.integers(0, len(whole) - 1))], whole + b"\0" * data.draw(st.integers(1, 5))):
        with pytest.raises(InvalidFrame):
            decode(torn)


@given(st.binary(max_size=200))
def test_rubbish_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidFrame):
        decode(data)


def frame_bytes(header: tuple[int, ...], words: list[int], magic: bytes = b"MCMF", version: int = 2) -> bytes:
    """`header`: vocabulary, logits, lists of allowed, of forbidden tokens and of those that differ, tokens, rows."""
    return struct.pack("<4s8I", magic, version, *header) + struct.pack(f"<{len(words)}i", *words)


def places(first: int, second: int = 0) -> int:
    """Of two tokens on their pages, as a word."""
    return first | second << 16


def test_the_layout_is_the_one_that_is_written_down() -> None:
    rows = np.stack(
        [free_row(96), row_of([70], 96), row_of([5], 96) ^ free_row(96), row_of(range(40, 64), 96), row_of([3], 96), row_of([], 96)]
    )
    wanted = frame_bytes((96, 6, 1, 1, 0, 1, 1), [-1, -72, 1, 2, -5, 0, 0, 1, 5, 0, -256, 0])
    assert encode(rows, 96) == wanted
    listed = np.stack([row_of([9, 65535, 65536, 65540], TWO_PAGES), row_of([0, 65543], TWO_PAGES) ^ free_row(TWO_PAGES)])
    words = [0, 1, 2, 4, 5, 6, places(9, 65535), places(0, 4), places(0, 7)]
    data = frame_bytes((TWO_PAGES, 2, 1, 1, 0, 6, 0), [word - (1 << 32) if word >> 31 else word for word in words])
    assert encode(listed, TWO_PAGES) == data
    assert decode(data).tokens.tolist() == [9, 65535, 65536, 65540, 0, 65543]
    alike = np.stack([row_of(range(130), 257), row_of([*range(2, 130), 256], 257)])
    row = free_row(257).copy()
    row[4:] = [3, 0, 0, 0, 0]
    assert encode(alike, 257) == frame_bytes((257, 2, 0, 0, 1, 3, 1), [1, 0, 0, 3, places(0, 1), 256, *row.tolist()])


@pytest.mark.parametrize(
    "data",
    [
        frame_bytes((64, 1, 0, 0, 0, 0, 0), [-1], magic=b"MCMX"),
        frame_bytes((64, 1, 0, 0, 0, 0, 0), [-1], version=1),
        frame_bytes((0, 1, 0, 0, 0, 0, 0), [-1]),
        frame_bytes((2**31 - 1, 1, 0, 0, 0, 0, 0), [-1]),
        frame_bytes((64, 1, 0, 0, 0, 0, 0), [0]),
        frame_bytes((64, 1, 0, 0, 0, 0, 0), [-66]),
        frame_bytes((64, 1, 0, 0, 0, 0, 2), [0, 1, 2, 3, 4]),
        frame_bytes((64, 1, 1, 0, 0, 2, 0), [0, 1, places(5, 6)]),
        frame_bytes((64, 1, 1, 0, 0, 2, 0), [0, 2, places(5, 64)]),
        frame_bytes((64, 1, 1, 0, 0, 2, 0), [0, 2, places(6, 5)]),
        frame_bytes((64, 1, 1, 0, 0, 2, 0), [0, 2, places(5, 5)]),
        frame_bytes((64, 1, 0, 0, 0, 1, 0), [-1, 5]),
        frame_bytes((64, 3, 2, 0, 0, 1, 0), [0, 1, 1, 2, 1, 5]),
        frame_bytes((64, 3, 3, 0, 0, 2, 0), [0, 1, 2, 1, 0, 2, places(5, 6)]),
        frame_bytes((TWO_PAGES, 1, 1, 0, 0, 1, 0), [0, 1, 5]),
        frame_bytes((TWO_PAGES, 1, 1, 0, 0, 2, 0), [0, 2, 1, places(5, 6)]),
        frame_bytes((TWO_PAGES, 1, 1, 0, 0, 2, 0), [0, 1, 2, places(5, 8)]),
        frame_bytes((64, 1, 0, 0, 1, 1, 0), [0, 0, 1, 5]),
        frame_bytes((64, 2, 0, 0, 1, 1, 1), [0, 1, 1, 1, 5, 7, 7]),
        frame_bytes((64, 2, 0, 0, 1, 1, 1), [0, 1, -1, 1, 5, 7, 7]),
        frame_bytes((33, 1, 0, 0, 0, 0, 1), [0, 0, 2]),
    ],
)
def test_what_would_point_out_of_the_frame_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidFrame):
        decode(data)


def test_what_does_not_fit_the_logits_is_a_mistake_of_the_caller() -> None:
    frame = decode(encode(row_of([1, 2], 64).reshape(1, -1), 64))
    with pytest.raises(ValueError, match="logits"):
        frame.apply(torch.zeros(1, 65))
    with pytest.raises(ValueError, match="1 masks only"):
        frame.arranged(np.array([1]))
    with pytest.raises(ValueError, match="no int64"):
        encode(np.zeros((1, 2), dtype=np.int64), 64)
    with pytest.raises(ValueError, match="points out"):
        encode_indexed(np.zeros((1, 2), dtype=np.int32), np.array([1], dtype=np.int32), 64)


def test_masks_that_nobody_refers_to_do_not_travel() -> None:
    rows = np.stack([row_of(range(size), 4096) for size in (1000, 1001, 1002)])
    assert decode(encode_indexed(rows, np.array([1, 1], dtype=np.int32), 4096)).header.rows == 1


def test_equal_rows_travel_once_though_their_digests_collide() -> None:
    """Sums of odd multiples do not tell apart which two words have their highest bits set."""
    pairs = [row_of([*range(64), 64 * a + 63, 64 * b + 63], 4096) for a in range(2, 12) for b in range(30, 40)]
    rows = np.stack(pairs + pairs)
    frame = decode(encode(rows, 4096))
    assert frame.header.entries == len(pairs)
    assert np.array_equal(expanded(frame), rows)


def test_bits_past_the_vocabulary_mean_nothing() -> None:
    rows = np.full((2, 2), -1, dtype=np.int32)
    rows[1] = (0, 1 | 1 << 7)
    frame = decode(encode(torch.from_numpy(rows), 37))
    assert frame.index.tolist() == [FREE, forced_code(32)]
    assert rows[1, 1] == 1 | 1 << 7
