"""Hostile schemas cost time and memory in proportion to their text, or are refused at once."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from grammar_service.conformance.suite import DRAFTS
from grammar_service.errors import GrammarError, GrammarTooLarge
from grammar_service.schema.dialects.translation import translated

DEEP: Any = json.loads('{"x":' * 120 + "{}" + "}" * 120)
MAKERS: dict[str, Callable[[int], Any]] = {
    "items by place": lambda n: {"items": [{"items": [{}]} for _ in range(n)]},
    "dependencies": lambda n: {"dependencies": {f"p{i}": ["a"] if i % 2 else {} for i in range(n)}},
    "unknown keywords": lambda n: {f"unknown{i}": i for i in range(n)},
    "references into unknown keywords": lambda n: {
        "allOf": [{"$ref": f"#/x/p{i}"} for i in range(n)],
        "x": {f"p{i}": {} for i in range(n)},
    },
    "a chain of them": lambda n: {"$ref": "#/x/0", "x": [{"$ref": f"#/x/{i + 1}"} for i in range(n)] + [True]},
    "references to one thing in many spellings": lambda n: {
        "allOf": [{"$ref": f"#/x/{i % 8:0{1 + i % 7}}"} for i in range(n)],
        "x": [{"items": [True] * (n // 8)} for _ in range(8)],
    },
    "references ever deeper": lambda n: {"allOf": [{"$ref": "#" + "/x" * (i % 120)} for i in range(n)], "x": DEEP["x"]},
    "names": lambda n: {"$defs": {f"p{i}": {"$id": f"u{i}", "$anchor": "a", "$ref": "#a"} for i in range(n)}, "$id": "https://e.com/"},
    "dynamic anchors": lambda n: {"$defs": {f"p{i}": {"$id": f"u{i}", "$dynamicAnchor": "a"} for i in range(n)}, "$id": "https://e.com/"},
    "references to itself": lambda n: {"anyOf": [{"properties": {"a": {"$ref": "#"}}} for _ in range(n)]},
    "old references": lambda n: {"$schema": DRAFTS["draft7"], "allOf": [{"$ref": "#/x", "items": {}} for _ in range(n)], "x": {}},
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_ten_thousand_parts_take_a_moment(make: Callable[[int], Any]) -> None:
    document = make(10_000)
    started = time.process_time()
    translated(document)
    assert time.process_time() - started < 3


TOO_LARGE: dict[str, Any] = {
    "many parts": {"anyOf": [True] * 200_000},
    "a long name": {"properties": {"a" * 200_000: {"anyOf": [True] * 20_000}}},
    "a long base": {"$id": "https://e.com/" + "a" * 200_000 + "/", "items": [{"$id": "b", "$ref": "#"} for _ in range(20_000)]},
    "a long base of references": {"$id": "https://e.com/" + "a" * 200_000 + "/", "items": [{"$ref": "b"} for _ in range(20_000)]},
    "a long resource": {"properties": {"a" * 200_000: {"$id": "b", "not": {"items": [{"$ref": "#/not"} for _ in range(20_000)]}}}},
}


@pytest.mark.parametrize("document", TOO_LARGE.values(), ids=TOO_LARGE)
def test_what_would_grow_beyond_its_text_is_refused_at_once(document: Any) -> None:
    tracemalloc.start()
    started = time.process_time()
    with pytest.raises(GrammarError) as caught:
        translated(document)
    assert time.process_time() - started < 5
    assert tracemalloc.get_traced_memory()[1] < 200 * 2**20
    tracemalloc.stop()
    assert isinstance(caught.value, GrammarTooLarge) or "nothing is fetched" in caught.value.message
