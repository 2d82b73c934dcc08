"""What is told of a process that died names an error, and repeats nothing of what it worked at."""

from __future__ import annotations

import pytest

from grammar_service.sandbox.slot import error_name

SCHEMA = '{"properties": {"swordfish": {"const": "swordfish"}}}'


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("Traceback (most recent call last):\n  ...\nMemoryError\n", "MemoryError"),
        (
            f"Traceback (most recent call last):\n  {SCHEMA}\nxgrammar.exception.InvalidJSONError: {SCHEMA}\n",
            "xgrammar.exception.InvalidJSONError",
        ),
        ("terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n", "std::bad_alloc"),
        (f"fatal: {SCHEMA}\n", "it named no error"),
        ("", "it named no error"),
    ],
)
def test_only_the_name_of_the_error_is_told(words: str, name: str) -> None:
    assert error_name(words) == name
