"""The library behind `LlguidanceBackend`: compiles specs to payloads, and loads payloads."""

from __future__ import annotations

import json
import time

import llguidance
import msgspec

from grammar_service.backends.choice import choices_of
from grammar_service.backends.llguidance.lark_text import literal as lark_literal
from grammar_service.backends.llguidance.layout import options_of
from grammar_service.backends.llguidance.load_cost import bounded_load
from grammar_service.backends.llguidance.matcher import LlguidanceGrammar, LlguidancePayload
from grammar_service.backends.llguidance.source import LibrarySource, read_source
from grammar_service.backends.mask_budget import check_mask_times
from grammar_service.backends.protocol import CompiledGrammar, CompiledPayload
from grammar_service.errors import ArtifactError, GrammarError, GrammarTooLarge, InvalidGrammar, UnsupportedGrammar
from grammar_service.guards.plan import Plan
from grammar_service.regexes.plain import plain_full_match
from grammar_service.regexes.rendering import literal
from grammar_service.spec import FLEXIBLE, JSON_KINDS, GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

LIMITS = ("too many expressions", "too many states", "fuel exhausted")
"""Of the library's own (llguidance 1.7): where a machine is fast they are reached before ours."""
_PAYLOAD = msgspec.msgpack.Decoder(LlguidancePayload)
_UNFORCED = '%llguidance {"no_forcing": true}\n'
"""Else where text is forced a mask has one token, of that text's own sequence less the last ones, which is not always how the sequence of a
longer text begins: of `"}]` it may be `"` and `}]`, of `"}]}` however `"}` and `]}`."""


class LlguidanceLibrary:
    def compile(self, spec: GrammarSpec, tokenizer: GrammarTokenizer, library_source: str | None) -> CompiledPayload:
        """`library_source` is that of a JSON Schema spec."""
        try:
            payload = _payload(spec, library_source)
        except GrammarError:
            raise
        except ValueError as error:
            raise InvalidGrammar(f"the grammar does not compile: {_first_line(str(error))}") from None
        # Made once a tokenizer, and no part of what the grammar costs.
        _ = tokenizer.llguidance, tokenizer.spaces, tokenizer.names
        started = time.thread_time()
        with bounded_load():
            loaded = LlguidanceGrammar(payload, tokenizer)
            message = loaded.fault()
        if message:
            raise _translated(message, spec)
        # Whoever loads the payload compiles it again.
        cost_ms = (time.thread_time() - started) * 1000
        if spec.kind not in JSON_KINDS:
            check_mask_times(loaded, tokenizer)
        return CompiledPayload(msgspec.msgpack.encode(payload), cost_ms, cost_ms)

    def load(self, payload: bytes, tokenizer: GrammarTokenizer) -> CompiledGrammar:
        try:
            grammar = LlguidanceGrammar(_PAYLOAD.decode(payload), tokenizer)
        except (msgspec.MsgspecError, ValueError) as error:
            raise ArtifactError(f"the payload cannot be read: {error}") from None
        # Whether it can use the grammar was tried where it was compiled.
        if message := grammar.error():
            raise ArtifactError(f"llguidance cannot read the payload: {_first_line(message)}")
        return grammar


def _payload(spec: GrammarSpec, library_source: str | None) -> LlguidancePayload:
    bounded = spec.kind in JSON_KINDS and spec.whitespace == FLEXIBLE
    if spec.kind not in JSON_KINDS:
        return LlguidancePayload(_grammar(spec), bounded, None)
    source = LibrarySource(msgspec.Raw(b'{"type": "object"}'), Plan()) if library_source is None else read_source(library_source)
    text = bytes(source.schema).decode("utf-8")
    if source.is_lark:
        return LlguidancePayload(_lark(json.loads(text), spec), bounded, source.plan)
    grammar = _lark(_json_rule(text, spec.whitespace), spec) if spec.canonical else _json(text, spec.whitespace)
    return LlguidancePayload(grammar, bounded, source.plan)


def _grammar(spec: GrammarSpec) -> str:
    match spec.kind:
        case GrammarKind.LARK:
            return _lark(spec.text, spec)
        case GrammarKind.REGEX:
            return llguidance.LLMatcher.grammar_from_regex(plain_full_match(spec.text))
        case GrammarKind.CHOICE if spec.canonical:
            return _lark(f"start: CHOICE\nCHOICE: {' | '.join(map(lark_literal, choices_of(spec.text)))}\n", spec)
        case GrammarKind.CHOICE:
            return llguidance.LLMatcher.grammar_from_regex("|".join(literal(choice) for choice in choices_of(spec.text)))
        case _:
            raise InvalidGrammar(f"{spec.kind} is not for this backend")


def _lark(text: str, spec: GrammarSpec) -> str:
    return llguidance.LLMatcher.grammar_from_lark(_UNFORCED + text if spec.canonical else text)


def _json_rule(schema: str, whitespace: str) -> str:
    """The schema as Lark, which has options that schemas have not."""
    read = json.loads(schema)
    return f"start: %json {json.dumps({**(read if isinstance(read, dict) else {}), 'x-guidance': options_of(whitespace)})}\n"


def _json(schema: str, whitespace: str) -> str:
    return llguidance.LLMatcher.grammar_from_json_schema(schema, overrides=options_of(whitespace))


def _translated(message: str, spec: GrammarSpec) -> GrammarError:
    line = _first_line(message)
    if spec.kind in JSON_KINDS and "nsatisfiable" not in line:
        return UnsupportedGrammar(f"the schema cannot be enforced: {line}")
    if any(limit in line for limit in LIMITS):
        return GrammarTooLarge(f"loading the grammar takes too much of an engine: {line}")
    return InvalidGrammar(f"the grammar does not compile: {line}")


def _first_line(message: str) -> str:
    lines = message.strip().splitlines()
    return lines[0][:500] if lines else "no reason given"
