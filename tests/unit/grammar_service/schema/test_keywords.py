"""Where subschemas are."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import mapped, mapped_at, subschemas, walk
from grammar_service.schema.pointer import resolve
from tests.unit.grammar_service.schema.random_schemas import random_document

seeds = st.integers(0, 2**40)


@given(seeds)
def test_walking_visits_what_stands_at_its_pointers(seed: int) -> None:
    document = random_document(random.Random(seed))
    assert all(resolve(document, pointer) is schema for pointer, schema in walk(document))


@given(seeds)
def test_every_direct_subschema_is_replaced_once_and_nothing_else(seed: int) -> None:
    document = random_document(random.Random(seed))
    inner = [schema for _, schema in subschemas("", document)]
    met: list[Json] = []

    def counted(schema: Json) -> Json:
        met.append(schema)
        return {"title": len(met)}

    copy = mapped(document, counted)
    assert list(map(id, met)) == list(map(id, inner))
    assert [schema for _, schema in subschemas("", copy)] == [{"title": index + 1} for index in range(len(inner))]
    assert mapped(document, lambda schema: schema) == document


@given(seeds)
def test_pointers_are_those_of_the_subschemas(seed: int) -> None:
    document = random_document(random.Random(seed))
    copy = mapped_at("/a", document, lambda _, pointer: {"title": pointer})
    assert [schema for _, schema in subschemas("", copy)] == [{"title": pointer} for pointer, _ in subschemas("/a", document)]


def test_names_of_properties_and_data_are_no_keywords() -> None:
    schema: Json = {"properties": {"items": {"const": {"items": 1}}}, "enum": [{"not": 1}], "allOf": {"a": 1}}
    assert isinstance(schema, dict)
    assert mapped(schema, lambda _: True) == {**schema, "properties": {"items": True}}
