"""xgrammar: compiled ahead, transported as its own JSON serialization; the payload is those bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import TypedDict

import torch
import xgrammar

from grammar_service.backends.choice import choice_grammar, choices_of
from grammar_service.backends.protocol import CompiledGrammar, Fault, Matcher
from grammar_service.backends.trial import accepted_prefix
from grammar_service.errors import ArtifactError, CompileFailed, GrammarError, InvalidGrammar
from grammar_service.json_schema import JsonSchema, parse_schema
from grammar_service.json_text import text_of
from grammar_service.regex import Dialect, parse_regex
from grammar_service.schema.rewriting import with_length_patterns
from grammar_service.schema.xgrammar_support import MANY_VALUES, xgrammar_faults
from grammar_service.spec import COMPACT, FLEXIBLE, MAX_WHITESPACE, SPACED_KINDS, GrammarKind, GrammarSpec, indent_of
from grammar_service.structural_tag import Embedded, tag_faults, written_tag
from grammar_service.tokenizer import GrammarTokenizer

_NATIVE_PREFIX = re.compile(r"^\[\d\d:\d\d:\d\d\] \S+:\d+: ")


class XgrammarBackend:
    """Keeps one warm compiler per vocabulary: its rule cache is what makes similar schemas cheap.

    JSON objects are closed as `schema.normal` says, by the schema itself, so the library's strict mode stays off.
    """

    def __init__(self, threads: int = 1, cache_bytes: int = 256 * 1024 * 1024) -> None:
        self._threads = threads
        self._cache_bytes = cache_bytes
        self._compilers: dict[str, xgrammar.GrammarCompiler] = {}

    @property
    def name(self) -> str:
        return "xgrammar"

    @property
    def version(self) -> str:
        return f"{version('xgrammar')}/{xgrammar.get_serialization_version()}"

    def unsupported(self, spec: GrammarSpec) -> list[Fault]:
        if spec.kind in SPACED_KINDS and spec.whitespace == COMPACT:
            return [Fault(None, "compact whitespace: version 0.2.8 writes spaces after commas all the same")]
        if spec.kind is GrammarKind.JSON_SCHEMA:
            return list(xgrammar_faults(parse_schema(spec.text).normal))
        if spec.kind is GrammarKind.REGEX:
            parse_regex(spec.text, Dialect.PYTHON_ASCII)
        elif spec.kind is GrammarKind.CHOICE:
            if len(choices_of(spec.text)) > MANY_VALUES:
                return [Fault(None, f"more than {MANY_VALUES} choices take too long to compile")]
        elif spec.kind is GrammarKind.STRUCTURAL_TAG:
            return tag_faults(spec.text)
        elif spec.kind is GrammarKind.LARK:
            return [Fault(None, "Lark grammars are not supported")]
        return []

    def compile(self, spec: GrammarSpec, tokenizer: GrammarTokenizer) -> bytes:
        try:
            compiled = self._compiled(spec, self._compiler(tokenizer))
            return compiled.serialize_json().encode("utf-8")
        except GrammarError:
            raise
        except MemoryError:
            raise CompileFailed("compiling the grammar took more memory than it may") from None
        except (RuntimeError, ValueError, TypeError) as error:
            raise _translated(error) from None

    def load(self, payload: bytes, tokenizer: GrammarTokenizer) -> CompiledGrammar:
        try:
            compiled = xgrammar.CompiledGrammar.deserialize_json(payload.decode("utf-8"), tokenizer.xgrammar)
            return XgrammarGrammar(compiled, tokenizer)
        except (RuntimeError, ValueError, TypeError) as error:
            raise ArtifactError(f"xgrammar cannot read the payload: {_message(error)}") from None

    def _compiler(self, tokenizer: GrammarTokenizer) -> xgrammar.GrammarCompiler:
        compiler = self._compilers.get(tokenizer.fingerprint)
        if compiler is None:
            compiler = xgrammar.GrammarCompiler(tokenizer.xgrammar, max_threads=self._threads, cache_limit_bytes=self._cache_bytes)
            self._compilers[tokenizer.fingerprint] = compiler
        return compiler

    def _compiled(self, spec: GrammarSpec, compiler: xgrammar.GrammarCompiler) -> xgrammar.CompiledGrammar:
        match spec.kind:
            case GrammarKind.JSON_SCHEMA | GrammarKind.JSON_OBJECT:
                return _json(spec, compiler)
            case GrammarKind.REGEX:
                return compiler.compile_regex(parse_regex(spec.text, Dialect.PYTHON_ASCII).full_match())
            case GrammarKind.CHOICE:
                return compiler.compile_grammar(choice_grammar(choices_of(spec.text)))
            case GrammarKind.EBNF:
                return compiler.compile_grammar(spec.text)
            case GrammarKind.STRUCTURAL_TAG:
                return compiler.compile_structural_tag(text_of(written_tag(spec.text, _writer(spec.whitespace))))
            case GrammarKind.LARK:
                raise InvalidGrammar("Lark grammars are not for this backend")


class _Layout(TypedDict):
    """Options that `compile_json_schema` and `Grammar.from_json_schema` share."""

    any_whitespace: bool
    indent: int | None
    separators: tuple[str, str] | None
    max_whitespace_cnt: int | None
    strict_mode: bool


def _layout(whitespace: str, max_whitespace: int = MAX_WHITESPACE) -> _Layout:
    indent, flexible = indent_of(whitespace), whitespace == FLEXIBLE
    return {
        "any_whitespace": flexible,
        "indent": indent,
        "separators": None if flexible or indent is not None else (", ", ": "),
        "max_whitespace_cnt": max_whitespace if flexible else None,
        "strict_mode": False,
    }


def _json(spec: GrammarSpec, compiler: xgrammar.GrammarCompiler) -> xgrammar.CompiledGrammar:
    schema = _schema_text(parse_schema(spec.text)) if spec.kind is GrammarKind.JSON_SCHEMA else '{"type": "object"}'
    return compiler.compile_json_schema(schema, **_layout(spec.whitespace))


def _writer(whitespace: str) -> Callable[[Embedded], str]:
    """Writes the schemas of a structural tag as EBNF, laid out as a schema of its own would be."""

    def write(embedded: Embedded) -> str:
        bound = embedded.max_whitespace
        layout = _layout(whitespace) if bound is None else _layout(FLEXIBLE, bound)
        return str(xgrammar.Grammar.from_json_schema(_schema_text(embedded.schema), **layout))

    return write


def _schema_text(schema: JsonSchema) -> str:
    return text_of(with_length_patterns(schema.normal))


def _translated(error: Exception) -> GrammarError:
    message = _message(error)
    if "bad_alloc" in message or "memory" in message.lower():
        return CompileFailed("compiling the grammar took more memory than it may")
    return InvalidGrammar(f"the grammar does not compile: {message}")


def _message(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return _NATIVE_PREFIX.sub("", lines[0])[:500] if lines else type(error).__name__


class XgrammarGrammar:
    def __init__(self, compiled: xgrammar.CompiledGrammar, tokenizer: GrammarTokenizer) -> None:
        self._compiled = compiled
        self._tokenizer = tokenizer

    @property
    def size_bytes(self) -> int:
        return int(self._compiled.memory_size_bytes)

    def matcher(self, stop_token_ids: Sequence[int] | None, max_rollback_tokens: int) -> Matcher:
        stops = list(stop_token_ids) if stop_token_ids is not None else None
        matcher = xgrammar.GrammarMatcher(self._compiled, override_stop_tokens=stops)
        own = self._tokenizer.stop_token_ids
        return XgrammarMatcher(matcher, frozenset(own) - frozenset(own if stops is None else stops), self._tokenizer.vocab_size)


class XgrammarMatcher:
    """Takes back any number of tokens: the library keeps the whole history. `refused` are the tokenizer's stop tokens that do not
    stop this request: they have no text, and the library would accept them anywhere."""

    def __init__(self, matcher: xgrammar.GrammarMatcher, refused: frozenset[int], vocab_size: int) -> None:
        self._matcher = matcher
        self._refused = refused
        self._last_word, used = divmod(vocab_size, 32)
        self._last_bits = (1 << used) - 1
        self._accepted = 0

    def accept(self, token: int) -> bool:
        if not self._advance(token):
            return False
        self._accepted += 1
        return True

    def validate(self, tokens: list[int]) -> int:
        return accepted_prefix(self, tokens)

    def rollback(self, n: int) -> None:
        if not 0 <= n <= self._accepted:
            raise ValueError(f"cannot take back {n} of {self._accepted} tokens")
        if n:
            self._matcher.rollback(n)
            self._accepted -= n

    def fill(self, bitmask: torch.Tensor, row: int) -> None:
        if self._matcher.is_terminated():
            bitmask[row].zero_()
            return
        self._matcher.fill_next_token_bitmask(bitmask, row)
        if self._last_bits:
            # The library leaves the bits past the vocabulary set.
            bitmask[row, self._last_word] &= self._last_bits

    def is_terminated(self) -> bool:
        return bool(self._matcher.is_terminated())

    def reset(self) -> None:
        self._matcher.reset()
        self._accepted = 0

    def _advance(self, token: int) -> bool:
        return not self._matcher.is_terminated() and token not in self._refused and bool(self._matcher.accept_token(token))
