"""How a value goes on in the prompt, or in the answer so far."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from model_service.jump_forward.prompt_lookup import LONGEST_VALUE, MOST_TEXT, SearchedText, continuation, first_words

PROMPT = """Order note: 8 Picture-Frames for Marek Novotny.\nPlease deliver to "Malmö", Bologna; 18 of them. Marek thanks."""


@pytest.mark.parametrize(
    ("value", "following"),
    [
        ("M", "arek Novotny."),
        ("Mare", "k Novotny."),
        ("marek", " Novotny."),
        ("picture", "-Frames for Mare"),
        ("picture f", "rames for Marek "),
        ("8", " Picture-Frames "),
        ("18 o", "f them. Marek th"),
        ("Malm", "ö"),
        ("Malmö", ""),
        ("Mr. Marek", " Novotny."),
        ("of them. Marek t", "hanks."),
        ("arek", ""),
        ("Ada", ""),
        (" ", ""),
        ("", ""),
    ],
)
def test_a_value_goes_on_as_it_does_where_its_words_stand_first(value: str, following: str) -> None:
    found = _in_prompt(PROMPT.encode(), value.encode(), 16)
    assert found.decode("utf-8", "ignore") == following


def test_a_value_of_several_lines_goes_on_behind_their_ends() -> None:
    code = b'if order["city"] == 1:\n    return 2'
    assert _in_prompt(code, b"order", 20) == b"["
    assert _in_prompt(b"Companies:\nAcme Ltd\nBeta Inc\tDelta", b"Beta", 20) == b" Inc"
    assert _in_prompt(b"Acmeville\nAcme Ltd", b"Ac", 20) == b"meville"
    assert _in_prompt(code, rb"a\nif order", 40, has_escapes=True) == rb"[\"city\"] == 1:\n    return 2"


def test_of_a_long_value_the_end_is_looked_for() -> None:
    words = [f"word{number}" for number in range(50)]
    value = " ".join(["other", *words[:40]])
    assert len(value) > LONGEST_VALUE
    assert _in_prompt(" ".join(words).encode(), value.encode(), 7) == b" word40"
    assert _in_prompt(b"a" * 200, b"a" * 100, 4) == b""


def test_what_the_prompt_does_not_have_goes_on_as_in_the_answer_so_far() -> None:
    prompt, answer = SearchedText.of_prompt(b"2019 was a good year"), SearchedText()
    for piece in (b'{"name": "MENS', b"AH_2019_2019_", b"2019_2"):
        answer.add(piece)
    texts = {"prompt": prompt, "answer": answer}
    assert continuation(texts, b"MENSAH_2019_2019_2019_2", 6) == (b"019_2", "answer")
    assert continuation(texts, b"20", 6) == (b"19 was", "prompt")
    assert continuation(texts, b"mens", 6) == (b"AH_201", "answer")
    assert continuation({"answer": SearchedText(b'{"name": "Ada')}, b"Ada", 6) == (b"", "")


@pytest.mark.parametrize(
    ("text", "count", "found"),
    [
        ("Ada Young, and", 2, "Ada Young"),
        ("Ada Young", 2, None),
        ("Ada", 2, None),
        ("(Malmö) is", 1, "(Malmö"),
        ("Ada Young.", 0, None),
    ],
)
def test_so_many_words_begin_a_text(text: str, count: int, found: str | None) -> None:
    assert first_words(text.encode(), count) == (None if found is None else found.encode())


def test_of_a_long_answer_the_last_part_is_kept() -> None:
    answer = SearchedText(b"first ")
    for number in range(MOST_TEXT // 8):
        answer.add(b"%07d " % number)
    assert len(answer) <= MOST_TEXT
    assert answer.following(b" first ", 8) == b""
    assert answer.following(b" 0016380 ", 7) == b"0016381"


def _in_prompt(prompt: bytes, value: bytes, most: int, has_escapes: bool = False) -> bytes:
    return continuation({"prompt": SearchedText.of_prompt(prompt)}, value, most, has_escapes)[0]


@given(st.text(alphabet='a"\\/\n\tnu0\x1fé', max_size=40))
@example("\\u0041 \\n")
def test_escapes_are_no_words(text: str) -> None:
    """Of a string's JSON: what is a word there is one in the string."""
    escaped = json.dumps(text, ensure_ascii=False)[1:-1].encode()
    searched = SearchedText(escaped)
    for word in "".join(char if char.isalnum() else " " for char in text).split():
        assert searched.following(b" " + word.lower().encode(), 1) != b"" or escaped.lower().endswith(word.lower().encode())
    for letter in b"nrtbfu":
        assert text.encode().lower().count(bytes([letter])) or not searched.following(bytes([letter]), 1)
