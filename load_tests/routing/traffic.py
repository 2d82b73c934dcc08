"""Who asks for which schema: lists of HTTP bodies, the same ones at every call."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random
from typing import Any

from load_tests.corpus.families.building import Schema
from load_tests.corpus.make_schemas import families
from model_service.embedded.tasks import exercises

SEED = 23
ZIPF = 1.1
MAX_TOKENS = 128
"""Room for whole answers: where they are cut short, one ingress takes longer for a request than four small engines, and seats stay free."""
LARGEST_BYTES = 10_000
HOT_SHARE = 0.8
HOT_RANK = 12
"""In popularity: a schema that is rare until everybody asks for it."""
_LEFT_OUT = "tools"
"""Their schemas are structural tags."""

Body = dict[str, Any]


def schemas() -> list[Schema]:
    """All JSON Schemas of the families that are no longer than `LARGEST_BYTES`, shuffled: popularity has nothing to do with size."""
    found = [schema for family, members in families().items() if family != _LEFT_OUT for schema in members.values()]
    short = [schema for schema in found if len(json.dumps(schema)) <= LARGEST_BYTES]
    Random(SEED).shuffle(short)
    return short


def popular(count: int) -> list[Body]:
    """By Zipf's law."""
    return _bodies(_ranks(count, Random(SEED)))


def hot(count: int) -> list[Body]:
    """`HOT_SHARE` of all requests for one schema, the others by Zipf's law."""
    random = Random(SEED + 1)
    return _bodies([HOT_RANK if random.random() < HOT_SHARE else rank for rank in _ranks(count, random)])


def each(count: int, max_tokens: int) -> list[Body]:
    """One request for each of the first schemas, with next to nothing to read."""
    short = [{"role": "user", "content": "Answer."}]
    return [{**_body(schema, ""), "messages": short, "max_tokens": max_tokens} for schema in schemas()[:count]]


def _ranks(count: int, random: Random) -> list[int]:
    weights = [(rank + 1) ** -ZIPF for rank in range(len(schemas()))]
    return random.choices(range(len(weights)), weights, k=count)


def _bodies(ranks: Sequence[int]) -> list[Body]:
    known = schemas()
    documents = islice(_documents(), len(ranks))
    return [_body(known[rank], document) for rank, document in zip(ranks, documents, strict=True)]


def _documents() -> Iterator[str]:
    return (exercise.question.partition("\n\n")[2] for exercise in exercises(SEED, held_out=True))


def _body(schema: Schema, document: str) -> Body:
    fields = ", ".join(schema.get("properties", ())) or "everything"
    return {
        "messages": [{"role": "user", "content": f"Extract {fields} as JSON.\n\n{document}"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "asked", "strict": True, "schema": schema}},
        "max_tokens": MAX_TOKENS,
        "temperature": 0,
    }
