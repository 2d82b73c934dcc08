"""Part `codec`: bytes and time of tables as xgrammar writes them, and as we pack them. Both are of the same compiled grammar."""

from __future__ import annotations

from collections.abc import Iterator

import redis
import xgrammar

from deployments.reporting.quantiles import median
from deployments.reporting.stopwatch import timed
from grammar_service.backends.xgrammar.backend import XgrammarBackend
from grammar_service.backends.xgrammar.recipe import recipe_of
from grammar_service.backends.xgrammar.tables import shape_of
from grammar_service.errors import GrammarError
from grammar_service.packing import pack, unpack
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from load_tests.grammar.messages import Assignment, Began, Measured, Values
from load_tests.grammar.peers import BareXgrammar

MOST_TABLE_BYTES = 256 << 20
"""Estimated; what is larger is not measured, since one such grammar takes longer than all others."""

_SMALL = GrammarSpec(GrammarKind.JSON_OBJECT, "")


def raw_name(namespace: str, case: str) -> str:
    """Where Redis holds a case's tables as the bare library writes them."""
    return f"{namespace}:raw:{case}"


def measure(assignment: Assignment, tokenizer: GrammarTokenizer) -> Iterator[Began | Measured]:
    """One row a case; with Redis, it leaves each case's bare tables there for the part `ready`."""
    backend, bare = XgrammarBackend(), BareXgrammar(tokenizer)
    # So that no case pays for what a process does once.
    backend.load(backend.compile(_SMALL, tokenizer).data, tokenizer)
    for case in assignment.cases:
        yield Began(case.name)
        try:
            compiled = bare.compile(recipe_of(case.spec))
            payload = backend.compile(case.spec, tokenizer)
        except GrammarError as error:
            yield Measured(case.name, {"fault": str(error)})
            continue
        held: Values = {"payload_bytes": len(payload.data), "holds_tables": payload.expanded_bytes > 0}
        if shape_of(compiled).size.total > MOST_TABLE_BYTES:
            yield Measured(case.name, {**held, "never_expanded": True})
            continue
        yield Measured(case.name, {**held, **_figures(compiled, bare, assignment.rounds)})
        _share(compiled, assignment, case.name)


def _figures(compiled: xgrammar.CompiledGrammar, bare: BareXgrammar, rounds: int) -> Values:
    """Medians over rounds in each of which both ways take their turn."""
    size = len(compiled.serialize_json().encode("utf-8"))
    turns = [_turn(compiled, bare, size) for _ in range(rounds)]
    return {"json_bytes": size, **{name: median(turn[name] for turn in turns) for name in turns[0]}}


def _turn(compiled: xgrammar.CompiledGrammar, bare: BareXgrammar, size: int) -> dict[str, float]:
    text, serialize_ms = timed(compiled.serialize_json)
    packed, encode_ms = timed(lambda: pack(compiled.serialize_json()))
    _, deserialize_ms = timed(lambda: bare.read(text))
    _, decode_ms = timed(lambda: bare.read(unpack(packed, size)))
    return {
        "packed_bytes": len(packed),
        "serialize_ms": serialize_ms,
        "encode_ms": encode_ms,
        "deserialize_ms": deserialize_ms,
        "decode_ms": decode_ms,
    }


def _share(compiled: xgrammar.CompiledGrammar, assignment: Assignment, case: str) -> None:
    if assignment.redis is not None:
        with redis.Redis.from_url(assignment.redis.url, password=assignment.redis.password) as client:
            client.set(raw_name(assignment.redis.namespace, case), compiled.serialize_json().encode("utf-8"))
