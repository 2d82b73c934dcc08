"""A declared property keeps to its schema however its name is spelt, also where no other backend could step in."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from grammar_service.backends import select_backend
from grammar_service.errors import UnsupportedGrammar
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import accepts, grammar_of

KINDS = {"a tag": ("{", "}"), "indented": ("{\n  ", "\n}")}


def spec_of(names: list[str], kind: str) -> GrammarSpec:
    schema = {"type": "object", "properties": {name: {"type": "integer"} for name in names}, "additionalProperties": {"type": "string"}}
    if kind == "indented":
        return GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(schema), "indent:2", closed=False)
    tag = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": schema}}
    return GrammarSpec(GrammarKind.STRUCTURAL_TAG, json.dumps(tag), closed=False)


def spellings(name: str) -> Iterator[str]:
    yield json.dumps(name)
    yield json.dumps(name).replace("/", "\\/")
    for at, letter in enumerate(name):
        for code in (f"\\u{ord(letter):04x}", f"\\u{ord(letter):04X}"):
            yield f"{json.dumps(name[:at])[:-1]}{code}{json.dumps(name[at + 1 :])[1:]}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("names", [["a"], ["role", "id"], ["a/b"], ["ab", "abc", "b"], [""], ["a b"]])
def test_no_spelling_escapes_the_schema(names: list[str], kind: str, tokenizer: GrammarTokenizer) -> None:
    grammar, (opening, closing) = grammar_of(spec_of(names, kind), tokenizer), KINDS[kind]
    for name in names:
        assert accepts(grammar, f"{opening}{json.dumps(name)}: 1{closing}")
        assert not [text for text in spellings(name) if accepts(grammar, f'{opening}{text}: "x"{closing}')]
    for other in ("z", f"z{names[0]}", "z\\u0061", "~"):
        assert accepts(grammar, f'{opening}"{other}": "x"{closing}')


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["é", "a\\b", 'q"q', "\n"])
def test_names_that_the_library_mistakes_are_refused(name: str, kind: str, tokenizer: GrammarTokenizer) -> None:
    with pytest.raises(UnsupportedGrammar, match=r"escapes may spell its name|more than plain ASCII"):
        grammar_of(spec_of([name], kind), tokenizer)


@pytest.mark.parametrize("whitespace", ["standard", "flexible"])
@pytest.mark.parametrize("name", ["größe", 'a"b', "a\\b"])
def test_elsewhere_another_backend_takes_them(name: str, whitespace: str, tokenizer: GrammarTokenizer) -> None:
    """The library would let `{"a"c": "x"}` pass, and bytes that are no UTF-8."""
    schema = {"type": "object", "properties": {name: {"type": "string"}}, "additionalProperties": {"type": "string"}}
    spec = GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(schema), whitespace, closed=False)
    assert select_backend(spec).name == "llguidance"
    grammar = grammar_of(spec, tokenizer)
    assert accepts(grammar, f'{{{json.dumps(name, ensure_ascii=False)}: "x"}}')
    assert not accepts(grammar, f'{{"{name[:1]}"c": "x"}}')
