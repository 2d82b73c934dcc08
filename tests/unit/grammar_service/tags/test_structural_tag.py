"""Structural tags are enforced exactly, or refused at the place of what would not be."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from grammar_service.backends import select_backend
from grammar_service.backends.xgrammar.backend import XgrammarBackend
from grammar_service.backends.xgrammar.support import lone_xgrammar_faults
from grammar_service.errors import GrammarError, GrammarTooLarge, InvalidGrammar, UnsupportedGrammar
from grammar_service.limits import Limits, check_limits
from grammar_service.schema.json_text import Json
from grammar_service.spec import FLEXIBLE, MAX_WHITESPACE, STANDARD, GrammarKind, GrammarSpec
from grammar_service.tags.fields import MAX_TRIGGERS
from grammar_service.tags.structural_tag import MAX_FORMATS, tag_faults
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.driving import accepts, grammar_of
from tests.unit.grammar_service.backends.test_enforcement import CASES, NAMES

WEAK = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}
"""xgrammar would drop the `uniqueItems`."""
WEAK_AT = "/properties/a/uniqueItems"
OBJECT = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}, "required": ["a"]}
ONE: dict[str, Any] = {"type": "const_string", "value": "1"}


def spec(tag: Any, whitespace: str = STANDARD) -> GrammarSpec:
    return GrammarSpec(GrammarKind.STRUCTURAL_TAG, json.dumps(tag), whitespace)


def new(content: Any) -> dict[str, Any]:
    return {"type": "structural_tag", "format": content}


def schema_format(schema: Any, **options: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": schema, **options}


def tag(begin: str, content: Any, end: Any = ">") -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def triggered(content: Any, **options: Any) -> dict[str, Any]:
    return {"type": "triggered_tags", "triggers": ["<"], "tags": [tag("<a ", content)], **options}


PLACES: dict[str, tuple[Any, str]] = {
    "json_schema": (new(schema_format(WEAK)), "/format/json_schema"),
    "tag": (new(tag("<", schema_format(WEAK))), "/format/content/json_schema"),
    "sequence": (new({"type": "sequence", "elements": [ONE, schema_format(WEAK)]}), "/format/elements/1/json_schema"),
    "or": (new({"type": "or", "elements": [schema_format(WEAK), ONE]}), "/format/elements/0/json_schema"),
    "optional": (new({"type": "optional", "content": schema_format(WEAK)}), "/format/content/json_schema"),
    "plus": (new({"type": "plus", "content": schema_format(WEAK)}), "/format/content/json_schema"),
    "star": (new({"type": "star", "content": schema_format(WEAK)}), "/format/content/json_schema"),
    "repeat": (new({"type": "repeat", "min": 1, "max": 2, "content": schema_format(WEAK)}), "/format/content/json_schema"),
    "triggered_tags": (new(triggered(schema_format(WEAK))), "/format/tags/0/content/json_schema"),
    "tags_with_separator": (
        new({"type": "tags_with_separator", "separator": ",", "tags": [tag("<", schema_format(WEAK))]}),
        "/format/tags/0/content/json_schema",
    ),
    "dispatch": (new({"type": "dispatch", "rules": [["<", schema_format(WEAK)]]}), "/format/rules/0/1/json_schema"),
    "structures": ({"structures": [{"begin": "<a ", "schema": WEAK, "end": ">"}], "triggers": ["<a"]}, "/structures/0/schema"),
    "deep": (
        new({"type": "optional", "content": triggered({"type": "or", "elements": [tag("(", schema_format(WEAK))]})}),
        "/format/content/tags/0/content/elements/0/content/json_schema",
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_schema_that_would_be_weakened_is_refused_at_its_place(place: str) -> None:
    document, pointer = PLACES[place]
    with pytest.raises(UnsupportedGrammar) as caught:
        select_backend(spec(document))
    assert caught.value.pointer == pointer + WEAK_AT


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"$ref": "#/$defs/none"}, "/$ref"),
        ({"type": "text"}, "/type"),
        ({"divisibleBy": 2}, "/divisibleBy"),
        ({"type": "array", "items": [{"type": "text"}]}, "/items/0/type"),
        ({"type": "string", "pattern": "a"}, "/pattern"),
    ],
)
def test_an_embedded_schema_is_refused_where_one_alone_would_be(schema: Any, pointer: str) -> None:
    with pytest.raises(GrammarError) as caught:
        select_backend(spec(new(tag("<", schema_format(schema)))))
    assert caught.value.pointer == "/format/content/json_schema" + pointer


@pytest.mark.parametrize(("schema", "valid", "invalid"), CASES, ids=NAMES)
def test_an_embedded_schema_is_enforced_as_one_alone(
    schema: Any, valid: list[Any], invalid: list[Any], tokenizer: GrammarTokenizer
) -> None:
    document = spec(new(tag("<x>", schema_format(schema), "</x>")))
    alone = GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(schema), "indent:2")
    assert bool(XgrammarBackend().unsupported(document)) == bool(XgrammarBackend().unsupported(alone))
    if XgrammarBackend().unsupported(document):
        return
    grammar = grammar_of(document, tokenizer)

    def enclosed(value: Any) -> str:
        return f"<x>{json.dumps(value, ensure_ascii=False)}</x>"

    assert [value for value in valid if not accepts(grammar, enclosed(value))] == []
    assert [value for value in invalid if accepts(grammar, enclosed(value))] == []


K = "<a 1>"
LANGUAGES: dict[str, tuple[Any, list[str], list[str]]] = {
    "const_string": (ONE, ["1"], ["", "11", "2"]),
    "regex": ({"type": "regex", "pattern": r"^a(?:\.\d{1,2})?b$"}, ["ab", "a.1b"], ["a1b", "abx", "a.123b"]),
    "grammar": ({"type": "grammar", "grammar": 'root ::= "a" root "b" | "c"'}, ["c", "aacbb"], ["", "aacb"]),
    "any_text": ({"type": "any_text"}, ["", "a<b"], []),
    "any_text with exclusions": ({"type": "any_text", "excludes": ["aba", "x"]}, ["", "ab", "ba"], ["aba", "ax"]),
    "any_text of few characters": ({"type": "any_text", "max_chars": 2, "max_tokens": None}, ["", "éü"], ["abc"]),
    "any_text in a tag": (tag("<", {"type": "any_text"}, ["/>", "]"]), ["<a/>", "<]"], ["<a", "<a/>b/>"]),
    "sequence": ({"type": "sequence", "elements": [ONE, schema_format(OBJECT)]}, ['1{"a": 3}'], ['{"a": 3}', '1{"a": 2}', "1"]),
    "or": ({"type": "or", "elements": [ONE, schema_format(OBJECT)]}, ["1", '{"a": 3}'], ['1{"a": 3}', '{"a": 2}']),
    "optional": ({"type": "optional", "content": ONE}, ["", "1"], ["11"]),
    "plus": ({"type": "plus", "content": ONE}, ["1", "111"], [""]),
    "star": ({"type": "star", "content": ONE}, ["", "111"], ["112"]),
    "repeat": ({"type": "repeat", "min": 1, "max": 2, "content": ONE}, ["1", "11"], ["", "111"]),
    "repeat without end": ({"type": "repeat", "min": 2, "max": -1, "content": ONE}, ["11", "1" * 9], ["1"]),
    "triggered_tags": (triggered(ONE), ["", "x", f"x{K}y{K}"], ["<", "<b", "<a 2>", "x<a 1"]),
    "triggered once": (triggered(ONE, stop_after_first=True), ["x", f"x{K}"], [f"{K}{K}", f"{K}x"]),
    "triggered at least once": (triggered(ONE, at_least_one=True), [K, f"{K}x{K}"], ["", f"x{K}"]),
    "triggered, with exclusions": (triggered(ONE, excludes=["b"]), [f"x{K}x"], ["b", f"{K}b"]),
    "tags_with_separator": (
        {"type": "tags_with_separator", "separator": ",", "tags": [{"begin": "<", "content": ONE, "end": ">"}]},
        ["", "<1>", "<1>,<1>"],
        ["<1>,", "<1><1>", "<2>"],
    ),
    "dispatch": ({"type": "dispatch", "rules": [["<", ONE]], "excludes": ["z"]}, ["x<1y<1", ""], ["<", "<2", "z"]),
    "dispatch once": ({"type": "dispatch", "rules": [["<", ONE]], "loop": False}, ["x<1", ""], ["<1<1", "<1x", "<2"]),
}


@pytest.mark.parametrize("name", LANGUAGES)
def test_each_format_means_what_it_says(name: str, tokenizer: GrammarTokenizer) -> None:
    content, valid, invalid = LANGUAGES[name]
    grammar = grammar_of(spec(new(content)), tokenizer)
    assert [text for text in valid if not accepts(grammar, text)] == []
    assert [text for text in invalid if accepts(grammar, text)] == []


@pytest.mark.parametrize("extra", [{}, {"type": "structural_tag"}])
def test_the_older_form_means_triggered_tags(extra: dict[str, str], tokenizer: GrammarTokenizer) -> None:
    structures = [{"begin": f"<{name}>", "schema": {"type": kind}, "end": "</>"} for name, kind in (("i", "integer"), ("b", "boolean"))]
    grammar = grammar_of(spec({"structures": structures, "triggers": ["<"], **extra}), tokenizer)
    assert accepts(grammar, "free <i>12</> text <b>true</>.")
    assert not accepts(grammar, "<i>true</>")
    assert not accepts(grammar, "<c>1</>")


def test_embedded_json_has_the_layout_that_is_asked_for(tokenizer: GrammarTokenizer) -> None:
    content = new(tag("<", schema_format({"type": "array", "items": {"type": "integer"}})))
    standard, indented, flexible = (grammar_of(spec(content, layout), tokenizer) for layout in (STANDARD, "indent:2", FLEXIBLE))
    assert accepts(standard, "<[1, 2]>")
    assert not accepts(standard, "<[1,2]>")
    assert accepts(indented, "<[\n  1,\n  2\n]>")
    assert not accepts(indented, "<[1, 2]>")
    assert accepts(flexible, f"<[1{' ' * MAX_WHITESPACE},2]>")
    assert not accepts(flexible, f"<[1{' ' * (MAX_WHITESPACE + 1)},2]>")
    with pytest.raises(UnsupportedGrammar, match="compact"):
        select_backend(spec(content, "compact"))


@pytest.mark.parametrize("name", ["über", "éa", "ÿ1", "東abc", "🎉e", "été\\xe9", 'x"é"9'])
def test_letters_beyond_ascii_stay_themselves(name: str, tokenizer: GrammarTokenizer) -> None:
    content = schema_format({"properties": {name: {"const": name}}, "required": [name], "additionalProperties": False})
    grammar = grammar_of(spec(new(tag(f"<{name}", content))), tokenizer, "xgrammar")
    written = json.dumps(name, ensure_ascii=False)
    assert accepts(grammar, f"<{name}{{{written}: {written}}}>")
    assert not accepts(grammar, f"<{name}{{{written}: {json.dumps(name + 'e', ensure_ascii=False)}}}>")


def test_a_format_can_ask_for_free_whitespace_of_its_own(tokenizer: GrammarTokenizer) -> None:
    grammar = grammar_of(spec(new(schema_format({"type": "array", "items": {"type": "integer"}}, max_whitespace_cnt=2))), tokenizer)
    assert accepts(grammar, "[1,2]")
    assert accepts(grammar, "[  1 ,\n\n2]")
    assert not accepts(grammar, "[   1]")


def test_open_objects_stay_open(tokenizer: GrammarTokenizer) -> None:
    grammar = grammar_of(spec(new(schema_format({**OBJECT, "additionalProperties": True}))), tokenizer)
    assert accepts(grammar, '{"a": 3, "b": [null]}')


def suffixed(marks: list[str], content: Any) -> dict[str, Any]:
    return {"type": "suffixed", "marks": marks, "content": content}


DISPATCH = {"type": "triggered_tags", "triggers": ["aba", "b"], "tags": [tag("aba1", ONE), tag("b2", ONE)]}
REFUSED: list[tuple[Any, type[GrammarError], str | None]] = [
    ([], InvalidGrammar, ""),
    ({}, InvalidGrammar, ""),
    ({"type": "structural_tag"}, InvalidGrammar, ""),
    ({"type": "tag", "format": ONE}, InvalidGrammar, "/type"),
    ({**new(ONE), "strict": True}, UnsupportedGrammar, "/strict"),
    (new(1), InvalidGrammar, "/format"),
    (new({"value": "1"}), InvalidGrammar, "/format"),
    (new({"type": "nonsense"}), UnsupportedGrammar, "/format/type"),
    (new({"type": "const_string"}), InvalidGrammar, "/format"),
    (new({**ONE, "maximum": 3}), UnsupportedGrammar, "/format/maximum"),
    (new({"type": "const_string", "value": "a\0"}), InvalidGrammar, "/format/value"),
    (new({"type": "tag", "begin": "<", "end": ">"}), InvalidGrammar, "/format"),
    (new(tag("<", ONE, [])), InvalidGrammar, "/format/end"),
    (new(tag("<", ONE, {"type": "token", "token": 1})), UnsupportedGrammar, "/format/end"),
    (new({**tag("<", ONE), "begin": {"type": "token", "token": 1}}), UnsupportedGrammar, "/format/begin"),
    (new({"type": "sequence", "elements": []}), InvalidGrammar, "/format/elements"),
    (new({"type": "or", "elements": {"a": 1}}), InvalidGrammar, "/format/elements"),
    (new({"type": "token", "token": 7}), InvalidGrammar, "/format/token"),
    (new({"type": "token_dispatch"}), UnsupportedGrammar, "/format/type"),
    (new({"type": "qwen_xml_parameter", "json_schema": OBJECT}), UnsupportedGrammar, "/format/type"),
    (new({"type": "any_text", "max_tokens": 3}), UnsupportedGrammar, "/format/max_tokens"),
    (new({"type": "any_text", "max_chars": -1}), InvalidGrammar, "/format/max_chars"),
    (new({"type": "any_text", "excludes": ["a", ""]}), InvalidGrammar, "/format/excludes/1"),
    (new(schema_format(OBJECT, style="qwen_xml")), UnsupportedGrammar, "/format/style"),
    (new(schema_format(OBJECT, any_order=True)), UnsupportedGrammar, "/format/any_order"),
    (new(schema_format(OBJECT, excludes=["x"])), UnsupportedGrammar, "/format/excludes/0"),
    (new(schema_format(OBJECT, max_whitespace_cnt=33)), UnsupportedGrammar, "/format/max_whitespace_cnt"),
    (new(schema_format(OBJECT, max_whitespace_cnt=0)), UnsupportedGrammar, "/format/max_whitespace_cnt"),
    (new(schema_format("{}")), InvalidGrammar, "/format/json_schema"),
    (new(schema_format(False)), InvalidGrammar, "/format/json_schema"),
    (new({"type": "regex", "pattern": "(?=a)b"}), UnsupportedGrammar, "/format/pattern"),
    (new({"type": "regex", "pattern": "(" * 200 + "a" + ")" * 200}), GrammarTooLarge, "/format/pattern"),
    (new({"type": "grammar", "grammar": "root ::= " + "(" * 30_000}), GrammarTooLarge, "/format/grammar"),
    (new({"type": "repeat", "min": 0, "max": 3 * 10**9, "content": ONE}), UnsupportedGrammar, "/format/max"),
    (new({"type": "repeat", "min": 3, "max": 2, "content": ONE}), InvalidGrammar, "/format/min"),
    (new({"type": "repeat", "min": 0, "max": 2.5, "content": ONE}), InvalidGrammar, "/format/max"),
    (new({"type": "triggered_tags", "triggers": ["<"], "tags": [ONE]}), InvalidGrammar, "/format/tags/0/type"),
    (new({"type": "triggered_tags", "triggers": ["["], "tags": [tag("<", ONE)]}), InvalidGrammar, "/format/tags/0/begin"),
    (new({"type": "triggered_tags", "triggers": ["<", "["], "tags": [tag("<", ONE)]}), InvalidGrammar, "/format/triggers/1"),
    (new(DISPATCH), UnsupportedGrammar, "/format/triggers/1"),
    (new(triggered(ONE, excludes=["x<y"])), UnsupportedGrammar, "/format/triggers/0"),
    (new(tag("(", triggered(ONE), "/<")), UnsupportedGrammar, "/format/content/triggers/0"),
    (new({"type": "dispatch", "rules": [["aba", ONE], ["b", ONE]]}), UnsupportedGrammar, "/format/rules/1"),
    (new({"type": "dispatch", "rules": [["<"]]}), InvalidGrammar, "/format/rules/0"),
    (new(suffixed([], ONE)), InvalidGrammar, "/format/marks"),
    (new(suffixed(["a"], suffixed(["b"], ONE))), UnsupportedGrammar, "/format/content"),
    (new(suffixed(["a" * 201], ONE)), GrammarTooLarge, "/format/marks"),
    ({"structures": [], "triggers": ["<"]}, InvalidGrammar, "/structures"),
    ({"structures": [{"begin": "<", "end": ">"}], "triggers": ["<"]}, InvalidGrammar, "/structures/0"),
    ({"structures": [{"begin": "<", "schema": None, "end": ">"}], "triggers": ["<"]}, InvalidGrammar, "/structures/0/schema"),
    ({"structures": [{"begin": "<", "schema": {}, "end": ">"}]}, InvalidGrammar, ""),
]


@pytest.mark.parametrize(("document", "error", "pointer"), REFUSED, ids=[json.dumps(document)[:60] for document, _, _ in REFUSED])
def test_what_is_no_tag_or_would_be_weakened_is_refused(document: Json, error: type[GrammarError], pointer: str) -> None:
    with pytest.raises(error) as caught:
        tag_faults(json.dumps(document), lone_xgrammar_faults)
    assert caught.value.pointer == pointer


HOSTILE: dict[str, Any] = {
    "10,000 tags": new({"type": "tags_with_separator", "separator": "", "tags": [tag(f"<{index}", ONE) for index in range(10_000)]}),
    "wide": new({"type": "or", "elements": [ONE] * (MAX_FORMATS + 1)}),
    "many triggers": new(
        {
            "type": "triggered_tags",
            "triggers": [f"<{index:04}" for index in range(MAX_TRIGGERS + 1)],
            "tags": [tag(f"<{index:04}", ONE) for index in range(MAX_TRIGGERS + 1)],
        }
    ),
    "long exclusions": new(triggered(ONE, excludes=[f"{index}" * 4 for index in range(30_000)] + ["<"])),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_tags_are_refused_quickly(name: str) -> None:
    text = json.dumps(HOSTILE[name])
    started = time.process_time()
    with pytest.raises(GrammarError):
        tag_faults(text, lone_xgrammar_faults)
    assert time.process_time() - started < 1


def test_deep_nesting_is_refused_before_recursion() -> None:
    def nested(levels: int) -> str:
        return '{"format": ' + '{"type": "optional", "content": ' * levels + json.dumps(ONE) + "}" * (levels + 1)

    with pytest.raises(GrammarTooLarge):
        check_limits(GrammarSpec(GrammarKind.STRUCTURAL_TAG, nested(10_000)), Limits())
    with pytest.raises(GrammarTooLarge):
        tag_faults(nested(200), lone_xgrammar_faults)
    assert tag_faults(nested(120), lone_xgrammar_faults) == []


@pytest.mark.parametrize(
    ("schema", "text", "holds"),
    [
        ({"type": "string"}, '"a </p> b"', False),
        ({"type": "string"}, '"a <\\/p> b"', True),
        ({"type": "string"}, '"a \\u003c/p> </q>"', True),
        ({"type": "string", "maxLength": 9}, '"</p>"', False),
        ({"type": "string", "maxLength": 9}, '"a > b"', True),
        ({"enum": ["</p>", "x"]}, '"</p>"', False),
        ({"enum": ["</p>", "x"]}, '"\\u003c/p>"', True),
        ({"type": "object", "properties": {"</p>": {"type": "null"}}, "required": ["</p>"]}, '{"\\u003c/p>": null}', True),
        ({"type": "object", "additionalProperties": {"type": "string"}}, '{"a": "</p>"}', False),
    ],
)
def test_strings_have_none_of_the_excluded_texts_but_by_an_escape(schema: Any, text: str, holds: bool, tokenizer: GrammarTokenizer) -> None:
    assert accepts(grammar_of(spec(new(schema_format(schema, excludes=["</p>"]))), tokenizer), text) is holds


@pytest.mark.parametrize("name", ["</p>y", "q</p>y", "x</p>y"])
def test_additional_names_have_none_of_the_excluded_texts(name: str, tokenizer: GrammarTokenizer) -> None:
    schema = {"type": "object", "properties": {"q": {"type": "null"}}, "additionalProperties": {"type": "integer"}}
    grammar = grammar_of(spec(new(schema_format(schema, excludes=["</p>"]))), tokenizer)
    assert not accepts(grammar, json.dumps({name: 1}))
    assert accepts(grammar, json.dumps({name.replace("<", ""): 1}))
