"""llguidance: compiled lazily in about a millisecond; the payload is a mark for bounded whitespace and the serialized grammar text."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

import llguidance
import torch

from grammar_service.backends.bounded_whitespace import BoundedWhitespace
from grammar_service.backends.choice import choices_of
from grammar_service.backends.lark import lark_faults
from grammar_service.backends.load_cost import bounded_load
from grammar_service.backends.protocol import CompiledGrammar, CompiledPayload, Fault, Matcher
from grammar_service.backends.trial import accepted_prefix
from grammar_service.errors import ArtifactError, GrammarError, InvalidGrammar, UnsupportedGrammar
from grammar_service.json_schema import parse_schema
from grammar_service.json_text import Json, text_of
from grammar_service.regex import Dialect, Regex, literal, parse_regex
from grammar_service.schema.llguidance_support import llguidance_faults
from grammar_service.schema.rewriting import with_patterns, with_plain_names
from grammar_service.spec import COMPACT, FLEXIBLE, JSON_KINDS, GrammarKind, GrammarSpec, indent_of
from grammar_service.tokenizer import GrammarTokenizer

if TYPE_CHECKING:
    from llguidance._lib import JsonCompileOptions

_PAYLOAD_FORMAT = 2
_VERSION: Final = f"{version('llguidance')}/{_PAYLOAD_FORMAT}"
_BOUNDED, _PLAIN = "~", "="
"""The payload's first character: whether whitespace is flexible, so that its runs are bounded by the matcher."""


class LlguidanceBackend:
    @property
    def name(self) -> str:
        return "llguidance"

    @property
    def version(self) -> str:
        return _VERSION

    def unsupported(self, spec: GrammarSpec) -> list[Fault]:
        if spec.kind in JSON_KINDS and indent_of(spec.whitespace) is not None:
            return [Fault(None, "indented whitespace is not supported")]
        if spec.kind is GrammarKind.JSON_SCHEMA:
            return parse_schema(spec.text, spec.closed).form_for(llguidance_faults).faults
        if spec.kind is GrammarKind.REGEX:
            parse_regex(spec.text, Dialect.PYTHON_ASCII)
        elif spec.kind is GrammarKind.CHOICE:
            choices_of(spec.text)
        elif spec.kind is GrammarKind.LARK:
            return lark_faults(spec.text)
        elif spec.kind in (GrammarKind.EBNF, GrammarKind.STRUCTURAL_TAG):
            return [Fault(None, f"{spec.kind} is not supported")]
        return []

    def compile(self, spec: GrammarSpec, tokenizer: GrammarTokenizer) -> CompiledPayload:
        try:
            payload = _payload(spec)
        except GrammarError:
            raise
        except ValueError as error:
            raise InvalidGrammar(f"the grammar does not compile: {_first_line(str(error))}") from None
        # Made once a tokenizer, and no part of what the grammar costs.
        _ = tokenizer.llguidance, tokenizer.spaces
        started = time.thread_time()
        with bounded_load():
            loaded = LlguidanceGrammar(payload, tokenizer)
            message = loaded.fault()
        if message:
            raise _translated(message, spec)
        # Whoever loads the payload compiles it again.
        cost_ms = (time.thread_time() - started) * 1000
        return CompiledPayload(payload.encode("utf-8"), cost_ms, cost_ms)

    def load(self, payload: bytes, tokenizer: GrammarTokenizer) -> CompiledGrammar:
        try:
            grammar = LlguidanceGrammar(payload.decode("utf-8"), tokenizer)
        except UnicodeDecodeError:
            raise ArtifactError("the payload is not UTF-8") from None
        except ValueError as error:
            raise ArtifactError(str(error)) from None
        if message := grammar.fault():
            raise ArtifactError(f"llguidance cannot read the payload: {_first_line(message)}")
        return grammar


def _payload(spec: GrammarSpec) -> str:
    bounded = spec.kind in JSON_KINDS and spec.whitespace == FLEXIBLE
    return (_BOUNDED if bounded else _PLAIN) + _grammar(spec)


def _grammar(spec: GrammarSpec) -> str:
    match spec.kind:
        case GrammarKind.JSON_SCHEMA:
            schema = parse_schema(spec.text, spec.closed).form_for(llguidance_faults).document
            return _json(with_patterns(with_plain_names(schema), Regex.anchored), spec.whitespace)
        case GrammarKind.JSON_OBJECT:
            return _json({"type": "object"}, spec.whitespace)
        case GrammarKind.LARK:
            return llguidance.LLMatcher.grammar_from_lark(spec.text)
        case GrammarKind.REGEX:
            return llguidance.LLMatcher.grammar_from_regex(parse_regex(spec.text, Dialect.PYTHON_ASCII).full_match())
        case GrammarKind.CHOICE:
            return llguidance.LLMatcher.grammar_from_regex("|".join(literal(choice) for choice in choices_of(spec.text)))
        case GrammarKind.EBNF | GrammarKind.STRUCTURAL_TAG:
            raise InvalidGrammar(f"{spec.kind} is not for this backend")


def _json(schema: Json, whitespace: str) -> str:
    comma, colon = (",", ":") if whitespace in (COMPACT, FLEXIBLE) else (", ", ": ")
    options: JsonCompileOptions = {
        "whitespace_flexible": whitespace == FLEXIBLE,
        "item_separator": comma,
        "key_separator": colon,
        "coerce_one_of": False,
        "lenient": False,
    }
    return llguidance.LLMatcher.grammar_from_json_schema(text_of(schema), overrides=options)


def _translated(message: str, spec: GrammarSpec) -> GrammarError:
    line = _first_line(message)
    if spec.kind in JSON_KINDS and "nsatisfiable" not in line:
        return UnsupportedGrammar(f"the schema cannot be enforced: {line}")
    return InvalidGrammar(f"the grammar does not compile: {line}")


def _first_line(message: str) -> str:
    lines = message.strip().splitlines()
    return lines[0][:500] if lines else "no reason given"


class LlguidanceGrammar:
    """Matchers are copies of one that has been built: copying shares the lexer and its states.

    Raises:
        ValueError: the payload has no mark of ours.
    """

    def __init__(self, payload: str, tokenizer: GrammarTokenizer) -> None:
        if payload[:1] not in (_BOUNDED, _PLAIN):
            raise ValueError("the payload has no mark of ours")
        self._first = llguidance.LLMatcher(tokenizer.llguidance, payload[1:], log_level=0)
        self._spaces = tokenizer.spaces if payload[0] == _BOUNDED else None
        self._tokenizer = tokenizer
        self._bytes = len(payload)

    @property
    def size_bytes(self) -> int:
        return self._bytes

    def fault(self) -> str:
        """The library's message if it cannot use the grammar, else empty."""
        if not self._first.is_error():
            # Fuel limits show only when the first mask is computed.
            self._first.deep_copy().compute_bitmask()
        return str(self._first.get_error())

    def matcher(self, stop_token_ids: Sequence[int] | None, max_rollback_tokens: int) -> Matcher:
        stops = tuple(stop_token_ids) if stop_token_ids is not None else self._tokenizer.stop_token_ids
        matcher = LlguidanceMatcher(self._first.deep_copy(), stops, self._tokenizer)
        return matcher if self._spaces is None else BoundedWhitespace(matcher, self._spaces)


class LlguidanceMatcher:
    """Stop tokens are handled here and never shown to the library, which does not count them in its history."""

    def __init__(self, matcher: llguidance.LLMatcher, stops: Sequence[int], tokenizer: GrammarTokenizer) -> None:
        self._matcher = matcher
        self._stops = frozenset(stops)
        self._own_stops = tokenizer.stop_token_ids
        self._vocab_size = tokenizer.vocab_size
        self._accepted = 0
        self._terminated = False

    def accept(self, token: int) -> bool:
        if self._terminated:
            return False
        if token in self._stops and self._matcher.is_accepting():
            self._terminated = True
        elif not self._is_text(token) or self._matcher.is_stopped() or self._matcher.try_consume_tokens([token]) != 1:
            return False
        self._accepted += 1
        return True

    def validate(self, tokens: list[int]) -> int:
        return accepted_prefix(self, tokens)

    def rollback(self, n: int) -> None:
        if not 0 <= n <= self._accepted:
            raise ValueError(f"cannot take back {n} of {self._accepted} tokens")
        self._accepted -= n
        if n and self._terminated:
            self._terminated = False
            n -= 1
        if n:
            self._matcher.rollback(n)

    def fill(self, bitmask: torch.Tensor, row: int) -> None:
        if self._terminated:
            bitmask[row].zero_()
            return
        target = bitmask[row]
        if target.dtype is not torch.int32 or not target.is_contiguous():
            raise ValueError("a bitmask row must be contiguous int32")
        self._matcher.unsafe_compute_mask_ptr(target.data_ptr(), target.numel() * target.element_size())
        accepting = self._matcher.is_accepting()
        for token in self._own_stops:
            _set(target, token, False)
        for token in self._stops:
            if accepting:
                _set(target, token, True)

    def is_terminated(self) -> bool:
        return self._terminated

    def reset(self) -> None:
        self._matcher.reset()
        self._accepted = 0
        self._terminated = False

    def _is_text(self, token: int) -> bool:
        return 0 <= token < self._vocab_size and token not in self._own_stops


def _set(row: torch.Tensor, token: int, allowed: bool) -> None:
    word, bit = divmod(token, 32)
    mask = 1 << bit
    value = int(row[word]) & 0xFFFFFFFF
    value = value | mask if allowed else value & ~mask
    row[word] = value - (1 << 32) if value >= 1 << 31 else value
