"""How a value goes on in the prompt."""

from __future__ import annotations

import pytest

from model_service.jump_forward.prompt_lookup import LONGEST_VALUE, PromptLookup, first_words

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
    found = PromptLookup(PROMPT.encode()).continuation(value.encode(), 16)
    assert found.decode("utf-8", "ignore") == following


def test_a_value_of_several_lines_goes_on_behind_their_ends() -> None:
    lookup = PromptLookup(b'if order["city"] == 1:\n    return 2')
    assert lookup.continuation(b"order", 20) == b"["
    assert PromptLookup(b"Companies:\nAcme Ltd\nBeta Inc\tDelta").continuation(b"Beta", 20) == b" Inc"
    assert PromptLookup(b"Acmeville\nAcme Ltd").continuation(b"Ac", 20) == b"meville"
    assert lookup.continuation(rb"a\nif order", 40, has_escapes=True) == rb"[\"city\"] == 1:\n    return 2"


def test_of_a_long_value_the_end_is_looked_for() -> None:
    words = [f"word{number}" for number in range(50)]
    value = " ".join(["other", *words[:40]])
    assert len(value) > LONGEST_VALUE
    assert PromptLookup(" ".join(words).encode()).continuation(value.encode(), 7) == b" word40"
    assert PromptLookup(b"a" * 200).continuation(b"a" * 100, 4) == b""


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
