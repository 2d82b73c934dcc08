"""What xgrammar is given to compile: the spec in the library's own terms, so that compiling it again needs no schema code of ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import TypedDict

import msgspec
import xgrammar

from grammar_service.backends.choice import choice_grammar, choices_of
from grammar_service.backends.gbnf import plain_gbnf
from grammar_service.backends.patterns import with_length_patterns
from grammar_service.backends.xgrammar.excluded_texts import exclude_from_strings, with_bounded_numbers
from grammar_service.backends.xgrammar.support import allow_list, lone_xgrammar_faults
from grammar_service.errors import InvalidGrammar
from grammar_service.guards.plan import Plan, plan_of, without_guarded
from grammar_service.regexes.plain import plain_full_match
from grammar_service.schema.fault import AllowList
from grammar_service.schema.json_schema import JsonSchema, parse_schema
from grammar_service.schema.json_text import text_of
from grammar_service.spec import FLEXIBLE, JSON_KINDS, MAX_WHITESPACE, STANDARD, GrammarKind, GrammarSpec, indent_of
from grammar_service.tags.structural_tag import Embedded, names_tokens, to_library_format

_ADDITIONAL_NAME_RULE = re.compile(r"\w+_addl_key(?:_\d+)? ::=")
_ESCAPED_NAME = re.compile(r' \| \("\\\\" basic_escape basic_string_sub\)|\("\\\\" basic_escape basic_string_sub\) \| ')
"""Matches rules for additional names of objects, and their alternatives that begin with an escape, as xgrammar 0.2.8 prints them."""
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|.)")


class Recipe(msgspec.Struct, frozen=True):
    """`text` is what the library's function for that kind takes; `plan` is for the guard beside its matchers. `names_tokens`: it has ids of
    special tokens."""

    kind: str
    text: str
    whitespace: str
    plan: Plan | None = None
    names_tokens: bool = False

    @property
    def is_bounded(self) -> bool:
        """Whether whitespace is free in the grammar, so that its runs are bounded by the matcher.

        The library's own bound would make tables of 10 MB of any schema.
        """
        return self.kind in JSON_KINDS and self.whitespace == FLEXIBLE


JSON_OBJECT = Recipe(GrammarKind.JSON_OBJECT, '{"type": "object"}', STANDARD, Plan())


def recipe_of(
    spec: GrammarSpec, special_tokens: Mapping[str, int] = MappingProxyType({}), added_tokens: Collection[str] | None = None
) -> Recipe:
    """`special_tokens`: the vocabulary's, by their spellings; `added_tokens`: the spellings of those that are not special too. Raises
    InvalidGrammar, UnsupportedGrammar, GrammarTooLarge: as the readers of the kinds do."""
    if spec.kind is GrammarKind.STRUCTURAL_TAG:
        tag = to_library_format(spec.text, _ebnf_of(spec.whitespace), spec.closed, spec.formats, special_tokens, added_tokens)
        return Recipe(spec.kind.value, text_of(tag), spec.whitespace, None, names_tokens(tag))
    return Recipe(spec.kind.value, _library_text(spec), spec.whitespace, _plan(spec))


def compiled(recipe: Recipe, compiler: xgrammar.GrammarCompiler) -> xgrammar.CompiledGrammar:
    """Native code without the interpreter's lock. Raises RuntimeError, ValueError, TypeError, MemoryError: as the library does."""
    match recipe.kind:
        case GrammarKind.JSON_SCHEMA if indent_of(recipe.whitespace) is not None:
            return compiler.compile_grammar(_schema_ebnf(recipe.text, _layout(recipe.whitespace, None)))
        case GrammarKind.JSON_SCHEMA | GrammarKind.JSON_OBJECT:
            return compiler.compile_json_schema(recipe.text, **_layout(recipe.whitespace, None))
        case GrammarKind.REGEX:
            return compiler.compile_regex(recipe.text)
        case GrammarKind.STRUCTURAL_TAG:
            return compiler.compile_structural_tag(recipe.text)
        case GrammarKind.CHOICE | GrammarKind.EBNF:
            return compiler.compile_grammar(recipe.text)
        case _:
            raise ValueError(f"no recipe is of the kind {recipe.kind[:40]!r}")


def parsed(recipe: Recipe) -> xgrammar.Grammar:
    """The grammar before it is compiled, to look into: `compile_grammar` prints it and reads that, which changes texts that are not ASCII
    (`_ebnf`). Raises as `compiled` does."""
    match recipe.kind:
        case GrammarKind.JSON_SCHEMA if indent_of(recipe.whitespace) is not None:
            return xgrammar.Grammar.from_ebnf(_schema_ebnf(recipe.text, _layout(recipe.whitespace, None)))
        case GrammarKind.JSON_SCHEMA | GrammarKind.JSON_OBJECT:
            return xgrammar.Grammar.from_json_schema(recipe.text, **_layout(recipe.whitespace, None))
        case GrammarKind.REGEX:
            return xgrammar.Grammar.from_regex(recipe.text)
        case GrammarKind.STRUCTURAL_TAG:
            return xgrammar.Grammar.from_structural_tag(recipe.text)
        case GrammarKind.CHOICE | GrammarKind.EBNF:
            return xgrammar.Grammar.from_ebnf(recipe.text)
        case _:
            raise ValueError(f"no recipe is of the kind {recipe.kind[:40]!r}")


def _library_text(spec: GrammarSpec) -> str:
    match spec.kind:
        case GrammarKind.JSON_SCHEMA:
            return _schema_text(parse_schema(spec.text, spec.closed, spec.formats), allow_list(spec))
        case GrammarKind.JSON_OBJECT:
            return JSON_OBJECT.text
        case GrammarKind.REGEX:
            return plain_full_match(spec.text)
        case GrammarKind.CHOICE:
            return choice_grammar(choices_of(spec.text))
        case GrammarKind.EBNF:
            return plain_gbnf(spec.text)
        case _:
            raise InvalidGrammar(f"grammars of the kind {spec.kind.value!r} are not for this function")


def _plan(spec: GrammarSpec) -> Plan | None:
    match spec.kind:
        case GrammarKind.JSON_SCHEMA:
            return plan_of(parse_schema(spec.text, spec.closed, spec.formats).form_for(allow_list(spec)).document)
        case GrammarKind.JSON_OBJECT:
            return JSON_OBJECT.plan
        case _:
            return None


class _Layout(TypedDict):
    """Options that `compile_json_schema` and `Grammar.from_json_schema` share."""

    any_whitespace: bool
    indent: int | None
    separators: tuple[str, str] | None
    max_whitespace_cnt: int | None
    strict_mode: bool


def _layout(whitespace: str, max_whitespace: int | None) -> _Layout:
    """JSON objects are closed as `schema.normal_form` says, by the schema itself, so the library's strict mode stays off."""
    indent, flexible = indent_of(whitespace), whitespace == FLEXIBLE
    return {
        "any_whitespace": flexible,
        "indent": indent,
        "separators": None if flexible or indent is not None else (", ", ": "),
        "max_whitespace_cnt": max_whitespace if flexible else None,
        "strict_mode": False,
    }


def _ebnf_of(whitespace: str) -> Callable[[Embedded], str]:
    """What makes EBNF of a structural tag's schemas: laid out as a schema of its own would be, with bounds on whitespace built in."""

    def to_ebnf(embedded: Embedded) -> str:
        bound = embedded.max_whitespace
        layout = _layout(whitespace, MAX_WHITESPACE) if bound is None else _layout(FLEXIBLE, bound)
        ebnf = _schema_ebnf(_schema_text(embedded.schema, lone_xgrammar_faults), layout)
        if embedded.definitions is not None:
            ebnf = with_bounded_numbers(ebnf)
        return exclude_from_strings(ebnf, embedded.excludes) if embedded.excludes else ebnf

    return to_ebnf


def _schema_ebnf(schema: str, layout: _Layout) -> str:
    """EBNF of a schema that no other backend compiles. An additional name has no escape where it could still become a declared name: the
    library does not know that `\\u0061` is an `a`."""
    rules = _ebnf(xgrammar.Grammar.from_json_schema(schema, **layout)).splitlines(keepends=True)
    return "".join(_ESCAPED_NAME.sub("", rule) if _ADDITIONAL_NAME_RULE.match(rule) else rule for rule in rules)


def _ebnf(grammar: xgrammar.Grammar) -> str:
    r"""What the library reads as the same grammar. It prints `über` as `\xfcber`, and reads that as one character: any hexadecimal digits
    may follow an `x`, but four a `u`."""
    return _ESCAPE.sub(lambda escape: rf"\u00{escape[1]}" if escape[1] else escape[0], str(grammar))


def _schema_text(schema: JsonSchema, faults_of: AllowList) -> str:
    return text_of(with_length_patterns(without_guarded(schema.form_for(faults_of).document)))
