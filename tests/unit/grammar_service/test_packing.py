from __future__ import annotations

import tracemalloc
from contextlib import suppress
from random import Random

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from grammar_service.errors import ArtifactError
from grammar_service.packing import pack, unpack

REPEATING = st.builds(lambda part, times, end: part * times + end, st.text(max_size=60), st.integers(0, 500), st.text(max_size=20))
LIMIT = 1 << 20


@given(st.text() | REPEATING)
def test_any_text_comes_back_as_it_was(text: str) -> None:
    assert unpack(pack(text), LIMIT) == text


@given(REPEATING)
def test_packed_text_is_a_text_like_any_other(text: str) -> None:
    once = pack(text).decode("latin-1")
    assert unpack(pack(once), LIMIT) == once


def test_a_repetition_costs_next_to_nothing_however_far_apart() -> None:
    rule = "".join(f"[{byte},{byte * 7919 % 1009},{byte % 13}]," for byte in range(200_000))
    once, often = len(pack(rule)), len(pack(rule * 8))
    assert len(rule) > 2 << 20
    assert often < once * 1.05


def test_lists_of_tokens_take_less_than_two_bytes_a_token() -> None:
    chance = Random(7)
    tokens = [token for token in range(131_072) if chance.random() < 0.3]
    assert len(pack(",".join(map(str, tokens)))) < 2 * len(tokens)


@given(st.text() | REPEATING, st.data())
def test_what_is_over_the_bound_is_refused(text: str, data: st.DataObject) -> None:
    size = len(text.encode())
    if size:
        with pytest.raises(ArtifactError, match="limit"):
            unpack(pack(text), data.draw(st.integers(0, size - 1)))
    assert unpack(pack(text), size) == text


@pytest.mark.parametrize("size", [1 << 30, 1 << 40, 1 << 62])
def test_a_size_over_the_bound_is_refused_before_anything_is_allocated(size: int) -> None:
    frame = bytearray(zstandard.ZstdCompressor().compress(bytes(70_000)))
    assert frame[4] & 0xC0 == 0x80
    frame[4] |= 0xC0
    frame[5:9] = size.to_bytes(8, "little")
    assert zstandard.frame_content_size(bytes(frame)) == size
    tracemalloc.start()
    try:
        with pytest.raises(ArtifactError, match="limit"):
            unpack(b"\x01" + bytes(frame), LIMIT)
        assert tracemalloc.get_traced_memory()[1] < LIMIT
    finally:
        tracemalloc.stop()


def test_a_frame_of_unknown_size_is_refused() -> None:
    stream = zstandard.ZstdCompressor(write_content_size=False).compress(b"text")
    with pytest.raises(ArtifactError):
        unpack(b"\x01" + stream, LIMIT)


@given(st.binary(max_size=200))
def test_rubbish_is_refused_or_a_text_within_the_bound(rubbish: bytes) -> None:
    for packed in (rubbish, b"\x01" + rubbish, b"\x01\x28\xb5\x2f\xfd" + rubbish):
        try:
            text = unpack(packed, 1000)
        except ArtifactError:
            continue
        assert len(text.encode()) <= 1000


@given(st.text(min_size=1, max_size=300), st.data())
def test_damage_is_refused_or_gives_a_text_within_the_bound(text: str, data: st.DataObject) -> None:
    packed = bytearray(pack(text))
    packed[data.draw(st.integers(0, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
    with suppress(ArtifactError):
        assert len(unpack(bytes(packed), 5000).encode()) <= 5000


@given(st.text(max_size=300), st.binary(min_size=1, max_size=20))
def test_cut_and_lengthened_bytes_are_refused(text: str, more: bytes) -> None:
    packed = pack(text)
    for wrong in (packed[:-1], packed + more):
        with pytest.raises(ArtifactError):
            unpack(wrong, LIMIT)
