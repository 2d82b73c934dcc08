"""What a guard keeps of a long text, and that it goes back all the same."""

from __future__ import annotations

import tracemalloc
from random import Random

import pytest

from grammar_service.guards.follower import MAX_TEXT_BYTES
from grammar_service.guards.guard import RECENT, STRIDE, Guard
from grammar_service.guards.tokens.name_tokens import NameTokens
from tests.tokenizers.quoting_tokenizer import quoting_tokenizer

VOCABULARY = quoting_tokenizer().vocabulary
TOKEN = {text: VOCABULARY.index(text) for text in (b"{", b'"', b"a", b"b", b":", b"1", b",", b"}")}


@pytest.fixture
def guard() -> Guard:
    return Guard(NameTokens(VOCABULARY))


def take(guard: Guard, text: bytes) -> bool:
    return all(guard.accept(TOKEN[bytes([byte])]) for byte in text)


def test_a_long_name_takes_no_square_of_its_length(guard: Guard) -> None:
    assert take(guard, b'{"')
    tracemalloc.start()
    try:
        assert take(guard, b"a" * 16_000)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 12 << 20, "all cursors would take 128 MB"


def test_a_name_has_an_end(guard: Guard) -> None:
    assert take(guard, b'{"')
    assert take(guard, b"a" * MAX_TEXT_BYTES)
    assert not take(guard, b"a")


@pytest.mark.parametrize("seed", range(5))
def test_it_goes_back_as_if_it_had_kept_all(seed: int) -> None:
    chance = Random(seed)
    names = {f"{number:b}".replace("0", "a").replace("1", "b") for number in range(1, 200)}
    text = b"{" + b",".join(f'"{name}":1'.encode() for name in chance.sample(sorted(names), 120))
    tokens = [TOKEN[bytes([byte])] for byte in text]
    assert len(tokens) > RECENT + 2 * STRIDE
    guard, at = Guard(NameTokens(VOCABULARY)), 0
    for _ in range(40):
        ahead = chance.randint(0, len(tokens) - at)
        assert all(guard.accept(token) for token in tokens[at : at + ahead])
        back = chance.randint(0, at + ahead)
        guard.rollback(back)
        at += ahead - back
        fresh = Guard(NameTokens(VOCABULARY))
        assert all(fresh.accept(token) for token in tokens[:at])
        assert guard._cursors[-1] is not None
        assert [guard.accept(token) for token in TOKEN.values()] == [fresh.accept(token) for token in TOKEN.values()]
        for each in (guard, fresh):
            each.rollback(len(each._taken) - at)
