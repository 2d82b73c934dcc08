from __future__ import annotations

import pytest

from grammar_service.backends.xgrammar.classes import characters

ALL = 0x110000 - 0x800


@pytest.mark.parametrize(
    ("content", "count"),
    [
        ([0, 97, 97], 1),
        ([0, 97, 97, 97, 97], 1),
        ([0, 97, 99, 98, 100], 4),
        ([0, 99, 97], 0),
        ([0], 0),
        ([0, 0xD800, 0xDFFF], 0),
        ([0, 0xD7FF, 0xD800], 1),
        ([1], ALL),
        ([1, 97, 97], ALL - 1),
        ([1, 0, 0x10FFFF], 0),
        ([1, 0, 0xD7FF, 0xE000, 0x10FFFF], 0),
        ([1, 0, 96, 98, 0x10FFFF, 100, 200], 1),
    ],
)
def test_every_character_counts_once_and_surrogates_never(content: list[int], count: int) -> None:
    assert characters(content) == count
