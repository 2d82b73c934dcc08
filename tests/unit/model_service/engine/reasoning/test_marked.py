"""Reasoning is read between its marks, in any pieces, and ends for the engine at the same place."""

from __future__ import annotations

import random
from itertools import accumulate, pairwise
from types import SimpleNamespace

import pytest

from model_service.engine.reasoning.marked import EndSearch, MarkedReader, ReasoningMarks, Straddling

MARKS = ReasoningMarks("<begin>", "\n<end>", ("\n[end]",), ("<next>",))
TEXTS = {
    "<begin>I think\n<end>{}": ("I think", "{}"),
    "<begin>I think\n[end]{}\n<end>": ("I think", "{}\n<end>"),
    "<begin>a<next>b\n\n \n<end>": ("ab\n\n ", ""),
    "no mark\n<end>x": ("no mark", "x"),
    "<begin>goes on\n<en": ("goes on\n<en", None),
    "<begin>goes on <ne": ("goes on <ne", None),
    "<be": ("", None),
    "<begin>\n<end>\n<end>": ("", "\n<end>"),
}


def pieces(text: str, seed: int) -> list[str]:
    chance = random.Random(seed)
    places = [0, *sorted(chance.sample(range(1, len(text)), k=min(len(text) - 1, chance.randint(1, 8)))), len(text)]
    return [text[first:last] for first, last in pairwise(places)]


@pytest.mark.parametrize("text", TEXTS)
def test_it_is_the_same_in_any_pieces(text: str) -> None:
    for seed in range(50):
        reader, told, content = MarkedReader(MARKS), "", None
        for piece in pieces(text, seed):
            if content is not None:
                content += piece
                continue
            reasoning, content = reader.read(piece)
            told += reasoning
        assert (told + (reader.end() if content is None else ""), content) == TEXTS[text]


def test_the_engine_sees_the_end_in_the_token_that_completes_it() -> None:
    tokens = list(b"prompt\n<end>a\n<end>b")
    reasoner = SimpleNamespace(model_tokenizer=SimpleNamespace(decode=lambda ids: bytes(ids).decode()))
    search = EndSearch(MARKS, reasoner, len(b"prompt\n<end>"))
    found = [length for length in accumulate([1] * len(tokens)) if search(tokens[:length], tokens[length - 1 : length])]
    assert found == [len(tokens) - 1]
    assert search(tokens, tokens[-3:])
    assert not search(tokens, tokens[-1:])


def test_no_token_goes_on_behind_a_mark() -> None:
    vocabulary = [b"<", b"end", b">", b">{", b"end>a>", b"\n<end>", b"\n<end>x", b"x>y", b"", b"d>"]
    ends = Straddling(MARKS, vocabulary)
    assert ends.behind(b"text\n<end") == {3, 6}
    assert ends.behind(b"text\n<") == {4, 6}
    assert ends.behind(b"text") == {6}
    assert ends.tokens == {3, 4, 6}


@pytest.mark.parametrize(
    ("prompt", "is_open"),
    [
        ("ask", False),
        ("ask <begin> I think", True),
        ("<begin> I think\n<end> so", False),
        ("<begin> one\n[end] so <begin> two", True),
        ("<begin></think>", False),
    ],
)
def test_a_prompt_may_end_within_the_reasoning(prompt: str, is_open: bool) -> None:
    assert MARKS.is_open_in(prompt) is is_open
