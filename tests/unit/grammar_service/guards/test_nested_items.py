"""Items in items, where none may come twice."""

from __future__ import annotations

import json

import pytest

from grammar_service.guards.bodies import MAX_NESTED_ITEMS
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import accepts, grammar_of, schema_spec
from tests.tokenizers.tiny_tokenizer import VOCAB_SIZE, tiny_tokenizer


@pytest.mark.parametrize(("depth", "ends"), [(MAX_NESTED_ITEMS, True), (MAX_NESTED_ITEMS + 1, False)])
def test_an_item_is_nested_only_so_deep(depth: int, ends: bool) -> None:
    tokenizer = GrammarTokenizer.from_huggingface(tiny_tokenizer(), VOCAB_SIZE)
    matcher = grammar_of(schema_spec({"type": "array", "uniqueItems": True}), tokenizer, "xgrammar").matcher(None, 0)
    token = {letter: tokenizer.vocabulary.index(letter) for letter in (b"[", b"]")}
    brackets = [b"["] * (1 + depth) + [b"]"] * (1 + depth)
    assert all(matcher.accept(token[bracket]) for bracket in brackets) is ends


def test_long_chains_of_members_are_compared(tokenizer: GrammarTokenizer) -> None:
    """States that stood in one another were beyond Python's recursion limit, and took seconds to compare."""
    names = [f"c{number}" for number in range(250)]
    constants = {name: {"$ref": "#/$defs/c"} for name in names}

    def closed(**properties: object) -> dict[str, object]:
        return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}

    item = closed(**constants, inner=closed(**constants, b={"type": "boolean"}))
    grammar = grammar_of(
        schema_spec({"$defs": {"c": {"const": True}}, "type": "array", "uniqueItems": True, "items": item}), tokenizer, "xgrammar"
    )
    said = dict.fromkeys(names, True)
    first, second = ({**said, "inner": {**said, "b": is_so}} for is_so in (True, False))
    assert accepts(grammar, json.dumps([first, second]))
    assert not accepts(grammar, json.dumps([first, second, first]))
