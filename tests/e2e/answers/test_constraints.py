"""Each kind of constraint yields only valid output, greedy and sampled, whatever the model would rather say."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import lark
import pytest

from tests.e2e.service import Service

QUESTION = "Extract title, year, tags as JSON.\n\nThe title is Kore Beme. year: 1999. tags: red."
SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 12},
        "year": {"type": "integer", "minimum": 0, "maximum": 3000},
        "mood": {"enum": ["calm", "loud", None]},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}, "minItems": 1, "maxItems": 2},
    },
    "required": ["title", "year", "mood", "parts"],
    "additionalProperties": False,
    "$defs": {"part": {"type": "object", "properties": {"n": {"type": "boolean"}}, "required": ["n"], "additionalProperties": False}},
}
ARITHMETIC = """root ::= term (" + " term){1,3}
term ::= [0-9] | "(" [0-9] " * " [0-9] ")"
"""
PATH = r"""start: "/" NAME "/" NAME ("/" NAME)?
NAME: /[a-z]{1,4}/
"""
TAG = {
    "type": "structural_tag",
    "format": {"type": "tag", "begin": "<a>", "content": {"type": "json_schema", "json_schema": {"enum": ["x", "y"]}}, "end": "</a>"},
}
temperatures = pytest.mark.parametrize("temperature", [0, 1])


@temperatures
@pytest.mark.parametrize("whitespace", ["flexible", "standard", "compact", "indent:2"])
def test_json_follows_its_schema_and_whitespace(service: Service, temperature: float, whitespace: str) -> None:
    text = service.text(
        QUESTION, structured_outputs={"json": SCHEMA, "whitespace": whitespace}, temperature=temperature, seed=5, max_tokens=400
    )
    value = json.loads(text)
    jsonschema.validate(value, SCHEMA)
    layouts: dict[str, dict[str, Any]] = {"standard": {}, "compact": {"separators": (",", ":")}, "indent:2": {"indent": 2}}
    if whitespace in layouts:
        assert text == json.dumps(value, **layouts[whitespace])


@temperatures
def test_json_object_is_an_object(service: Service, temperature: float) -> None:
    text = service.text(QUESTION, response_format={"type": "json_object"}, temperature=temperature, seed=2, max_tokens=512)
    assert isinstance(json.loads(text), dict)


@temperatures
@pytest.mark.parametrize("pattern", [r"[A-Z][a-z]{2,8}-\d{3}", r"(true|false)( and (true|false)){0,2}", r"\w{1,8}@\w{1,8}\.(com|org)"])
def test_text_matches_its_regex(service: Service, temperature: float, pattern: str) -> None:
    text = service.text(QUESTION, structured_outputs={"regex": pattern}, temperature=temperature, seed=7, max_tokens=300)
    assert re.fullmatch(pattern, text)


@temperatures
def test_text_is_one_of_the_choices(service: Service, temperature: float) -> None:
    choices = ["yes", "no", 'a "quoted" one', "line\nbreak", "snö"]
    assert service.text(QUESTION, structured_outputs={"choice": choices}, temperature=temperature, seed=1) in choices


@temperatures
def test_text_follows_an_ebnf_grammar(service: Service, temperature: float) -> None:
    text = service.text(QUESTION, guided_grammar=ARITHMETIC, temperature=temperature, seed=3)
    assert re.fullmatch(r"(\d|\(\d \* \d\))( \+ (\d|\(\d \* \d\))){1,3}", text)


@temperatures
def test_text_follows_a_lark_grammar(service: Service, temperature: float) -> None:
    text = service.text(QUESTION, structured_outputs={"grammar": PATH}, temperature=temperature, seed=3)
    lark.Lark(PATH).parse(text)


@temperatures
def test_text_follows_a_structural_tag(service: Service, temperature: float) -> None:
    assert service.text(QUESTION, structured_outputs={"structural_tag": TAG}, temperature=temperature, seed=3) in (
        '<a>"x"</a>',
        '<a>"y"</a>',
    )


def test_a_second_request_of_the_same_grammar_costs_no_second_compile(service: Service) -> None:
    fresh = {"structured_outputs": {"regex": "[k-q]{2}7"}}
    assert re.fullmatch("[k-q]{2}7", service.text(QUESTION, **fresh))
    assert re.fullmatch("[k-q]{2}7", service.text(QUESTION, **fresh))


WORD = {"type": "object", "properties": {"word": {"enum": ["kelp", "moss"]}}, "required": ["word"], "additionalProperties": False}
WORD_TEXT = r'\{\s*"word":\s*"(kelp|moss)"\s*\}'
GBNF = """# of two syllables
root ::= syllable{2}
syllable ::= [k-n] ("a" | "o")
"""
FORMS: list[tuple[dict[str, Any], str]] = [
    # SGLang
    ({"regex": "[k-n][ao]"}, "[k-n][ao]"),
    ({"ebnf": GBNF}, "([k-n][ao]){2}"),
    ({"json_schema": json.dumps(WORD)}, WORD_TEXT),
    # llama.cpp
    ({"grammar": GBNF}, "([k-n][ao]){2}"),
    ({"json_schema": WORD}, WORD_TEXT),
    # other servers
    ({"response_format": {"type": "json_object", "schema": WORD}}, WORD_TEXT),
    ({"response_format": {"type": "json_schema", "schema": WORD}}, WORD_TEXT),
    ({"response_format": {"type": "regex", "pattern": "[k-n][ao]"}}, "[k-n][ao]"),
    ({"response_format": {"type": "regex", "value": "[k-n][ao]"}}, "[k-n][ao]"),
    ({"response_format": {"type": "grammar", "grammar": GBNF}}, "([k-n][ao]){2}"),
]


@pytest.mark.parametrize(("form", "pattern"), FORMS, ids=[json.dumps(form)[:60] for form, _ in FORMS])
def test_the_forms_of_other_servers_mean_what_they_mean_there(service: Service, form: dict[str, Any], pattern: str) -> None:
    response = service.chat(QUESTION, temperature=1, seed=4, **form)
    assert response.status_code == 200, response.text
    body = response.json()
    assert re.fullmatch(pattern, body["choices"][0]["message"]["content"])
    assert "maskcast" not in body, "nothing to warn of"


def test_a_field_that_nobody_knows_is_named_and_openais_own_pass_in_silence(service: Service) -> None:
    known = {"store": True, "metadata": {"a": "b"}, "user": "somebody", "service_tier": "auto"}
    response = service.chat(QUESTION, regex="[k-n]", max_token=3, **known)
    assert response.status_code == 200, response.text
    told = response.json()
    assert re.fullmatch("[k-n]", told["choices"][0]["message"]["content"])
    assert [warning["pointer"] for warning in told["maskcast"]["warnings"]] == ["/max_token"]
