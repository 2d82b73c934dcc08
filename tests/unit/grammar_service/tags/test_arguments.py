"""The types of arguments, as a reader finds them, and as the service adds them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from grammar_service.errors import UnsupportedGrammar
from grammar_service.tags.arguments import Conversion, Member, inferred_types, members_of, with_explicit_types

A = {"$ref": "#/$defs/A"}


@pytest.mark.parametrize(
    ("member", "definition", "types"),
    [
        ({"type": "string"}, True, None),
        ({"enum": ["a", 1]}, True, None),
        ({"const": 5}, True, ["integer"]),
        (A, {"type": "integer"}, ["integer"]),
        (A, {"type": "string"}, None),
        ({"anyOf": [A, {"type": "null"}]}, {"type": "object"}, ["null", "object"]),
        ({"items": {"type": "string"}}, True, ["array"]),
        (True, True, ["array", "boolean", "null", "number", "object", "string"]),
        (A, A, ["array", "boolean", "null", "number", "object", "string"]),
        ({"$ref": "#/$defs/B"}, True, ["array", "boolean", "null", "number", "object", "string"]),
        (A, {"type": "number of"}, None),
    ],
)
def test_types_are_added_where_the_reader_would_miss_them(member: Any, definition: Any, types: list[str] | None) -> None:
    schema: dict[str, Any] = {"properties": {"a": member}, "$defs": {"A": definition}}
    found: Any = with_explicit_types(schema)
    if types is None:
        assert found is schema
    else:
        assert found["properties"]["a"] == {**(member if isinstance(member, dict) else {}), "type": types}
        assert inferred_types(found["properties"]["a"]) >= set(types)


@pytest.mark.parametrize(
    ("member", "conversion", "kind"),
    [
        ({"enum": [1, "a"]}, Conversion.DIRECT_TYPES, ["integer", "string"]),
        ({"anyOf": [{"type": ["integer", "null"]}, {"type": "string"}]}, Conversion.DIRECT_TYPES, ["integer", "null", "string"]),
        ({"allOf": [{"type": "integer"}]}, Conversion.DIRECT_TYPES, ["integer"]),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, Conversion.DIRECT_TYPES, None),
        ({"enum": ["a", "b"]}, Conversion.DIRECT_TYPES, None),
        ({"enum": ["a", "b"]}, Conversion.STRING_OR_JSON, "string"),
        ({"type": ["string"]}, Conversion.STRING_OR_JSON, "string"),
        ({"type": ["string", "null"]}, Conversion.STRING_OR_JSON, None),
        ({"const": 5}, Conversion.STRING_OR_JSON, None),
        (True, Conversion.STRING_OR_JSON, ["array", "boolean", "null", "number", "object", "string"]),
    ],
)
def test_readers_miss_types_in_different_places(member: Any, conversion: Conversion, kind: Any) -> None:
    schema: dict[str, Any] = {"properties": {"a": member}}
    told: Any = {**(member if isinstance(member, dict) else {}), **({"type": kind} if kind else {})}
    assert with_explicit_types(schema, conversion) == {"properties": {"a": told}}


def member_of(schema: dict[str, Any], conversion: Conversion) -> Member:
    [found] = members_of({"properties": {"a": schema}}, True, True, conversion)
    return found


def test_no_null_is_written_where_the_reader_would_take_it_for_a_string() -> None:
    found = member_of({"type": ["string", "null"]}, Conversion.DIRECT_TYPES)
    assert found.strings is not None
    assert found.document is None
    found = member_of({"type": ["string", "null", "integer"]}, Conversion.DIRECT_TYPES)
    assert found.document is not None
    assert found.document["not"] == {"type": ["string", "null"]}
    assert member_of({"type": ["string", "null", "object"]}, Conversion.DIRECT_TYPES).strings is None
    assert member_of({"type": ["integer", "null"]}, Conversion.DIRECT_TYPES).document == {"type": ["integer", "null"]}


@pytest.mark.parametrize("schema", [{"type": ["string", "null"], "enum": [None]}, {"anyOf": [{"type": "string"}, True]}, {"enum": [1]}])
def test_what_the_reader_cannot_tell_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedGrammar, match="needs a `type`") as caught:
        member_of(schema, Conversion.DIRECT_TYPES)
    assert caught.value.pointer == "/properties/a"


@pytest.mark.parametrize(("kind", "is_raw"), [("string", True), (["string", "integer"], False), ("integer", False)])
def test_only_strings_alone_are_written_as_text_where_the_reader_knows_no_other_type(kind: Any, is_raw: bool) -> None:
    found = member_of({"type": kind}, Conversion.STRING_OR_JSON)
    assert (found.strings is not None, found.document is not None) == (is_raw, not is_raw)


@pytest.mark.parametrize("name", ["", " a", "a\u2028", "a>b", 'a"', "</arg_key>", "a\nb"])
def test_names_that_would_not_be_read_back_are_refused(name: str) -> None:
    with pytest.raises(UnsupportedGrammar, match="name") as caught:
        list(members_of({"properties": {name: {"type": "string"}}}, True, True))
    assert caught.value.pointer == f"/properties/{name.replace('/', '~1')}"


@pytest.mark.parametrize("name", ["a", "a b", "a.b-c", "é", "a=b", "a'b", "$a/b"])
def test_other_names_are_written(name: str) -> None:
    assert [member.name for member in members_of({"properties": {name: {"type": "string"}}}, True, True)] == [name]


@pytest.mark.parametrize("kind", [["string", {}], {}, 5, [["x"]]])
def test_what_is_no_type_is_left_for_the_reader_of_schemas_to_refuse(kind: Any) -> None:
    assert with_explicit_types({"properties": {"a": {"type": kind}, "b": {"anyOf": [{"type": kind}]}}})


def test_references_that_double_at_each_level_take_no_longer_than_their_number() -> None:
    definitions: dict[str, Any] = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 3} for n in range(3000)}
    began = time.thread_time()
    with_explicit_types({"properties": {f"p{n}": {"$ref": f"#/$defs/a{n}"} for n in range(100)}, "$defs": definitions})
    assert time.thread_time() - began < 1
