"""Which schemas have objects with names that they do not list, and always one more of them."""

from __future__ import annotations

from typing import Any

import pytest

from grammar_service.errors import UnsupportedGrammar
from grammar_service.guards.distinct_items import Items
from grammar_service.guards.forms import ENOUGH, FREE, CountedStrings, IntegerRange
from grammar_service.guards.plan import guard_faults, plan_of
from grammar_service.regexes.counted import MANY, Beginnings
from grammar_service.regexes.string_set import StringSet
from grammar_service.regexes.unending import never_runs_out

OBJECT = {"type": "object"}


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        OBJECT,
        {"type": "array"},
        {"type": "array", "prefixItems": [{"type": "null"}]},
        {"type": ["string", "object"]},
        {"anyOf": [{"type": "null"}, {"type": "object", "additionalProperties": {"type": "null"}}]},
        {"type": "object", "patternProperties": {"^x-": True}, "additionalProperties": False},
        {"type": "object", "properties": {"a": True}, "additionalProperties": False},
        {"$ref": "#/$defs/a", "$defs": {"a": OBJECT}},
    ],
)
def test_names_that_are_not_listed_are_guarded(schema: Any) -> None:
    assert plan_of(schema) is not None


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "string"},
        {"enum": [{"a": 1}]},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False},
        {"type": "array", "items": {"type": "null"}},
        {"type": "array", "items": False},
        {"type": "array", "prefixItems": [{"type": "null"}], "maxItems": 1},
        {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"type": "null"}, {"const": {"a": 1}}]}}},
    ],
)
def test_listed_names_are_not(schema: Any) -> None:
    assert plan_of(schema) is None


@pytest.mark.parametrize("pattern", ["^x-", "a", "^[a-z]+$", "", "^a.*b$"])
def test_there_is_always_one_more_name(pattern: str) -> None:
    assert never_runs_out(StringSet.of_pattern(pattern))


@pytest.mark.parametrize("pattern", ["^a$", "^[ab]$", "^[a-z]{1,63}$", "^(a|b+)$", "^a*(b|c)$", "^(a|b)*c$"])
def test_names_may_run_out(pattern: str) -> None:
    assert not never_runs_out(StringSet.of_pattern(pattern))
    bounded: Any = {"type": "object", "patternProperties": {pattern: True}, "additionalProperties": False}
    plan = plan_of({"type": "object", "properties": {"a": bounded}, "additionalProperties": True})
    assert plan is not None
    root, place = plan.places
    assert (root.loose, place.loose) == (False, True)
    assert root.names == {"a": 1}


SET: dict[str, Any] = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
LIST = {"type": "array", "items": {"type": "string"}}


FLAG = {"type": "boolean"}


def closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


@pytest.mark.parametrize(
    ("items", "count"),
    [
        (FLAG, 2),
        ({"anyOf": [FLAG, {"enum": ["a", 1, None]}]}, 5),
        (closed({"a": FLAG, "b": {"enum": [1, 2, 3]}}), 6),
        (closed({"a": FLAG, "b": {"enum": [1, 2, 3]}}) | {"required": ["a"]}, 8),
        ({"type": "array", "items": FLAG, "maxItems": 2}, 7),
        ({"type": "array", "prefixItems": [FLAG, FLAG], "items": False, "minItems": 2}, 4),
        ({"anyOf": [closed({"a": {"const": 1}}), closed({"a": {"const": 2}, "b": FLAG})]}, 2),
        (closed({"a": {"type": "string"}, "b": FLAG}), ENOUGH),
        ({"type": "object", "properties": {"a": FLAG}}, ENOUGH),
        ({"type": "array", "items": FLAG}, ENOUGH),
        ({"type": ["string", "null"], "maxLength": 0}, 2),
        ({"type": "integer", "minimum": -3, "exclusiveMaximum": 2.5}, 6),
        (
            {
                "anyOf": [
                    {"type": "integer", "maximum": 3, "minimum": 0},
                    {"enum": [2, 3, 4, 1.5]},
                    {"type": "integer", "minimum": 9, "maximum": 9},
                ]
            },
            7,
        ),
        ({"anyOf": [{"type": "integer", "minimum": -3}, {"type": "integer", "maximum": 5}]}, ENOUGH),
        ({"anyOf": [{"enum": [15]}, {"type": "integer"}]}, ENOUGH),
        (
            closed(
                {
                    "a": {"type": "string", "pattern": "^[ab]{1,2}$"},
                    "b": {"anyOf": [{"enum": ["aa", "c"]}, {"pattern": "^a*$", "maxLength": 2, "type": "string"}]},
                }
            ),
            24,
        ),
        (closed({"a": {"type": "string", "format": "date"}}), 3652425),
        (closed({"a": {"type": "string", "format": "uri"}}), ENOUGH),
        ({"type": "array", "prefixItems": [FLAG], "items": FLAG}, ENOUGH),
        ({"type": "array", "items": closed({"a": {"type": "string"}}), "uniqueItems": True}, ENOUGH),
    ],
)
def test_the_items_of_an_array_are_counted_at_least(items: dict[str, Any], count: int) -> None:
    plan = plan_of({**SET, "items": items})
    assert plan is not None
    place = next(place for place in plan.places if place.distinct is not None)
    assert place.distinct is not None
    assert place.distinct.form is not None
    assert (plan.forms[place.distinct.form].count if place.distinct.form != FREE else ENOUGH) == count


@pytest.mark.parametrize("least", [None, -12, 0, 3, 40])
@pytest.mark.parametrize("most", [None, -3, 0, 25, 101])
def test_whole_numbers_are_found_by_how_they_begin(least: int | None, most: int | None) -> None:
    numbers = IntegerRange(least, most)
    inside = [number for number in range(-2000, 2001) if (least is None or number >= least) and (most is None or number <= most)]
    for text in {str(number)[:length] for number in range(-130, 131) for length in (1, 2, 3)}:
        expected = [number for number in inside if str(number).startswith(text)]
        assert numbers.is_unbounded_from(text) or sorted(numbers.starting_with(text)) == expected
        assert not numbers.is_unbounded_from(text) or expected


def test_numbers_of_many_digits_are_no_work() -> None:
    digits = "1" * 5000
    assert IntegerRange(-5, None).is_unbounded_from(digits)
    assert not list(IntegerRange(-5, 5).starting_with(digits))


def test_listed_items_may_run_out() -> None:
    plan = plan_of({**SET, "items": {"anyOf": [{"const": "c"}, {"enum": ["b", "a", "b"]}]}, "minItems": 3})
    assert plan is not None
    assert plan.places[0].distinct == Items(strings=CountedStrings(("a", "b", "c")))


@pytest.mark.parametrize(
    ("items", "count"),
    [
        ({"type": "string", "pattern": "^[ab]{1,3}$"}, 14),
        ({"type": "string", "maxLength": 0}, 1),
        ({"type": "string", "maxLength": 1}, 1 + 0x110000 - 0x800),
        ({"type": "string", "maxLength": 2000}, MANY),
        ({"anyOf": [{"enum": ["a", "ccc"]}, {"type": "string", "pattern": "^[ab]$"}]}, 3),
        ({"type": "string", "pattern": "^a+b?$", "minLength": 2, "maxLength": 3}, 4),
    ],
)
def test_strings_are_counted(items: dict[str, Any], count: int) -> None:
    plan = plan_of({**SET, "items": items})
    assert plan is not None
    assert plan.places[0].distinct is not None
    strings = plan.places[0].distinct.strings
    assert strings is not None
    assert strings.language is not None
    assert strings.count == count == Beginnings(strings.language.moves, strings.language.accepting).count(b"")


def test_strings_without_end_need_not_be() -> None:
    plan = plan_of({**SET, "items": {"anyOf": [{"enum": ["a"]}, {"type": "string", "minLength": 1}]}})
    assert plan is not None
    assert plan.places[0].distinct == Items()


def test_places_follow_names_items_references_and_branches() -> None:
    schema: Any = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/a"}, "b": LIST},
        "additionalProperties": {"anyOf": [{"type": "null"}, {"type": "array", "items": SET}]},
        "$defs": {"a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}, "set": SET}, "additionalProperties": False}},
    }
    plan = plan_of(schema)
    assert plan is not None
    root, *places = plan.places
    assert root.names.keys() == {"a", "b"}
    inner, listed = plan.places[root.names["a"]], plan.places[root.others]
    assert root.names["b"] == FREE
    assert inner.names["a"] == root.names["a"]
    assert plan.places[inner.names["set"]].distinct == Items()
    assert listed.distinct is None
    assert plan.places[listed.items].distinct == Items()
    assert len(places) == 4


def test_names_are_not_counted_where_an_object_may_run_out_of_them() -> None:
    bounded: Any = {"type": "object", "patternProperties": {"^[ab]$": {"type": "null"}}, "additionalProperties": False}
    counted: Any = {"type": "object", "additionalProperties": {"type": "null"}, "minProperties": 2}
    (fault,) = guard_faults({"anyOf": [bounded, counted]})
    assert fault.pointer == "/anyOf/1/minProperties"
    assert not list(guard_faults({"type": "array", "prefixItems": [bounded, {"type": "array", "items": counted}], "items": False}))


def test_a_refusal_for_too_many_places_says_what_they_are_for() -> None:
    def last(number: int) -> dict[str, Any]:
        return {"$ref": f"#/$defs/{number}"}

    def fork(left: Any, right: Any) -> dict[str, Any]:
        return {"type": "object", "properties": {"a": left, "b": right}, "additionalProperties": False}

    # As many places as there are sets of the last ten names.
    definitions: Any = {str(number): fork(last(number + 1), last(number + 1)) for number in range(1, 10)}
    choice: Any = {"anyOf": [fork(last(0), last(0)), {"type": "object", "properties": {"a": last(1)}, "additionalProperties": False}]}
    (fault,) = guard_faults({**last(0), "$defs": {"0": choice, **definitions, "10": {"type": "array", "items": SET}}})
    assert fault.pointer == "/$defs/10/items/uniqueItems"


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [SET, LIST]},
        {"anyOf": [SET, {"const": ["a", "a"]}]},
        {"anyOf": [closed({"a": {**SET, "items": {"enum": ["a", "b"]}}}), {"type": "object"}]},
        {"type": "object", "properties": {"a": LIST}, "patternProperties": {"^a": SET}, "additionalProperties": False},
        {"type": "array", "prefixItems": [SET], "items": False},
        {**SET, "items": {"type": "boolean"}, "minItems": 3},
        {**SET, "items": {"type": "string", "maxLength": 0}, "minItems": 2},
        {**SET, "items": {"type": "string", "pattern": "^[ab]{1,2}$"}, "minItems": 7},
        {**SET, "items": {"type": "string", "pattern": "^([ab]{30}|c)$", "maxLength": 101}},
        {**SET, "items": {"type": "number", "minimum": 3}},
        {**SET, "items": {"type": "integer", "multipleOf": 2}},
        {**SET, "items": {"anyOf": [{"type": "number"}, {"enum": [15]}]}},
        {**SET, "items": closed({"a": {"type": "string", "format": "email"}})},
        {**SET, "items": {"type": "array", "items": FLAG, "maxItems": 2, "uniqueItems": True}},
        {**SET, "items": {"type": "array", "items": {"type": "string"}, "maxItems": 2, "uniqueItems": True}},
        {**SET, "items": closed({"a": {"anyOf": [{"type": "string", "pattern": "^z"}, {"type": "string", "maxLength": 2}]}})},
        {**SET, "items": {**SET, "items": {"type": "array", "prefixItems": [FLAG], "items": {"type": "string"}, "maxItems": 1}}},
        {**SET, "items": {"enum": ["a", "b"]}, "minItems": 3},
        {**SET, "items": {"enum": [1e300, "a"]}},
        {**SET, "items": {"anyOf": [{"enum": ["a", 1]}, {"type": "string", "pattern": "^b"}]}},
        {**SET, "items": closed({"a": {"enum": [{}]}})},
        {**SET, "items": {"anyOf": [closed({"a": {"type": "string"}}), {"type": "object"}]}},
        {**SET, "items": {"anyOf": [closed({"a": FLAG, "b": FLAG}), closed({"b": FLAG, "a": FLAG})]}},
        {**SET, "items": {"anyOf": [closed({"a": {"type": "string"}}), closed({"a": {"type": "string", "pattern": "^b"}, "b": FLAG})]}},
        {**SET, "items": closed({"a": {"$ref": "#"}}) | {"required": []}},
        {**SET, "items": {"type": "array", "items": FLAG, "uniqueItems": True}},
        {**SET, "items": {"allOf": [{"type": "string"}, {"pattern": "a"}]}},
    ],
)
def test_where_a_guard_could_not_tell_or_might_leave_nothing_it_is_refused(schema: Any) -> None:
    (fault,) = guard_faults(schema)
    assert fault.message.startswith("`uniqueItems`")
    assert fault.pointer
    with pytest.raises(UnsupportedGrammar):
        plan_of(schema)


def test_items_in_each_other_have_a_depth_that_is_followed() -> None:
    chain: dict[str, Any] = {str(number): closed({"a": {"$ref": f"#/$defs/{number + 1}"}}) for number in range(600)}
    first: Any = {"$ref": "#/$defs/0"}
    for items in (first, {**SET, "items": first}):
        schema: Any = {**SET, "items": items, "$defs": {**chain, "600": FLAG}}
        (fault,) = guard_faults(schema)
        assert fault.message.startswith("`uniqueItems`")


def test_many_arrays_in_each_other_take_no_more_effort_than_there_is() -> None:
    arrays = {str(number): {**SET, "items": {"$ref": "#/$defs/any"}} for number in range(80)}
    schema = {
        **SET,
        "items": {"$ref": "#/$defs/any"},
        "$defs": {"any": {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in arrays]}, **arrays},
    }
    assert len(list(guard_faults(schema))) == 1
