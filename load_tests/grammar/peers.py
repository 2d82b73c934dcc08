"""The bare libraries, as an engine uses them that adds nothing.

xgrammar gets the very grammar that our backend would give it, written beforehand: a weaker one would be no alternative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import llguidance
import torch
import xgrammar

from grammar_service.backends.choice import choices_of
from grammar_service.backends.xgrammar.recipe import Recipe, compiled
from grammar_service.errors import UnsupportedGrammar
from grammar_service.regexes.rendering import literal
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

if TYPE_CHECKING:
    from llguidance._lib import JsonCompileOptions


class BareXgrammar:
    """One `xgrammar.GrammarCompiler` with its caches, as every engine keeps one."""

    def __init__(self, tokenizer: GrammarTokenizer) -> None:
        self._compiler = xgrammar.GrammarCompiler(tokenizer.xgrammar, max_threads=1)
        self._info = tokenizer.xgrammar
        self._row = xgrammar.allocate_token_bitmask(1, tokenizer.vocab_size)

    def compile(self, recipe: Recipe) -> xgrammar.CompiledGrammar:
        """Raises UnsupportedGrammar: the library refuses it. May take minutes or gigabytes."""
        try:
            return compiled(recipe, self._compiler)
        except (RuntimeError, ValueError, TypeError) as error:
            raise UnsupportedGrammar(f"xgrammar refuses it: {_first_line(error)}") from None

    def read(self, text: str) -> xgrammar.CompiledGrammar:
        """What `serialize_json` wrote."""
        return xgrammar.CompiledGrammar.deserialize_json(text, self._info)

    def first_mask(self, grammar: xgrammar.CompiledGrammar) -> torch.Tensor:
        """int32 [1, ceil(V/32)], bit set = allowed; the same tensor every time."""
        xgrammar.GrammarMatcher(grammar).fill_next_token_bitmask(self._row, 0)
        return self._row


class BareLlguidance:
    """llguidance compiles in no time and keeps nothing: every grammar starts from the user's text."""

    def __init__(self, tokenizer: GrammarTokenizer) -> None:
        self._tokenizer = tokenizer.llguidance

    def first_mask(self, spec: GrammarSpec) -> bytes:
        """The first row of allowed tokens. Raises UnsupportedGrammar: the library refuses it."""
        try:
            matcher = llguidance.LLMatcher(self._tokenizer, _guidance(spec), log_level=0)
            row = bytes(matcher.compute_bitmask())
        except (RuntimeError, ValueError, TypeError) as error:
            raise UnsupportedGrammar(f"llguidance refuses it: {_first_line(error)}") from None
        if matcher.is_error():
            raise UnsupportedGrammar(f"llguidance refuses it: {matcher.get_error()[:200]}")
        return row


def _guidance(spec: GrammarSpec) -> str:
    options: JsonCompileOptions = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
    match spec.kind:
        case GrammarKind.JSON_SCHEMA:
            return llguidance.LLMatcher.grammar_from_json_schema(spec.text, overrides=options)
        case GrammarKind.JSON_OBJECT:
            return llguidance.LLMatcher.grammar_from_json_schema('{"type": "object"}', overrides=options)
        case GrammarKind.REGEX:
            return llguidance.LLMatcher.grammar_from_regex(spec.text)
        case GrammarKind.CHOICE:
            return llguidance.LLMatcher.grammar_from_regex("|".join(literal(choice) for choice in choices_of(spec.text)))
        case GrammarKind.LARK:
            return llguidance.LLMatcher.grammar_from_lark(spec.text)
        case GrammarKind.EBNF | GrammarKind.STRUCTURAL_TAG:
            raise UnsupportedGrammar(f"llguidance reads no {spec.kind}")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
