"""A rewritten schema allows exactly the values that the original does."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from grammar_service.errors import GrammarError
from grammar_service.json_schema import schema_of
from grammar_service.schema.rewrite import rewritten
from tests.unit.grammar_service.random_schemas import random_document, random_instance


def rewrite_of(document: Any, closed: bool) -> Any:
    """The rewrite, None where there is none."""
    try:
        return rewritten(schema_of(document, closed).normal)
    except GrammarError:
        return None


@given(st.integers(0, 2**40))
@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_rewrite_validates_the_same_instances(seed: int) -> None:
    choose = random.Random(seed)
    document = random_document(choose)
    rewrite = rewrite_of(document, closed=False)
    assume(rewrite is not None)
    Draft202012Validator.check_schema(rewrite)
    before, after = Draft202012Validator(document), Draft202012Validator(rewrite)
    values = [random_instance(choose) for _ in range(30)]
    assert [value for value in values if before.is_valid(value) != after.is_valid(value)] == [], (document, rewrite)
