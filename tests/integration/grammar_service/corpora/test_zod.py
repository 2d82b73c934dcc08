"""What zod writes for each of its types: `zod.json` holds `z.toJSONSchema(type)` of zod 4.6.7, with a value of most types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.integration.grammar_service.corpora.serving import SERVED, verdict

TYPES: dict[str, Any] = json.loads((Path(__file__).parent / "zod.json").read_text(encoding="utf-8"))["types"]
MUST_BE_SERVED = {
    *("object", "strict object", "record", "enum", "literal", "literals", "nullable", "union", "discriminated union", "tuple", "array"),
    *("iso date", "email", "uuid", "int", "recursive", "lazy"),
}
WRITTEN = {name: found for name, found in TYPES.items() if "schema" in found}


@pytest.mark.parametrize("name", WRITTEN)
def test_every_type_is_served_or_refused_with_a_reason(name: str, tokenizer: GrammarTokenizer) -> None:
    values = [WRITTEN[name]["value"]] if "value" in WRITTEN[name] else []
    found = verdict(WRITTEN[name]["schema"], values, tokenizer)
    assert found
    assert found == SERVED or name not in MUST_BE_SERVED


def test_all_that_must_be_served_is_there() -> None:
    assert WRITTEN.keys() >= MUST_BE_SERVED
