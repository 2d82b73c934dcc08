"""Schemas as tests of token ids: by the backend that is chosen for them, and by each library alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import llguidance
import xgrammar

from grammar_service.backends import Matcher, select_backend
from grammar_service.errors import UnsupportedGrammar
from grammar_service.schema.json_text import Json
from grammar_service.spec import STANDARD, GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

if TYPE_CHECKING:
    from llguidance._lib import JsonCompileOptions

Acceptor = Callable[[list[int]], bool]
"""Whether the tokens, and a stop token after them, are in the grammar's language."""
Compile = Callable[[Json], Acceptor]
"""Raises GrammarError: the schema is refused. Native code: run it in a process that may die."""


def chosen(tokenizer: GrammarTokenizer, closed: bool, formats: bool, any_order: bool = False) -> Compile:
    """The service's own choice of backend. `closed`, `formats` and `any_order` as in `GrammarSpec`."""

    def compile_schema(schema: Json) -> Acceptor:
        spec = GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(schema), STANDARD, closed, formats=formats, any_order=any_order)
        return acceptor(spec, tokenizer)

    return compile_schema


def acceptor(spec: GrammarSpec, tokenizer: GrammarTokenizer) -> Acceptor:
    """By the backend that the service chooses for a spec. Raises GrammarError: it is refused."""
    backend = select_backend(spec)
    grammar = backend.load(backend.compile(spec, tokenizer).data, tokenizer)
    return lambda ids: _accepts(grammar.matcher(None, 0), [*ids, tokenizer.stop_token_ids[0]])


def _accepts(matcher: Matcher, ids: list[int]) -> bool:
    return all(matcher.accept(token) for token in ids) and matcher.is_terminated()


def bare_xgrammar(tokenizer: GrammarTokenizer) -> Compile:
    """The library as it comes, with `json.dumps`' separators."""

    def compile_schema(schema: Json) -> Acceptor:
        compiler = xgrammar.GrammarCompiler(tokenizer.xgrammar, max_threads=1)
        try:
            text = json.dumps(schema)
            compiled = compiler.compile_json_schema(text, any_whitespace=False, separators=(", ", ": "), strict_mode=False)
        except (RuntimeError, ValueError, TypeError) as error:
            raise UnsupportedGrammar(str(error)) from None
        return lambda ids: _xgrammar_accepts(compiled, [*ids, tokenizer.stop_token_ids[0]])

    return compile_schema


def _xgrammar_accepts(compiled: xgrammar.CompiledGrammar, ids: list[int]) -> bool:
    matcher = xgrammar.GrammarMatcher(compiled)
    return all(not matcher.is_terminated() and matcher.accept_token(token) for token in ids)


def bare_llguidance(tokenizer: GrammarTokenizer) -> Compile:
    """The library as it comes, with `json.dumps`' separators."""
    options: JsonCompileOptions = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}

    def compile_schema(schema: Json) -> Acceptor:
        try:
            text = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=options)
            matcher = llguidance.LLMatcher(tokenizer.llguidance, text, log_level=0)
        except (RuntimeError, ValueError, TypeError) as error:
            raise UnsupportedGrammar(str(error)) from None
        if matcher.is_error():
            raise UnsupportedGrammar(matcher.get_error())
        return lambda ids: _llguidance_accepts(matcher.deep_copy(), ids)

    return compile_schema


def _llguidance_accepts(matcher: llguidance.LLMatcher, ids: list[int]) -> bool:
    return all(matcher.try_consume_tokens([token]) == 1 for token in ids) and matcher.is_accepting()
