"""Every form in which a client can state a constraint becomes one spec, or a clear 400."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deployments.constraints.defaults import ConstraintDefaults
from deployments.constraints.forms import NamedGrammar, Requested, take_constraint
from deployments.errors import ApiError
from grammar_service.spec import GrammarKind, GrammarSpec

SCHEMA = {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"type": "string"}}, "required": ["b", "a"]}
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": SCHEMA}}
STRICT_TOOL = {"type": "function", "function": {"name": "look_up", "parameters": SCHEMA, "strict": True}}


def take(body: dict[str, Any], tool_parser: str = "hermes") -> Requested | None:
    requested = take_constraint(body, ConstraintDefaults(), tool_parser)
    assert not isinstance(requested, NamedGrammar)
    return requested


@pytest.mark.parametrize(
    ("body", "kind", "text", "field"),
    [
        ({"response_format": {"type": "json_object"}}, "json_object", "", "response_format"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": True}}},
            "json_schema",
            json.dumps(SCHEMA),
            "response_format.json_schema.schema",
        ),
        ({"structured_outputs": {"json": SCHEMA}}, "json_schema", json.dumps(SCHEMA), "structured_outputs.json"),
        ({"structured_outputs": {"json": json.dumps(SCHEMA)}}, "json_schema", json.dumps(SCHEMA), "structured_outputs.json"),
        ({"structured_outputs": {"json_object": True}}, "json_object", "", "structured_outputs.json_object"),
        ({"structured_outputs": {"regex": "[a-z]+"}}, "regex", "[a-z]+", "structured_outputs.regex"),
        ({"structured_outputs": {"choice": ["yes", "no"]}}, "choice", '["yes", "no"]', "structured_outputs.choice"),
        ({"structured_outputs": {"grammar": 'root ::= "a"'}}, "ebnf", 'root ::= "a"', "structured_outputs.grammar"),
        ({"structured_outputs": {"grammar": 'start: "a"'}}, "lark", 'start: "a"', "structured_outputs.grammar"),
        ({"structured_outputs": {"structural_tag": {"type": "structural_tag"}}}, "structural_tag", '{"type": "structural_tag"}', None),
        ({"guided_json": SCHEMA}, "json_schema", json.dumps(SCHEMA), "guided_json"),
        ({"guided_regex": "a"}, "regex", "a", "guided_regex"),
        ({"structural_tag": '{"type": "structural_tag"}'}, "structural_tag", '{"type": "structural_tag"}', "structural_tag"),
        # SGLang, llama.cpp
        ({"regex": "a"}, "regex", "a", "regex"),
        ({"ebnf": "root ::= [a]"}, "ebnf", "root ::= [a]", "ebnf"),
        ({"json_schema": json.dumps(SCHEMA)}, "json_schema", json.dumps(SCHEMA), "json_schema"),
        ({"json_schema": SCHEMA}, "json_schema", json.dumps(SCHEMA), "json_schema"),
        ({"grammar": 'root ::= "a"'}, "ebnf", 'root ::= "a"', "grammar"),
        # what other servers take as a response_format
        ({"response_format": {"type": "json_object", "schema": SCHEMA}}, "json_schema", json.dumps(SCHEMA), "response_format.schema"),
        ({"response_format": {"type": "json_object", "value": SCHEMA}}, "json_schema", json.dumps(SCHEMA), "response_format.value"),
        ({"response_format": {"type": "json_schema", "schema": SCHEMA}}, "json_schema", json.dumps(SCHEMA), "response_format.schema"),
        ({"response_format": {"type": "json", "value": SCHEMA}}, "json_schema", json.dumps(SCHEMA), "response_format.value"),
        ({"response_format": {"type": "regex", "pattern": "a"}}, "regex", "a", "response_format.pattern"),
        ({"response_format": {"type": "regex", "value": "a"}}, "regex", "a", "response_format.value"),
        ({"response_format": {"type": "grammar", "grammar": 'root ::= "a"'}}, "ebnf", 'root ::= "a"', "response_format.grammar"),
        ({"guided_choice": ["a"], "guided_decoding_backend": "auto"}, "choice", '["a"]', "guided_choice"),
        ({"guided_grammar": 'root ::= "a"'}, "ebnf", 'root ::= "a"', "guided_grammar"),
    ],
)
def test_every_form_becomes_one_spec_and_leaves_the_body(body: dict[str, Any], kind: str, text: str, field: str | None) -> None:
    requested = take(body)
    assert requested is not None
    assert (requested.spec.kind, requested.spec.text) == (GrammarKind(kind), text)
    assert field is None or requested.field == field
    assert body == {}


@pytest.mark.parametrize(
    "body",
    [
        {"structured_outputs": {"regex": "a", "json": None, "whitespace_pattern": None, "_backend": None}},
        {"guided_regex": "a", "guided_whitespace_pattern": None, "guided_json_object": None},
    ],
)
def test_null_asks_for_nothing_whatever_its_name(body: dict[str, Any]) -> None:
    """Clients write out vLLM's own objects, with all of their members."""
    requested = take(body)
    assert requested is not None
    assert requested.spec == GrammarSpec(GrammarKind.REGEX, "a")


def test_no_constraint_is_none() -> None:
    assert take({"messages": []}) is None
    assert take({"response_format": {"type": "text"}}) is None


def test_property_order_reaches_the_spec() -> None:
    requested = take({"structured_outputs": {"json": SCHEMA}})
    assert requested is not None
    assert list(json.loads(requested.spec.text)["properties"]) == ["b", "a"]


@pytest.mark.parametrize(
    ("options", "whitespace"),
    [
        ({}, "standard"),
        ({"whitespace": "flexible"}, "flexible"),
        ({"whitespace": "indent:2"}, "indent:2"),
        ({"disable_any_whitespace": True}, "compact"),
    ],
)
def test_whitespace_is_a_choice_of_the_request(options: dict[str, Any], whitespace: str) -> None:
    requested = take({"structured_outputs": {"json": SCHEMA, **options}})
    assert requested is not None
    assert requested.spec.whitespace == whitespace


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"response_format": {"type": "yaml"}}, "response_format.type"),
        ({"response_format": "json"}, "response_format.type"),
        ({"response_format": {"type": "regex"}}, "response_format.pattern"),
        ({"response_format": {"type": "regex", "pattern": "a", "value": "b"}}, "response_format.pattern"),
        ({"response_format": {"type": "json_object", "schema": 7}}, "response_format.schema"),
        ({"response_format": {"type": "json_object", "json_schema": {"schema": SCHEMA}}}, "response_format.json_schema"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}, "schema": SCHEMA}}, "response_format.json_schema"),
        ({"response_format": {"type": "text", "schema": SCHEMA}}, "response_format.schema"),
        ({"response_format": {"type": "grammar", "grammar": "a: b", "grammar_id": "x"}}, "response_format.grammar"),
        ({"ebnf": {}}, "ebnf"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema.schema"),
        ({"structured_outputs": []}, "structured_outputs"),
        ({"structured_outputs": {}}, "structured_outputs"),
        ({"structured_outputs": {"jsn": SCHEMA}}, "structured_outputs.jsn"),
        ({"structured_outputs": {"json_object": False}}, "structured_outputs.json_object"),
        ({"structured_outputs": {"regex": 1}}, "structured_outputs.regex"),
        ({"structured_outputs": {"choice": "yes"}}, "structured_outputs.choice"),
        ({"structured_outputs": {"choice": [1]}}, "structured_outputs.choice"),
        ({"structured_outputs": {"json": SCHEMA, "whitespace": "tabs"}}, "structured_outputs.whitespace"),
        ({"structured_outputs": {"json": SCHEMA, "whitespace": 3}}, "structured_outputs.whitespace"),
        ({"guided_whitespace_pattern": " "}, "guided_whitespace_pattern"),
        ({"guided_jsn": SCHEMA}, "guided_jsn"),
        ({"functions": []}, "functions"),
        ({"tools": {}}, "tools"),
        ({"tools": [{"type": "retrieval"}]}, "tools[0]"),
        ({"tools": [{"function": {}}]}, "tools[0].function.name"),
        ({"tools": [{"function": {"name": "f", "parameters": []}}]}, "tools[0].function.parameters"),
        ({"tools": [TOOL, TOOL]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": "maybe"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "other"}}}, "tool_choice"),
    ],
)
def test_what_nobody_would_enforce_is_refused_by_field(body: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as caught:
        take(body)
    assert (caught.value.status, caught.value.param) == (400, param)


@pytest.mark.parametrize(
    "body",
    [
        {"guided_json": SCHEMA, "guided_regex": "a"},
        {"response_format": {"type": "json_object"}, "structured_outputs": {"regex": "a"}},
        {"structured_outputs": {"regex": "a", "json": SCHEMA}},
        {"structured_outputs": {"json": SCHEMA}, "tools": [TOOL], "tool_choice": "required"},
        {"structured_outputs": {"regex": "a"}, "tools": [TOOL]},
    ],
)
def test_contradicting_constraints_are_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as caught:
        take(body)
    assert caught.value.code == "conflicting_constraints"


def schema_of(requested: Requested | None) -> Any:
    assert requested is not None
    return json.loads(requested.spec.text)


def test_named_tool_constrains_to_its_arguments() -> None:
    choice = {"type": "function", "function": {"name": "look_up"}}
    assert schema_of(take({"tools": [TOOL], "tool_choice": choice})) == SCHEMA


def test_required_tool_constrains_to_calls_by_name() -> None:
    schema = schema_of(take({"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False}))
    assert schema["items"]["properties"] == {"name": {"const": "look_up"}, "parameters": SCHEMA}
    assert (schema["minItems"], schema["maxItems"]) == (1, 1)


def test_definitions_of_tools_move_to_the_root_without_clashing() -> None:
    tools = [
        {
            "function": {
                "name": name,
                "parameters": {"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": {"type": kind}}},
            }
        }
        for name, kind in (("f", "integer"), ("g", "string"))
    ]
    schema = schema_of(take({"tools": tools, "tool_choice": "required"}))
    references = [call["properties"]["parameters"]["$ref"] for call in schema["items"]["anyOf"]]
    assert references == ["#/$defs/tool0", "#/$defs/tool1"]
    assert schema["$defs"]["tool0"]["properties"]["x"]["$ref"] == "#/$defs/tool0/$defs/X"
    assert schema["$defs"]["tool1"]["properties"]["x"]["$ref"] == "#/$defs/tool1/$defs/X_2"
    assert schema["$defs"]["tool1"]["$defs"]["X_2"] == {"type": "string"}


def test_auto_tools_are_free_unless_strict() -> None:
    assert take({"tools": [TOOL]}) is None
    requested = take({"tools": [STRICT_TOOL], "tool_choice": "auto"})
    assert requested is not None
    assert requested.spec.kind is GrammarKind.STRUCTURAL_TAG


def test_strict_auto_tools_of_an_unknown_call_format_are_refused() -> None:
    with pytest.raises(ApiError) as caught:
        take({"tools": [STRICT_TOOL]}, tool_parser="a_plugins_own")
    assert caught.value.param == "tools"


def test_auto_tools_with_a_response_format_allow_either() -> None:
    requested = take({"tools": [TOOL], "response_format": {"type": "json_object"}})
    assert requested is not None
    assert json.loads(requested.spec.text)["format"]["type"] == "or"


def test_tool_choice_none_leaves_the_other_constraint() -> None:
    requested = take({"tools": [TOOL], "tool_choice": "none", "structured_outputs": {"regex": "a"}})
    assert requested is not None
    assert requested.spec.kind is GrammarKind.REGEX


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"structured_outputs": {"grammar_id": "person"}}, "structured_outputs.grammar_id"),
        ({"response_format": {"type": "grammar", "grammar_id": "person"}}, "response_format.grammar_id"),
    ],
)
def test_a_registered_grammar_is_left_to_be_looked_up(body: dict[str, Any], field: str) -> None:
    assert take_constraint(body, ConstraintDefaults(), "hermes") == NamedGrammar("person", field)
    assert body == {}


NAMED = {"structured_outputs": {"grammar_id": "person"}}


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({"structured_outputs": {"grammar_id": 7}}, "structured_outputs.grammar_id", "invalid_request"),
        ({"structured_outputs": {"grammar_id": ""}}, "structured_outputs.grammar_id", "invalid_request"),
        ({"response_format": {"type": "grammar"}}, "response_format.grammar", "invalid_request"),
        ({"structured_outputs": {"grammar_id": "person", "regex": "a"}}, "structured_outputs.grammar_id", "conflicting_constraints"),
        (
            {"structured_outputs": {"grammar_id": "person", "whitespace": "compact"}},
            "structured_outputs.whitespace",
            "conflicting_constraints",
        ),
        ({**NAMED, "response_format": {"type": "json_object"}}, "structured_outputs.grammar_id", "conflicting_constraints"),
        ({**NAMED, "guided_regex": "a"}, "guided_regex", "conflicting_constraints"),
        ({**NAMED, "tools": [TOOL], "tool_choice": "required"}, "tool_choice", "conflicting_constraints"),
        ({**NAMED, "tools": [TOOL]}, "tool_choice", "conflicting_constraints"),
    ],
)
def test_a_name_is_a_constraint_like_others(body: dict[str, Any], field: str, code: str) -> None:
    with pytest.raises(ApiError) as caught:
        take_constraint(dict(body), ConstraintDefaults(), "hermes")
    assert (caught.value.status, caught.value.param, caught.value.code) == (400, field, code)


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "look_up"}}])
def test_calls_are_forced_in_the_models_own_format_where_its_parser_reads_no_json(choice: Any) -> None:
    requested = take({"tools": [TOOL], "tool_choice": choice}, "dots")
    assert requested is not None
    assert requested.spec.kind is GrammarKind.STRUCTURAL_TAG
    told = json.loads(requested.spec.text)["format"]
    assert (told["type"], told["at_least_one"], told["stop_after_first"]) == ("tags_with_separator", True, choice != "required")
    assert [tag["content"]["json_schema"] for tag in told["tags"]] == [SCHEMA]


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "look_up"}}])
@pytest.mark.parametrize("parser", ["hf"])
def test_calls_are_not_forced_where_the_models_parser_would_take_them_for_text(parser: str, choice: Any) -> None:
    body: dict[str, Any] = {"tools": [TOOL], "tool_choice": choice}
    with pytest.raises(ApiError, match=rf"format \({parser}\) has no forced calls") as caught:
        take(dict(body), parser)
    assert (caught.value.status, caught.value.param) == (400, "tool_choice")
    assert take({**body, "tool_choice": "auto"}, parser) is None
    assert take(dict(body), "granite") is not None


@pytest.mark.parametrize("body", [{"tool_choice": "required"}, {}])
def test_calls_are_enforced_only_in_the_format_that_the_template_writes(body: dict[str, Any]) -> None:
    asked = {**body, "tools": [STRICT_TOOL], "chat_template_kwargs": {"tool_call_format": "json"}}
    with pytest.raises(ApiError, match="must be 'xml'") as caught:
        take(dict(asked), "k2_horizon")
    assert (caught.value.status, caught.value.param) == (400, "chat_template_kwargs.tool_call_format")
    assert take({**asked, "tool_choice": "none"}, "k2_horizon") is None
    assert take({**asked, "chat_template_kwargs": {"tool_call_format": "xml"}}, "k2_horizon") is not None
    assert take(dict(asked), "glm45") is not None


@pytest.mark.parametrize(("parser", "advice"), [("a_plugins_own", "Use tool_choice 'required'"), ("hf", "Leave 'strict' out")])
def test_who_cannot_have_strict_tools_is_told_what_else_there_is(parser: str, advice: str) -> None:
    with pytest.raises(ApiError, match=advice):
        take({"tools": [STRICT_TOOL]}, parser)
