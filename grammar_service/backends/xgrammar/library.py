"""The library behind `XgrammarBackend`: compiles specs to payloads, and loads payloads."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import xgrammar

from grammar_service.backends.mask_budget import check_mask_times
from grammar_service.backends.protocol import CompiledGrammar, CompiledPayload
from grammar_service.backends.xgrammar.cost import RuleCosts, expected_load_ms, worth_tables
from grammar_service.backends.xgrammar.left_corners import MAX_LEFT_CORNERS, has_too_many_left_corners
from grammar_service.backends.xgrammar.matcher import XgrammarGrammar
from grammar_service.backends.xgrammar.payload import XgrammarPayload, read_payload, write_payload
from grammar_service.backends.xgrammar.recipe import JSON_OBJECT, Recipe, compiled, parsed, recipe_of
from grammar_service.backends.xgrammar.rule_ends import endless_rule
from grammar_service.backends.xgrammar.runs import recursion_tail
from grammar_service.backends.xgrammar.tables import read_tables, shape_of
from grammar_service.errors import ArtifactError, CompileFailed, GrammarError, GrammarTooLarge, InvalidGrammar
from grammar_service.packing import unpack
from grammar_service.spec import GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

NEVER_FULL = 1 << 62
"""Bytes of a compiler's cache. It must not make room by itself: the places of rules that go are kept with the memory of the largest that
ever stood there (`cpp/support/container.h` of 0.2.8, `List`), so that a cache of 1/2 MiB takes 7 after 400 grammars, and goes on."""
WRITTEN_RULES = frozenset({GrammarKind.EBNF, GrammarKind.STRUCTURAL_TAG})
MEASURED = WRITTEN_RULES | {GrammarKind.REGEX}
"""Kinds in which a text may be read in many ways. To measure some masks takes 30 ms with a vocabulary of 131,072 tokens."""
_NATIVE_PREFIX = re.compile(r"^\[\d\d:\d\d:\d\d\] \S+:\d+: ")


class XgrammarLibrary:
    """Compilers by vocabulary, and what rules have cost. `version` is written into payloads, and asked of those that are read."""

    def __init__(self, version: str, threads: int, cache_bytes: int, max_expanded_bytes: int) -> None:
        self._version = version
        self._threads = threads
        self._cache_bytes = cache_bytes
        self._max_expanded_bytes = max_expanded_bytes
        self._compilers: dict[tuple[str, bool], xgrammar.GrammarCompiler] = {}
        self._costs = RuleCosts()
        self._with_json_rules: set[str] = set()

    def compile(self, spec: GrammarSpec, tokenizer: GrammarTokenizer) -> CompiledPayload:
        try:
            return self._compile(recipe_of(spec, tokenizer.special_tokens, tokenizer.added_tokens), tokenizer)
        except GrammarError:
            raise
        except MemoryError:
            raise CompileFailed("compiling the grammar took more memory than it may") from None
        except (RuntimeError, ValueError, TypeError) as error:
            raise _translated(error) from None

    def load(self, payload: bytes, tokenizer: GrammarTokenizer) -> CompiledGrammar:
        held = read_payload(payload, self._version)
        recipe = held.recipe(self._max_expanded_bytes)
        try:
            grammar = self._loaded(held, recipe, tokenizer)
            return XgrammarGrammar(grammar, tokenizer, recipe, held.recursion_tail)
        except (RuntimeError, ValueError, TypeError) as error:
            raise ArtifactError(f"xgrammar cannot read the payload: {_message(error)}") from None

    def _compile(self, recipe: Recipe, tokenizer: GrammarTokenizer) -> CompiledPayload:
        self._learn_json_rules(tokenizer)
        compiler = self._compiler(tokenizer, recipe.names_tokens)
        grammar, taken_ms = _timed(lambda: compiled(recipe, compiler))
        rules = _parsed(recipe)
        if rules is not None:
            _check_rules(rules, is_written=recipe.kind in WRITTEN_RULES)
        shape, tail = shape_of(grammar), None if rules is None else recursion_tail(rules, recipe.names_tokens)
        if recipe.kind in MEASURED:
            check_mask_times(XgrammarGrammar(grammar, tokenizer, recipe, tail), tokenizer)
        compile_ms = self._costs.cold_ms(shape.rules, taken_ms)
        if worth_tables(compile_ms, shape.size, self._max_expanded_bytes):
            tables = grammar.serialize_json()
            if (expanded := len(tables.encode())) <= self._max_expanded_bytes:
                payload = write_payload(self._version, recipe, tables, tail)
                return CompiledPayload(payload, compile_ms, expected_load_ms(shape.size), expanded)
        return CompiledPayload(write_payload(self._version, recipe, None, tail), compile_ms, compile_ms)

    def _loaded(self, held: XgrammarPayload, recipe: Recipe, tokenizer: GrammarTokenizer) -> xgrammar.CompiledGrammar:
        if held.tables is None:
            return compiled(recipe, self._compiler(tokenizer, recipe.names_tokens))
        return read_tables(unpack(held.tables, self._max_expanded_bytes), _info(tokenizer, recipe.names_tokens))

    def _learn_json_rules(self, tokenizer: GrammarTokenizer) -> None:
        """They cost nothing: every reader's compiler has them, at the latest after its first grammar."""
        if tokenizer.fingerprint not in self._with_json_rules:
            self._costs.cold_ms(shape_of(compiled(JSON_OBJECT, self._compiler(tokenizer))).rules, 0.0)
            self._with_json_rules.add(tokenizer.fingerprint)

    def _compiler(self, tokenizer: GrammarTokenizer, names_tokens: bool = False) -> xgrammar.GrammarCompiler:
        """A fresh one when what it keeps has become too much; made in 0.1 ms, it learns its rules again within a few grammars."""
        key = tokenizer.fingerprint, names_tokens
        compiler = self._compilers.get(key)
        if compiler is None or compiler.get_cache_size_bytes() > self._cache_bytes:
            vocabulary = _info(tokenizer, names_tokens)
            compiler = xgrammar.GrammarCompiler(vocabulary, max_threads=self._threads, cache_limit_bytes=NEVER_FULL)
            self._compilers[key] = compiler
        return compiler


def _info(tokenizer: GrammarTokenizer, names_tokens: bool) -> xgrammar.TokenizerInfo:
    return tokenizer.xgrammar_with_specials if names_tokens else tokenizer.xgrammar


def _parsed(recipe: Recipe) -> xgrammar.Grammar | None:
    """None: it has compiled, and yet it cannot be looked into, which is no fault of it."""
    try:
        return parsed(recipe)
    except (RuntimeError, ValueError, TypeError):
        return None


def _check_rules(grammar: xgrammar.Grammar, *, is_written: bool) -> None:
    """Only users' own rules (`is_written`) can be endless: schemas were asked before they became rules. Raises InvalidGrammar,
    GrammarTooLarge."""
    if is_written and (rule := endless_rule(grammar)) is not None:
        raise InvalidGrammar(f"the rule `{rule[:40]}` has no end: no text matches it")
    if has_too_many_left_corners(grammar):
        raise GrammarTooLarge(f"more than {MAX_LEFT_CORNERS} rules, alternatives or optional properties may begin at one place")


def _timed(work: Callable[[], xgrammar.CompiledGrammar]) -> tuple[xgrammar.CompiledGrammar, float]:
    """The grammar, and its milliseconds of processor or wall time, whichever is less: waiting for a processor is no cost of it."""
    wall, processor = time.perf_counter(), time.process_time()
    grammar = work()
    return grammar, min(time.perf_counter() - wall, time.process_time() - processor) * 1000


def _translated(error: Exception) -> GrammarError:
    message = _message(error)
    if "bad_alloc" in message or "memory" in message.lower():
        return CompileFailed("compiling the grammar took more memory than it may")
    return InvalidGrammar(f"the grammar does not compile: {message}")


def _message(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return _NATIVE_PREFIX.sub("", lines[0])[:500] if lines else type(error).__name__
