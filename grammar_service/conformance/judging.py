"""All instances of one schema by one way to judge them: a grammar, or a validator."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import Any

import msgspec
from jsonschema import Draft202012Validator, SchemaError
from jsonschema.validators import validator_for
from referencing.exceptions import Unresolvable

from grammar_service.conformance.acceptors import Compile, acceptor
from grammar_service.conformance.member_order import MemberOrder
from grammar_service.conformance.schemastore import Collected
from grammar_service.conformance.suite import Case
from grammar_service.errors import GrammarError
from grammar_service.relaxation import relaxed
from grammar_service.relaxation.judging import judged
from grammar_service.schema.json_text import Json
from grammar_service.spec import STANDARD, GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

Validator = Any
"""A class of `jsonschema`: its protocol does not tell of all that is used here."""


class Mark(StrEnum):
    """What becomes of an instance. A grammar accepts it as it is, or (asked for valid ones only) with its members in the schema's order,
    or neither; a validator may reject it for a `format` alone, or not know."""

    ACCEPTED = "accepted"
    REORDERED = "accepted in the schema's order"
    REJECTED = "rejected"
    FORMAT = "rejected for its format"
    UNKNOWN = "unknown"


class Judged(msgspec.Struct, frozen=True):
    """A mark a case; or the message, code and pointer with which the schema is refused."""

    marks: list[Mark] = []
    refused: str | None = None
    pointer: str | None = None
    code: str | None = None

    @classmethod
    def refusal(cls, error: GrammarError) -> Judged:
        return cls(refused=error.message, pointer=error.pointer, code=error.code)


def judged_by_grammar(collected: Collected, compile_schema: Compile, tokenizer: GrammarTokenizer) -> Judged:
    try:
        accepts = compile_schema(collected.schema)
    except GrammarError as error:
        return Judged.refusal(error)
    return _judged(collected, lambda text: accepts(tokenizer.encode(text)))


def judged_with_check(collected: Collected, tokenizer: GrammarTokenizer) -> Judged:
    """By the grammar of what can be enforced, and by the check of the finished answer that all else is left to."""
    spec = GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(collected.schema), STANDARD, closed=False)
    try:
        accepts = acceptor(relaxed(spec, lambda less: acceptor(less, tokenizer)).spec, tokenizer)
    except GrammarError as error:
        return Judged.refusal(error)
    return _judged(collected, lambda text: accepts(tokenizer.encode(text)) and judged(spec, [text]) == [None])


def _judged(collected: Collected, accepts: Callable[[str], bool]) -> Judged:
    def holds(value: Json) -> bool:
        return accepts(json.dumps(value, ensure_ascii=False))

    allowed = partial(_allowed, _validator(collected.schema))
    orders = [MemberOrder(collected.schema, allowed, by_keywords) for by_keywords in (True, False)]
    return Judged([_mark(case, holds, orders) for case in collected.cases])


def _mark(case: Case, holds: Callable[[Json], bool], orders: list[MemberOrder]) -> Mark:
    if holds(case.instance):
        return Mark.ACCEPTED
    reordered = case.valid and any(holds(order.ordered(case.instance)) for order in orders)
    return Mark.REORDERED if reordered else Mark.REJECTED


def judged_by_validator(collected: Collected) -> Judged:
    """By `jsonschema`, in the dialect that the schema names, else the newest."""
    plain = _validator(collected.schema)
    try:
        plain.check_schema(collected.schema)
    except SchemaError as error:
        return Judged(refused=error.message, pointer="".join(f"/{step}" for step in error.absolute_path))
    strict = plain.evolve(format_checker=plain.FORMAT_CHECKER)
    return Judged([_validated(plain, strict, case.instance) for case in collected.cases])


def _validator(schema: Json) -> Validator:
    known: Any = schema
    return validator_for(known, default=Draft202012Validator)(known)


def _validated(plain: Validator, strict: Validator, instance: Json) -> Mark:
    valid = _is_valid(plain, instance)
    if valid is None:
        return Mark.UNKNOWN
    return Mark.REJECTED if not valid else Mark.ACCEPTED if _is_valid(strict, instance) else Mark.FORMAT


def _allowed(validator: Validator, schema: Json, value: Json) -> bool:
    return _is_valid(validator.evolve(schema=schema), value) is not False


def _is_valid(validator: Validator, value: Json) -> bool | None:
    """None: a reference leads nowhere, or Python's `re` does not take a pattern."""
    try:
        return bool(validator.is_valid(value))
    except (Unresolvable, re.error, RecursionError):
        return None
