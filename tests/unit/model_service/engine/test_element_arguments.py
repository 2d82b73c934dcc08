"""Arguments that are elements of XML."""

from __future__ import annotations

import json
from typing import Any

import pytest
import regex

from model_service.engine.frontend.element_arguments import ElementArguments

ELEMENT = regex.compile(r'<p name="([^"]+)">(?:<!\[CDATA\[(.*?)\]\]>|([^<]*))</p>', regex.DOTALL)
SCHEMAS = {"text": {"type": "string"}, "many": {"type": "array"}, "size": {"type": "number"}, "on": {"type": "boolean"}}


def read(text: str, length: int) -> tuple[str, str]:
    reader, pieces = ElementArguments(ELEMENT, "</f>", SCHEMAS), [text[start : start + length] for start in range(0, len(text), length)]
    for index, piece in enumerate(pieces):
        written, behind = reader.read(piece)
        if behind is not None:
            return written, behind + "".join(pieces[index + 1 :])
        assert not written
    raise AssertionError("no end")


@pytest.mark.parametrize("length", [1, 3, 10_000])
def test_they_are_told_at_their_end_by_their_schemas(length: int) -> None:
    text = (
        '<p name="text"><![CDATA[a < "b"]]></p><p name="many">[1, {}]</p><p name="size">9007199254740993</p><p name="on">true</p></f>, <f>'
    )
    written, behind = read(text, length)
    assert json.loads(written) == {"text": 'a < "b"', "many": [1, {}], "size": 9007199254740993, "on": True}
    assert behind == ", <f>"


@pytest.mark.parametrize("value", ["[" * 20_000 + "]" * 20_000, '["\\ud800"]'])
def test_what_is_nested_deep_or_half_of_a_character_is_json_that_can_be_sent(value: str) -> None:
    written: Any = read(f'<p name="many">{value}</p></f>', 10_000)[0]
    assert written.encode().decode() == f'{{"many": {value}}}'
