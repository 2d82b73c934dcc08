"""Named constraints are read, from requests and from the settings, or refused with the field at fault."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.config import parse_settings
from deployments.constraints.defaults import ConstraintDefaults
from deployments.errors import ApiError, SettingsError
from deployments.grammars.registration import read_registration, settings_grammars
from grammar_service.spec import GrammarKind, GrammarSpec

REGEX = {"regex": "[a-z]+"}


def test_a_constraint_is_named_in_each_of_its_forms() -> None:
    registration = read_registration({"id": "word", "structured_outputs": REGEX}, ConstraintDefaults())
    assert (registration.id, registration.replace) == ("word", False)
    assert registration.constraint.spec == GrammarSpec(GrammarKind.REGEX, "[a-z]+")
    body = {"id": "any", "response_format": {"type": "json_object"}, "replace": True}
    registration = read_registration(body, ConstraintDefaults("compact"))
    assert registration.replace
    assert registration.constraint.spec == GrammarSpec(GrammarKind.JSON_OBJECT, "", "compact")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"structured_outputs": REGEX}, "id"),
        ({"id": "a/b", "structured_outputs": REGEX}, "id"),
        ({"id": "x" * 65, "structured_outputs": REGEX}, "id"),
        ({"id": 7, "structured_outputs": REGEX}, "id"),
        ({"id": "word"}, "structured_outputs"),
        ({"id": "word", "response_format": {"type": "text"}}, "structured_outputs"),
        ({"id": "word", "structured_outputs": {"regex": 7}}, "structured_outputs.regex"),
        ({"id": "word", "structured_outputs": {"grammar_id": "other"}}, "structured_outputs.grammar_id"),
        ({"id": "word", "structured_outputs": REGEX, "response_format": {"type": "json_object"}}, "structured_outputs.regex"),
        ({"id": "word", "structured_outputs": REGEX, "replace": "yes"}, "replace"),
        ({"id": "word", "structured_outputs": REGEX, "messages": []}, "messages"),
        ({"id": "word", "guided_regex": "a"}, "guided_regex"),
    ],
)
def test_a_registration_at_fault_names_its_field(body: dict[str, Any], field: str) -> None:
    with pytest.raises(ApiError) as caught:
        read_registration(body, ConstraintDefaults())
    assert (caught.value.status, caught.value.param) == (400, field)


def test_the_settings_name_grammars() -> None:
    tree = {"grammar": {"whitespace": "compact"}, "grammars": {"word": REGEX, "point": {"json": {"type": "integer"}}}}
    specs = settings_grammars(parse_settings(tree))
    assert specs["word"] == GrammarSpec(GrammarKind.REGEX, "[a-z]+")
    assert specs["point"] == GrammarSpec(GrammarKind.JSON_SCHEMA, '{"type": "integer"}', "compact")


@pytest.mark.parametrize(
    ("name", "constraint", "named"),
    [
        ("word", {"regx": "a"}, r"grammars\.word\.regx"),
        ("word", {"regex": "a", "choice": ["b"]}, r"grammars\.word"),
        ("word", {}, r"grammars\.word"),
        ("word", {"grammar_id": "other"}, r"grammars\.word\.grammar_id"),
        ("word", {"choice": [True]}, r"grammars\.word\.choice"),
        ("word", {"json": {"type": "objec"}}, r"grammars\.word\.json#/type"),
        ("word", {"regex": "("}, r"grammars\.word\.regex"),
        ("a word", REGEX, r"grammars\.a word"),
        ("word", "regex", r"grammars\.word"),
    ],
)
def test_a_wrong_grammar_in_the_settings_is_refused_by_name(name: str, constraint: Any, named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        settings_grammars(parse_settings({"grammars": {name: constraint}}))


def test_limits_of_the_settings_hold_for_their_own_grammars() -> None:
    with pytest.raises(SettingsError, match=r"grammars\.word\.regex.*limit is 10"):
        settings_grammars(parse_settings({"grammar": {"max_constraint_bytes": 10}, "grammars": {"word": {"regex": "a" * 11}}}))
