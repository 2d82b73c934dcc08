"""Whether a schema is served, in tests of what generators of schemas write."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from grammar_service.errors import GrammarError
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import accepts, grammar_of, schema_spec

SERVED = "served"


def verdict(schema: Any, values: Iterable[Any], tokenizer: GrammarTokenizer) -> str:
    """SERVED, or why the schema is refused; one that is served accepts the values, however it is read."""
    found = ""
    for closed in (True, False):
        try:
            grammar = grammar_of(replace(schema_spec(schema), closed=closed), tokenizer)
        except GrammarError as error:
            found = error.message
        else:
            found = SERVED
            wrong = [value for value in values if not accepts(grammar, json.dumps(value, ensure_ascii=False))]
            assert wrong == [], (schema, closed)
    return found
