"""What a request says beside its constraint: a deadline, and how schemas are read."""

from __future__ import annotations

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


@pytest.mark.parametrize(
    ("asked", "default", "closed"), [(None, True, True), (None, False, False), (False, True, False), (True, False, True)]
)
def test_additional_properties_are_disabled_as_asked(asked: bool | None, default: bool, closed: bool) -> None:
    options = {"json": {"type": "object"}} | ({} if asked is None else {"disable_additional_properties": asked})
    requested = take_constraint({"structured_outputs": options}, ConstraintDefaults(closed=default), "hermes")
    assert isinstance(requested, Requested)
    assert requested.spec.closed is closed


@pytest.mark.parametrize(
    ("asked", "default", "refuses"), [(None, True, True), (None, False, False), ("warn", True, False), ("refuse", False, True)]
)
def test_unknown_keywords_are_refused_as_asked(asked: str | None, default: bool, refuses: bool) -> None:
    options = {"json": {"type": "object"}} | ({} if asked is None else {"unknown_keywords": asked})
    requested = take_constraint({"structured_outputs": options}, ConstraintDefaults(refuses_unknown=default), "hermes")
    assert isinstance(requested, Requested)
    assert requested.spec.refuses_unknown is refuses


def test_a_wrong_choice_about_unknown_keywords_is_refused() -> None:
    with pytest.raises(ApiError) as caught:
        take_constraint({"structured_outputs": {"json": {}, "unknown_keywords": "ignore"}}, ConstraintDefaults(), "hermes")
    assert caught.value.param == "structured_outputs.unknown_keywords"


def test_disabling_additional_properties_is_a_flag() -> None:
    with pytest.raises(ApiError) as caught:
        take_constraint({"structured_outputs": {"json": {}, "disable_additional_properties": "no"}}, ConstraintDefaults(), "hermes")
    assert caught.value.param == "structured_outputs.disable_additional_properties"


@pytest.mark.parametrize(
    ("asked", "default", "formats"), [(None, True, True), (None, False, False), ("enforce", False, True), ("annotate", True, False)]
)
def test_formats_are_enforced_as_asked(asked: str | None, default: bool, formats: bool) -> None:
    options = {"json": {"type": "string"}} | ({} if asked is None else {"format": asked})
    requested = take_constraint({"structured_outputs": options}, ConstraintDefaults(formats=default), "hermes")
    assert isinstance(requested, Requested)
    assert requested.spec.formats is formats


@pytest.mark.parametrize(
    ("asked", "default", "any_order"), [(None, True, True), (None, False, False), ("declared", True, False), ("any", False, True)]
)
def test_members_come_in_any_order_as_asked(asked: str | None, default: bool, any_order: bool) -> None:
    options = {"json": {"type": "object"}} | ({} if asked is None else {"property_order": asked})
    requested = take_constraint({"structured_outputs": options}, ConstraintDefaults(any_order=default), "hermes")
    assert isinstance(requested, Requested)
    assert requested.spec.any_order is any_order


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


def test_another_order_is_refused() -> None:
    with pytest.raises(ApiError) as caught:
        take_constraint({"structured_outputs": {"json": {}, "property_order": "sorted"}}, ConstraintDefaults(), "hermes")
    assert caught.value.param == "structured_outputs.property_order"


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


def test_another_way_to_read_formats_is_refused() -> None:
    with pytest.raises(ApiError) as caught:
        take_constraint({"structured_outputs": {"json": {}, "format": True}}, ConstraintDefaults(), "hermes")
    assert caught.value.param == "structured_outputs.format"
