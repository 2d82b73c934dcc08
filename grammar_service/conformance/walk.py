"""One group of cases against one way to compile its schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice, permutations, product

import msgspec

from grammar_service.conformance.acceptors import Acceptor, Compile
from grammar_service.conformance.suite import Case, Group
from grammar_service.conformance.verdict import Reason
from grammar_service.errors import GrammarError, NothingMatches
from grammar_service.schema.json_text import Json
from grammar_service.schema.keywords import mapped, walk
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

_MOST_ORDERS = 5000


class Walked(msgspec.Struct, frozen=True):
    """`accepted`: one a case. `reasons`: why a valid case is rejected, empty for all others. `refused`: the message, if the schema
    is refused; then the lists are empty."""

    accepted: list[bool] = []
    reasons: list[str] = []
    refused: str | None = None


def walk_group(group: Group, compile_schema: Compile, tokenizer: GrammarTokenizer, explain: bool) -> Walked:
    """Compile the schema, and try every instance as `json.dumps` writes it. A refusal because nothing matches rejects all of them."""
    try:
        accepts = compile_schema(group.schema)
    except NothingMatches:
        return Walked([False] * len(group.cases), [Reason.NONE if explain and case.valid else "" for case in group.cases])
    except GrammarError as error:
        return Walked(refused=f"{error.pointer or ''} {error.message}".strip())
    accepted = [accepts(tokenizer.encode(json.dumps(case.instance))) for case in group.cases]
    reasons = [
        _reason(group.schema, case, accepts, compile_schema, tokenizer) if explain and case.valid and not held else ""
        for case, held in zip(group.cases, accepted, strict=True)
    ]
    return Walked(accepted, reasons)


def _reason(schema: Json, case: Case, accepts: Acceptor, compile_schema: Compile, tokenizer: GrammarTokenizer) -> str:
    def accepts_any(values: Iterator[Json]) -> bool:
        return any(accepts(tokenizer.encode(json.dumps(value, ensure_ascii=False))) for value in islice(values, _MOST_ORDERS))

    whole = _with_integers(case.instance)
    if accepts_any(iter([whole])):
        return Reason.SPELLING
    if accepts_any(_orders(whole)):
        return Reason.ORDER
    if _asks_for_multiples(schema) and accepts_any(iter([_without_signs(whole)])):
        return Reason.SIGN
    try:
        unformatted = compile_schema(_without_format(schema))
    except GrammarError:
        return Reason.NONE
    return Reason.FORMAT if unformatted(tokenizer.encode(json.dumps(case.instance))) else Reason.NONE


def _orders(value: Json) -> Iterator[Json]:
    """The value with the members of its objects in every order."""
    if isinstance(value, list):
        yield from (list(items) for items in product(*([*_orders(item)] for item in value)))
    elif isinstance(value, dict):
        for names in permutations(value):
            for members in product(*([*_orders(value[name])] for name in names)):
                yield dict(zip(names, members, strict=True))
    else:
        yield value


def _with_integers(value: Json) -> Json:
    """The equal value without floats that are whole."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_with_integers(item) for item in value]
    if isinstance(value, dict):
        return {name: _with_integers(member) for name, member in value.items()}
    return value


def _asks_for_multiples(schema: Json) -> bool:
    return any(isinstance(inner, dict) and "multipleOf" in inner for _, inner in walk(schema))


def _without_signs(value: Json) -> Json:
    """The value with its numbers above zero."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return abs(value)
    if isinstance(value, list):
        return [_without_signs(item) for item in value]
    if isinstance(value, dict):
        return {name: _without_signs(member) for name, member in value.items()}
    return value


def _without_format(schema: Json) -> Json:
    if not isinstance(schema, dict):
        return schema
    return mapped({keyword: value for keyword, value in schema.items() if keyword != "format"}, _without_format)
