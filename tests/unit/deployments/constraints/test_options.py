"""What a request says beside its constraint: a deadline, and how schemas are read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from deployments.constraints.defaults import ConstraintDefaults
from deployments.constraints.forms import LEAST_DEADLINE_S, MOST_DEADLINE_S, Requested, take_constraint
from deployments.errors import ApiError

SCHEMA = {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"type": "string"}}, "required": ["b", "a"]}


@pytest.mark.parametrize("asked", [0, -1, "5", True, [1], float("inf"), float("nan"), 1e-6, -(10**400)])
def test_a_compile_deadline_must_be_a_time(asked: object) -> None:
    with pytest.raises(ApiError) as caught:
        take_constraint({"structured_outputs": {"regex": "a", "compile_deadline_s": asked}}, ConstraintDefaults(), "hermes")
    assert caught.value.param == "structured_outputs.compile_deadline_s"


@pytest.mark.parametrize(("asked", "given"), [(2, 2.0), (LEAST_DEADLINE_S, LEAST_DEADLINE_S), (10**400, MOST_DEADLINE_S)])
def test_a_compile_deadline_goes_with_its_constraint(asked: float, given: float) -> None:
    requested = take_constraint({"structured_outputs": {"regex": "a", "compile_deadline_s": asked}}, ConstraintDefaults(), "hermes")
    assert isinstance(requested, Requested)
    assert requested.deadline_s == given


READING = {
    "disable_additional_properties": ("closed", True, False),
    "unknown_keywords": ("refuses_unknown", "refuse", "warn"),
    "format": ("formats", "enforce", "annotate"),
    "property_order": ("any_order", "any", "declared"),
}
"""By option: the part of a spec that it decides, and what it is for true and false."""


@pytest.mark.parametrize("default", [True, False])
@pytest.mark.parametrize("option", READING)
def test_a_schema_is_read_as_asked_or_by_default(option: str, default: bool) -> None:
    part, *words = READING[option]
    by_default: dict[str, Any] = {part: default}
    for asked, expected in ((None, default), (words[0], True), (words[1], False)):
        options = {"json": {"type": "object"}} | ({} if asked is None else {option: asked})
        requested = take_constraint({"structured_outputs": options}, replace(ConstraintDefaults(), **by_default), "hermes")
        assert isinstance(requested, Requested)
        assert getattr(requested.spec, part) is expected


@pytest.mark.parametrize(
    ("option", "value"),
    [("unknown_keywords", "ignore"), ("disable_additional_properties", "no"), ("property_order", "sorted"), ("format", True)],
)
def test_another_choice_is_refused(option: str, value: object) -> None:
    with pytest.raises(ApiError) as caught:
        take_constraint({"structured_outputs": {"json": {}, option: value}}, ConstraintDefaults(), "hermes")
    assert caught.value.param == f"structured_outputs.{option}"


def test_other_constraints_than_schemas_have_no_members_to_order() -> None:
    requested = take_constraint({"structured_outputs": {"regex": "a"}}, ConstraintDefaults(any_order=True), "hermes")
    assert isinstance(requested, Requested)
    assert not requested.spec.any_order


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "f"}}])
def test_tool_calls_keep_their_order(choice: object) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "boolean"}}}
    body = {"tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}], "tool_choice": choice}
    requested = take_constraint(body, ConstraintDefaults(any_order=True), "hermes")
    assert isinstance(requested, Requested)
    assert not requested.spec.any_order


FORMAT = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}


def test_options_alone_are_for_a_constraint_in_another_field() -> None:
    options = {"property_order": "any", "whitespace": "compact", "canonical": True, "compile_deadline_s": 2}
    requested = take_constraint({"response_format": FORMAT, "structured_outputs": options}, ConstraintDefaults(), "hermes")
    assert isinstance(requested, Requested)
    spec = requested.spec
    assert (requested.field, requested.deadline_s) == ("response_format.json_schema.schema", 2.0)
    assert (spec.any_order, spec.whitespace, spec.canonical) == (True, "compact", True)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "structured_outputs"),
        ({"response_format": {"type": "text"}}, "structured_outputs"),
        ({"response_format": {"type": "grammar", "grammar_id": "a"}}, "structured_outputs.canonical"),
    ],
)
def test_options_without_a_constraint_are_refused(body: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as caught:
        take_constraint({**body, "structured_outputs": {"canonical": True}}, ConstraintDefaults(), "hermes")
    assert caught.value.param == param


@pytest.mark.parametrize("form", [{"json": {"type": "string"}}, {"json_object": True}, {"regex": "a"}, {"choice": ["a"]}])
@pytest.mark.parametrize(
    ("asked", "default", "canonical"), [(None, False, False), (None, True, True), (True, False, True), (False, True, False)]
)
def test_any_constraint_is_canonical_as_asked(form: dict[str, Any], asked: bool | None, default: bool, canonical: bool) -> None:
    options = form | ({} if asked is None else {"canonical": asked})
    requested = take_constraint({"structured_outputs": options}, ConstraintDefaults(canonical=default), "hermes")
    assert isinstance(requested, Requested)
    assert requested.spec.canonical is canonical


def test_forms_without_options_are_canonical_by_default() -> None:
    body = {"response_format": {"type": "json_object"}}
    requested = take_constraint(body, ConstraintDefaults(canonical=True), "hermes")
    assert isinstance(requested, Requested)
    assert requested.spec.canonical


@pytest.mark.parametrize("value", ["yes", 1, [True]])
def test_canonical_is_a_flag(value: object) -> None:
    with pytest.raises(ApiError) as caught:
        take_constraint({"structured_outputs": {"regex": "a", "canonical": value}}, ConstraintDefaults(), "hermes")
    assert caught.value.param == "structured_outputs.canonical"


def test_what_a_name_stands_for_is_canonical_or_not_since_it_has_its_name() -> None:
    with pytest.raises(ApiError) as caught:
        take_constraint({"structured_outputs": {"grammar_id": "a", "canonical": True}}, ConstraintDefaults(), "hermes")
    assert caught.value.param == "structured_outputs.canonical"
