"""Rules that may begin at one place: the library takes the square of their number."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import xgrammar

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.backends import backend_named
from grammar_service.backends.xgrammar.left_corners import MAX_LEFT_CORNERS, has_too_many_left_corners
from grammar_service.errors import GrammarTooLarge
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer


def rules(count: int) -> str:
    return "\n".join(f'r{each} ::= "a{each}" r{each} "y" | "z{each}"' for each in range(count))


def named(count: int, between: str) -> str:
    return between.join(f"r{each}" for each in range(count))


GRAMMARS: dict[str, Callable[[int], str]] = {
    "at the start": lambda count: f"root ::= {named(count, ' | ')}\n{rules(count)}",
    "behind a text": lambda count: f'root ::= "q" ({named(count, " | ")})\n{rules(count)}',
    "one in another": lambda count: (
        "root ::= r0\n" + "\n".join(f'r{each} ::= r{each + 1} "a" | "b"' for each in range(count - 1)) + f'\nr{count - 1} ::= "c"'
    ),
    "behind what may be empty": lambda count: f'root ::= {named(count, " ")} "q"\n{rules(count)}'.replace('| "z', '| "" | "z'),
}


@pytest.mark.parametrize("grammar", GRAMMARS.values(), ids=GRAMMARS)
def test_they_are_counted(grammar: Callable[[int], str]) -> None:
    assert not has_too_many_left_corners(xgrammar.Grammar.from_ebnf(grammar(MAX_LEFT_CORNERS - 2)))
    assert has_too_many_left_corners(xgrammar.Grammar.from_ebnf(grammar(MAX_LEFT_CORNERS + 1)))


def test_what_comes_one_after_the_other_does_not_begin_at_one_place() -> None:
    in_turn = f"root ::= {named(2 * MAX_LEFT_CORNERS, ' ')}\n{rules(2 * MAX_LEFT_CORNERS)}"
    assert not has_too_many_left_corners(xgrammar.Grammar.from_ebnf(in_turn))
    chain = "root ::= r0\n" + "\n".join(f'r{each} ::= "a" r{each + 1} | "b"' for each in range(2 * MAX_LEFT_CORNERS))
    assert not has_too_many_left_corners(xgrammar.Grammar.from_ebnf(f'{chain}\nr{2 * MAX_LEFT_CORNERS} ::= "c"'))


def test_a_schema_with_too_many_is_refused() -> None:
    tokenizer, library = GrammarTokenizer.load(EMBEDDED_WEIGHTS), backend_named("xgrammar")
    count = MAX_LEFT_CORNERS + 1
    objects = {f"d{each}": {"type": "object", "properties": {f"a{each}": {"$ref": f"#/$defs/d{each}"}}} for each in range(count)}
    schema = {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in objects], "$defs": objects}
    with pytest.raises(GrammarTooLarge, match="begin at one place"):
        library.compile(GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(schema)), tokenizer)
