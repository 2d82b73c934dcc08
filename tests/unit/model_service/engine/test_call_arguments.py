"""Arguments of tool calls, read in pieces."""

from __future__ import annotations

import json
from typing import Any

import pytest

from model_service.engine.frontend.call_arguments import ArgumentsReader, JsonArguments, PythonArguments, with_escaped_surrogates

VALUES: list[dict[str, Any]] = [
    {},
    {"a": 1},
    {"city": "Oslo", "tags": ["a", "b'c", 'd"e'], "place": {"at": -5, "of (it)": [1.5, 2e10, [[]], {}]}},
    {"none": None, "yes": True, "no": False, "word": "None, True) False]"},
    {"text": "a\n\t\\\\'\\\"", "é": "größe 🙂", "a-b": "", "from": "x=1, y=2)"},
    {"long": "ab'" * 1000},
]


def pieces(text: str, length: int) -> list[str]:
    return [text[start : start + length] for start in range(0, len(text), length)]


def read(reader: ArgumentsReader, text: str, length: int) -> tuple[Any, str]:
    """The value, and what is behind the arguments."""
    written, waiting = "", pieces(text, length)
    while waiting:
        some, behind = reader.read(waiting.pop(0))
        written += some
        if behind is not None:
            return json.loads(written), behind + "".join(waiting)
    raise AssertionError(f"no end: {written}")


@pytest.mark.parametrize("length", [1, 2, 7, 10_000])
@pytest.mark.parametrize("value", VALUES)
def test_arguments_in_json_end_with_their_object(value: dict[str, Any], length: int) -> None:
    assert read(JsonArguments(), json.dumps(value) + "}]", length) == (value, "}]")


@pytest.mark.parametrize("length", [1, 2, 7, 10_000])
@pytest.mark.parametrize("value", VALUES)
def test_arguments_in_python_are_told_as_json(value: dict[str, Any], length: int) -> None:
    text = ", ".join(f"{name}={argument!r}" for name, argument in value.items())
    assert read(PythonArguments(), f"{text}), g()]", length) == (value, ", g()]")


def test_arguments_in_python_may_have_the_symbols_of_json() -> None:
    assert read(PythonArguments(), "a=null, b=[true, false])", 3) == ({"a": None, "b": [True, False]}, "")


def test_numbers_are_told_as_they_are_written() -> None:
    reader = PythonArguments()
    written = [reader.read(piece)[0] for piece in ("a=1.", "5, b=-0, c=1e", "400)")]
    assert "".join(written) == '{"a": 1.5, "b": -0, "c": 1e400}'


def test_of_a_long_string_nothing_waits() -> None:
    reader = PythonArguments()
    reader.read("text='")
    for piece in pieces("some 'text' of (30) kB" * 1400, 3):
        assert reader.read(piece.replace("'", '"'))[0]
        assert not reader.rest


def test_half_of_a_surrogate_pair_stays_an_escape() -> None:
    text = json.dumps({"a": "\ud800 é \udc00"}, ensure_ascii=False)
    escaped = with_escaped_surrogates(text)
    assert escaped.encode() == b'{"a": "\\ud800 \xc3\xa9 \\udc00"}'
    assert json.loads(escaped) == json.loads(text)
