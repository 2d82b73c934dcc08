from __future__ import annotations

import pytest
import regex

from grammar_service.regexes.plain import plain_patterns
from tests.unit.grammar_service.regexes.emitted_patterns import OTHERS, ZOD

PATTERNS = {**ZOD, **OTHERS}


def matches(pattern: str, text: str) -> bool:
    return all(regex.search(regex.sub(r"(?<!\\)\$", r"\\Z", plain), text) for plain in plain_patterns(pattern))


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns_that_generators_write_are_read(name: str) -> None:
    pattern, inside, outside = PATTERNS[name]
    assert [text for text in inside if not matches(pattern, text)] == []
    assert [text for text in outside if matches(pattern, text)] == []


@pytest.mark.parametrize("name", PATTERNS)
def test_they_stay_small(name: str) -> None:
    assert sum(map(len, plain_patterns(PATTERNS[name][0]))) <= 8_000
