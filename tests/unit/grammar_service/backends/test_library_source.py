from __future__ import annotations

from time import process_time
from typing import Any

import pytest

from grammar_service.backends.llguidance.backend import LlguidanceBackend
from grammar_service.limits import Limits
from grammar_service.resolve import resolve
from grammar_service.spec import FLEXIBLE, STANDARD, GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import schema_spec

SCHEMAS = [
    {"type": "object", "properties": {"a": {"type": "string", "pattern": "^x+$"}}, "additionalProperties": {"type": "integer"}},
    {"allOf": [{"type": "integer"}, {"minimum": 3}]},
    {"$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}}}, "$ref": "#/$defs/n"},
]


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("whitespace", [STANDARD, FLEXIBLE])
def test_what_was_written_elsewhere_compiles_to_the_same_payload(schema: Any, whitespace: str, tokenizer: GrammarTokenizer) -> None:
    spec, backend = schema_spec(schema, whitespace), LlguidanceBackend()
    library_source = backend.library_source(spec)
    assert library_source is not None
    assert backend.compile(spec, tokenizer, library_source).data == backend.compile(spec, tokenizer).data


def test_a_format_at_many_places_is_written_once() -> None:
    """Each of sixty took 35 ms of the process that answers everybody."""

    def seconds(places: int) -> float:
        members = {f"mail_{places}_{number}": {"type": "string", "format": "idn-email"} for number in range(places)}
        spec, started = schema_spec({"type": "object", "properties": members}), process_time()
        assert LlguidanceBackend().library_source(spec) is not None
        return process_time() - started

    seconds(1)
    assert seconds(60) < 0.5


def test_a_stopgap_travels_with_what_was_written_for_it() -> None:
    spec = schema_spec({"type": "object", "properties": {"a": {"type": "integer"}}})
    request = resolve(spec, Limits(), "fingerprint").request().on_stopgap()
    assert request is not None
    assert request.library_source == LlguidanceBackend().library_source(spec)


def test_only_schemas_are_written_beforehand() -> None:
    assert LlguidanceBackend().library_source(GrammarSpec(GrammarKind.CHOICE, '["a", "b"]')) is None


@pytest.mark.parametrize("schema", [{"type": "integer", "const": 10**310}, {"type": ["integer", "null"], "enum": [10**310, 1]}])
def test_an_integer_beyond_all_floats_is_an_integer(schema: dict[str, Any]) -> None:
    assert resolve(schema_spec(schema), Limits(), "f").key
