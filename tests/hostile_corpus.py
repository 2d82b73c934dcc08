"""Constraints that were made to hurt: inputs of published advisories against engines that serve grammars, inputs that have crashed
the two libraries, and some of our own. Each must end in a correct grammar or in a clear refusal, in time."""

from __future__ import annotations

import json
from typing import Any

from grammar_service.spec import GrammarKind, GrammarSpec


def _schema(schema: Any) -> GrammarSpec:
    return GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(schema))


def _regex(text: str) -> GrammarSpec:
    return GrammarSpec(GrammarKind.REGEX, text)


def _ebnf(text: str) -> GrammarSpec:
    return GrammarSpec(GrammarKind.EBNF, text)


def _lark(text: str) -> GrammarSpec:
    return GrammarSpec(GrammarKind.LARK, text)


def _tag(tag: Any) -> GrammarSpec:
    return GrammarSpec(GrammarKind.STRUCTURAL_TAG, tag if isinstance(tag, str) else json.dumps(tag))


def _nested(levels: int) -> Any:
    schema: Any = {"type": "null"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


def _doubling(levels: int) -> Any:
    """Each definition names the next one twice: 2 to the power of `levels` when it is written out."""
    definitions = {f"d{i}": {"type": "array", "prefixItems": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{levels}": {"type": "null"}}}


_HOSTILE_REGEX = {
    "catastrophic backtracking": "(a+)+b",
    "star of a star": "foo**",
    "nested repetition": "(x{1000}){1000}",
    "nested repetition behind a choice": "(b|c)((((a{99}){99}){99}){99}){99}",
    "nested repetition behind nothing": "((([ab]{0}aaaaaaaaaa){60}){60}){60}",
    "nested repetition, deeper": "((((a{99}){99}){99}){99}){99}",
    "repetition without end": "a{1000000000}",
    "NUL in a regex": "a\0b",
    "unclosed class": "[a-",
    "unclosed group": "(" * 5_000,
    "a lookahead": "(?=a)b",
    "a back reference": r"(a)\1",
    "many alternatives": "|".join(f"word{index}" for index in range(20_000)),
    "wide classes": r"[\u0000-\U0010ffff]{1,2000}",
    "lone surrogate": "\ud800",
}
_HOSTILE_EBNF = {
    "30,000 parentheses": "root ::= " + "(" * 30_000 + '"a"' + ")" * 30_000,
    "left recursion": 'root ::= root "a" | "b"',
    "left recursion in a circle": 'root ::= a\na ::= b\nb ::= a | "x"',
    "huge repetition": 'root ::= "a"{1000000000}',
    "no rule": "nonsense",
    "a rule that is nowhere": "root ::= missing",
    "ambiguity": 'root ::= a a a a a a a a\na ::= "x"* "x"* "x"*',
    "20,000 alternatives": "root ::= " + " | ".join(f'"number {index}"' for index in range(20_000)),
    "20,000 rules": "root ::= r0\n" + "\n".join(f'r{index} ::= "a" r{index + 1} | "b"' for index in range(20_000)) + '\nr20000 ::= "c"',
    "no end, by a class of nothing": 'root ::= "x" [a]* [^\\u0000-\\U0010ffff]',
    "no end, by recursion": 'root ::= "x" a\na ::= "a" a',
    "doubling": "\n".join(["root ::= [xy] r0", *(f"r{i} ::= r{i + 1} r{i + 1}" for i in range(40)), 'r40 ::= "a"']),
    "the ends of a recursion": 'root ::= "-" root z{30000} | "y"\nz ::= "z"',
}
_HOSTILE_LARK = {
    "nesting": "start: " + "(" * 30_000 + '"a"' + ")" * 30_000,
    "repetition": 'start: "a"{1000000000}',
    "repetition of repetitions": 'start: A\nA: (("a"{1000}){1000}){1000}',
    "doubling": "start: A0\n" + "".join(f"A{i}: A{i + 1} A{i + 1}\n" for i in range(60)) + 'A60: "a"',
    "a wide schema": "start: %json " + json.dumps({"enum": list(range(50_000))}),
    "a long substring": 'start: %regex {"substring_chars": "' + "abc " * 100_000 + '"}',
    "much behind a choice": f'start: ("x" | "w") r{{60}} "b"\nr: s{{60}}\ns: t{{6}}\nt: "{"q" * 500}"',
    "nonsense": "%%%",
}
_HOSTILE_SCHEMA: dict[str, Any] = {
    "giant maxLength": {"type": "string", "maxLength": 10**9},
    "giant minLength": {"type": "string", "minLength": 10**8},
    "giant maxItems": {"type": "array", "items": {"type": "integer"}, "maxItems": 10**9},
    "giant minItems": {"type": "array", "items": {"type": "integer"}, "minItems": 10**7},
    "giant bounds": {"type": "integer", "minimum": -(10**300), "maximum": 10**300},
    "many long strings": {"type": "object", "properties": {f"p{i}": {"type": "string", "maxLength": 5_000} for i in range(50)}},
    "nested oneOf": {"oneOf": [{"oneOf": [{"type": "null"}, {"type": "integer"}]}, {"type": "string"}]},
    "nested anyOf": {"anyOf": [{"anyOf": [{"anyOf": [{"type": "null"}] * 20}] * 20}] * 20},
    "items as a list": {"type": "array", "items": [{"type": "null"}]},
    "awkward names": {"type": "object", "properties": {'"\n\\\u2028': {"type": "null"}}},
    "nested patterns": {"type": "string", "pattern": "((a{100}){100}){100}"},
    "catastrophic pattern": {"type": "string", "pattern": "^(([a-z])+.)+[A-Z]([a-z])+$"},
    "impossible recursion": {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
    "a reference to itself": {"$ref": "#"},
    "references in a circle": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    "a remote reference": {"$ref": "http://169.254.169.254/latest/meta-data"},
    "a file reference": {"$ref": "file:///etc/passwd"},
    "doubling references": _doubling(50),
    "deep nesting": _nested(100),
    "very deep nesting": _nested(400),
    "wide anyOf": {"anyOf": [{"type": "object", "properties": {f"p{i}": {"type": "string"}}} for i in range(10_000)]},
    "wide allOf": {"allOf": [{"minimum": i} for i in range(5_000)]},
    "wide enum": {"enum": [f"value {i}" for i in range(30_000)]},
    "long constants": {"enum": ["x" * 50_000 + str(i) for i in range(5)]},
    "many optional properties": {"type": "object", "properties": {f"property{i}": {"type": "integer"} for i in range(3_000)}},
    "many patterns": {"type": "object", "patternProperties": {f"^x{i}.*y{i}$": {} for i in range(2_000)}},
    "lone surrogates": {"const": "\ud800"},
    "NUL": {"const": "a\0b"},
    "unique items of anything": {"type": "array", "uniqueItems": True, "maxItems": 1_000},
    "negations": {"not": {"not": {"not": {"not": {"enum": list(range(1_000))}}}}},
}
_HOSTILE_TAG: dict[str, Any] = {
    "nonsense": {"type": "structural_tag", "format": {"type": "nonsense"}},
    "a schema that is none": {
        "type": "structural_tag",
        "format": {"type": "json_schema", "json_schema": {"type": "array", "items": [1]}},
    },
    "tag in tag in tag": '{"format": ' * 10_000,
    "10,000 tags": {"structures": [{"begin": f"<{i}>", "schema": {}, "end": ">"} for i in range(10_000)], "triggers": ["<"]},
    "large grammars": {"format": {"type": "repeat", "min": 9, "max": 99_999, "content": {"type": "regex", "pattern": "(a{1000}b){1000}"}}},
    "empty triggers": {"structures": [{"begin": "", "schema": {}, "end": ""}], "triggers": [""]},
}

HOSTILE: dict[str, GrammarSpec] = {
    **{f"regex: {name}": _regex(text) for name, text in _HOSTILE_REGEX.items()},
    **{f"EBNF: {name}": _ebnf(text) for name, text in _HOSTILE_EBNF.items()},
    **{f"Lark: {name}": _lark(text) for name, text in _HOSTILE_LARK.items()},
    **{f"schema: {name}": _schema(schema) for name, schema in _HOSTILE_SCHEMA.items()},
    **{f"tag: {name}": _tag(tag) for name, tag in _HOSTILE_TAG.items()},
    "choice: 30,000 choices": GrammarSpec(GrammarKind.CHOICE, json.dumps([f"choice {index}" for index in range(30_000)])),
    "choice: prefixes of each other": GrammarSpec(GrammarKind.CHOICE, json.dumps(["a" * length for length in range(1, 900)])),
}

_FIELDS = {
    GrammarKind.JSON_SCHEMA: "json",
    GrammarKind.REGEX: "regex",
    GrammarKind.EBNF: "grammar",
    GrammarKind.LARK: "grammar",
    GrammarKind.STRUCTURAL_TAG: "structural_tag",
}


def request_field(spec: GrammarSpec) -> dict[str, Any]:
    """The spec as a request's `structured_outputs`."""
    if spec.kind is GrammarKind.CHOICE:
        return {"choice": json.loads(spec.text)}
    return {_FIELDS[spec.kind]: spec.text}
