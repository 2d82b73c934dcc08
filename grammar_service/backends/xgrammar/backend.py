"""xgrammar: compiled ahead; what travels are its tables or, where reading them would take longer, the recipe to compile it again."""

from __future__ import annotations

from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from grammar_service.backends.choice import choices_of
from grammar_service.backends.protocol import CompiledGrammar, CompiledPayload, Fault
from grammar_service.backends.xgrammar.support import MANY_VALUES, allow_list, lone_xgrammar_faults
from grammar_service.packing import MAX_EXPANDED_BYTES
from grammar_service.regexes.plain import plain_full_match
from grammar_service.schema.json_schema import parse_schema
from grammar_service.spec import COMPACT, SPACED_KINDS, GrammarKind, GrammarSpec
from grammar_service.tags.structural_tag import tag_faults

if TYPE_CHECKING:
    from grammar_service.backends.xgrammar.library import XgrammarLibrary
    from grammar_service.vocabulary.tokenizer import GrammarTokenizer

_PAYLOAD_FORMAT = 13
_VERSION: Final = f"{version('xgrammar')}/{_PAYLOAD_FORMAT}"
"""A version of the package serializes in one way only, so that the library need not be loaded to tell."""


class XgrammarBackend:
    """Keeps one warm compiler per vocabulary: its rule cache is what makes similar schemas cheap, for those who load as well.

    `cache_bytes` bounds what a compiler keeps of compiled grammars: beyond it, all of that goes. `max_expanded_bytes` bounds the text of
    one grammar's tables. One thread may compile while others load. The library is imported with the first of them: judging specs does
    without it.
    """

    def __init__(self, threads: int = 1, cache_bytes: int = 256 * 1024 * 1024, max_expanded_bytes: int = MAX_EXPANDED_BYTES) -> None:
        self._threads = threads
        self._cache_bytes = cache_bytes
        self._max_expanded_bytes = max_expanded_bytes

    @property
    def name(self) -> str:
        return "xgrammar"

    @property
    def version(self) -> str:
        return _VERSION

    def unsupported(self, spec: GrammarSpec) -> list[Fault]:
        if spec.kind in SPACED_KINDS and spec.whitespace == COMPACT:
            return [Fault(None, "compact whitespace: version 0.2.8 writes spaces after commas all the same")]
        if spec.kind is GrammarKind.JSON_SCHEMA:
            return parse_schema(spec.text, spec.closed, spec.formats).form_for(allow_list(spec)).faults
        if spec.kind is GrammarKind.REGEX:
            plain_full_match(spec.text)
        elif spec.kind is GrammarKind.CHOICE:
            if len(choices_of(spec.text)) > MANY_VALUES:
                return [Fault(None, f"more than {MANY_VALUES} choices take too long to compile")]
        elif spec.kind is GrammarKind.STRUCTURAL_TAG:
            return tag_faults(spec.text, lone_xgrammar_faults, spec.closed, spec.formats)
        elif spec.kind is GrammarKind.LARK:
            return [Fault(None, "Lark grammars are not supported")]
        return []

    def library_source(self, spec: GrammarSpec) -> str | None:
        return None

    def compile(self, spec: GrammarSpec, tokenizer: GrammarTokenizer, library_source: str | None = None) -> CompiledPayload:
        return self._library.compile(spec, tokenizer)

    def load(self, payload: bytes, tokenizer: GrammarTokenizer) -> CompiledGrammar:
        return self._library.load(payload, tokenizer)

    @cached_property
    def _library(self) -> XgrammarLibrary:
        from grammar_service.backends.xgrammar.library import XgrammarLibrary

        return XgrammarLibrary(self.version, self._threads, self._cache_bytes, self._max_expanded_bytes)
