"""llguidance: compiled lazily in about a millisecond; the payload is the serialized grammar text, and what its matchers bound and guard."""

from __future__ import annotations

from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

import msgspec

from grammar_service.backends.choice import choices_of
from grammar_service.backends.llguidance.any_order import with_any_order, with_names_as_patterns
from grammar_service.backends.llguidance.lark import lark_faults
from grammar_service.backends.llguidance.sequences import has_sequences, lark_of
from grammar_service.backends.llguidance.source import LibrarySource
from grammar_service.backends.llguidance.support import llguidance_faults
from grammar_service.backends.patterns import with_patterns, with_plain_names
from grammar_service.backends.protocol import CompiledGrammar, CompiledPayload, Fault
from grammar_service.guards.plan import plan_of, without_guarded
from grammar_service.regexes.plain import plain_full_match
from grammar_service.schema.json_schema import Form, parse_schema
from grammar_service.schema.json_text import text_of
from grammar_service.spec import JSON_KINDS, GrammarKind, GrammarSpec, indent_of

if TYPE_CHECKING:
    from grammar_service.backends.llguidance.library import LlguidanceLibrary
    from grammar_service.vocabulary.tokenizer import GrammarTokenizer

_PAYLOAD_FORMAT = 8
_VERSION: Final = f"{version('llguidance')}/{_PAYLOAD_FORMAT}"


def form_of(spec: GrammarSpec) -> Form:
    """The form of a JSON Schema that is served. Raises as `parse_schema` and `form_for`."""
    return parse_schema(spec.text, spec.closed, spec.formats).form_for(llguidance_faults, with_any_order if spec.any_order else None)


class LlguidanceBackend:
    """The library is imported with the first grammar: judging specs does without it."""

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
            return form_of(spec).faults
        if spec.kind is GrammarKind.REGEX:
            plain_full_match(spec.text)
        elif spec.kind is GrammarKind.CHOICE:
            choices_of(spec.text)
        elif spec.kind is GrammarKind.LARK:
            return lark_faults(spec.text)
        elif spec.kind in (GrammarKind.EBNF, GrammarKind.STRUCTURAL_TAG):
            return [Fault(None, f"{spec.kind} is not supported")]
        return []

    def library_source(self, spec: GrammarSpec) -> str | None:
        if spec.kind is not GrammarKind.JSON_SCHEMA:
            return None
        schema = form_of(spec).document
        plain = with_patterns(with_plain_names(with_names_as_patterns(without_guarded(schema))))
        is_lark = isinstance(plain, dict) and has_sequences(plain)
        text = text_of(lark_of(plain, spec.whitespace) if is_lark and isinstance(plain, dict) else plain)
        return LibrarySource(msgspec.Raw(text.encode("utf-8")), plan_of(schema), is_lark).to_text()

    def compile(self, spec: GrammarSpec, tokenizer: GrammarTokenizer, library_source: str | None = None) -> CompiledPayload:
        return self._library.compile(spec, tokenizer, self.library_source(spec) if library_source is None else library_source)

    def load(self, payload: bytes, tokenizer: GrammarTokenizer) -> CompiledGrammar:
        return self._library.load(payload, tokenizer)

    @cached_property
    def _library(self) -> LlguidanceLibrary:
        from grammar_service.backends.llguidance.library import LlguidanceLibrary

        return LlguidanceLibrary()
