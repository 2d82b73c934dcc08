"""Only the fields of the table reach the engine, each with a value of its type and within its bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.api.protocol import ParsedRequest, RequestReader
from deployments.api.request_fields.kinds import (
    INT64,
    LONGEST_TEXT,
    Bound,
    BoundedTexts,
    Entries,
    FieldRules,
    Flag,
    Integer,
    Kind,
    ListedArguments,
    Messages,
    Number,
    OneOf,
    Prompt,
    Record,
    Table,
    Text,
)
from deployments.api.request_fields.table import BY_NAME, FIELDS, RequestField, Treatment, allowed_fields
from deployments.config import LimitSettings
from deployments.constraints.defaults import ConstraintDefaults
from deployments.errors import ApiError
from grammar_service.warning import MOST
from model_service.messages import Endpoint

LIMITS = LimitSettings(
    max_sequences=4, max_tokens=100, max_logprobs=2, max_prompt_logprobs=2, max_logit_bias=2, max_stop=2, max_messages=2, max_tools=2
)
RULES = FieldRules(LIMITS, template_arguments=frozenset({"thinking"}), extra=frozenset({"mode"}), has_priorities=True)
READER = RequestReader("tiny", "hermes", ConstraintDefaults())
TURN = {"role": "user", "content": "hello"}
CHAT: dict[str, Any] = {"messages": [TURN]}
PLAIN: dict[Endpoint, dict[str, Any]] = {
    Endpoint.CHAT: CHAT,
    Endpoint.COMPLETION: {"prompt": "x"},
    Endpoint.TOKENIZE: {"prompt": "x"},
    Endpoint.DETOKENIZE: {"tokens": [1]},
}


def number(bound: Bound) -> float:
    value = getattr(LIMITS, bound) if isinstance(bound, str) else bound
    assert value is not None
    return float(value)


AT_THEIR_BOUNDS: dict[type, Callable[[Any], list[Any]]] = {
    Flag: lambda _: [True, False],
    Integer: lambda kind: [kind.least, kind.most if kind.most == INT64 else int(number(kind.most))],
    Number: lambda kind: [kind.least, number(kind.most)],
    Text: lambda kind: ["a" * kind.least, "a" * (kind.most or 5000)],
    OneOf: lambda kind: list(kind.values),
    Entries: lambda kind: [[entry(kind)] * int(number(3 if kind.most is None else kind.most)), *([entry(kind)] if kind.alone else [])],
    Table: lambda kind: [{str(each): entry(kind) for each in range(int(number(kind.most)))}],
    Record: lambda kind: [{name: within(of)[-1] for name, of in kind.members.items()}, {}],
    ListedArguments: lambda kind: [{listed(kind): True}, {listed(kind): "a" * LONGEST_TEXT}, {listed(kind): 1.5}],
    Messages: lambda _: [[TURN] * 2],
    Prompt: lambda _: ["a", [1, 2], ["a", "b"], [[1], [2]]],
    BoundedTexts: lambda kind: [["a" * (kind.most_bytes - 1)], ["ä" * (kind.most_bytes // 2 - 2), "a"], []],
}
BEYOND_THEM: dict[type, Callable[[Any], list[Any]]] = {
    Flag: lambda _: [1, 0, "true", []],
    Integer: lambda kind: [kind.least - 1, number(kind.most) * 2 + 2, "1", 1.5, True, [1], float("inf"), float("nan"), 10**4400],
    Number: lambda kind: [kind.least - 0.1, number(kind.most) + 0.1, "1", True, float("inf"), float("nan"), 10**400],
    Text: lambda kind: [1, *(["a" * (kind.most + 1)] if kind.most else []), *([""] if kind.least else [])],
    OneOf: lambda _: ["other", 1, []],
    Entries: lambda kind: [*([[entry(kind)] * (int(number(kind.most)) + 1)] if kind.most else []), *([] if kind.alone else [{}, "a"])],
    Table: lambda kind: [[], {str(each): 1 for each in range(1025)}, *([{"a": 1}, {"9" * 11: 1}, {"²": 1}] if kind.numbered else [])],
    Record: lambda kind: [[], "a", {"other": 1}, {next(iter(kind.members)): "x"}],
    ListedArguments: lambda kind: [[], {"other": 1}, {listed(kind): {}}, {listed(kind): "a" * 1025}, {listed(kind): 10**400}],
    Messages: lambda _: [[TURN] * 3, [], "a", [1], [{"role": "other"}]],
    Prompt: lambda _: [1, [1, "a"], [[]], [-1], [True], {}, ["a", [1]]],
    BoundedTexts: lambda kind: [["a" * kind.most_bytes], ["ä" * (kind.most_bytes // 2)], ["a"] * 3, [1], "a"],
}


def within(kind: Kind) -> list[Any]:
    return AT_THEIR_BOUNDS[type(kind)](kind) if type(kind) in AT_THEIR_BOUNDS else [{}]


def beyond(kind: Kind) -> list[Any]:
    return BEYOND_THEM[type(kind)](kind) if type(kind) in BEYOND_THEM else []


def entry(kind: Entries | Table) -> Any:
    return within(kind.of)[-1]


def listed(kind: ListedArguments) -> str:
    names: frozenset[str] = getattr(RULES, kind.names)
    return next(iter(names))


CHECKED = [row for row in FIELDS if row.treatment in (Treatment.FORWARDED, Treatment.READ)]


def named(row: RequestField) -> str:
    return f"{row.endpoints[0]}-{row.name}"


@pytest.mark.parametrize("row", CHECKED, ids=named)
def test_a_field_may_have_what_its_bounds_allow_and_no_more(row: RequestField) -> None:
    for endpoint in row.endpoints:
        for value in within(row.kind):
            assert row.name in allowed_fields(endpoint, {row.name: value}, RULES)
        for value in beyond(row.kind):
            with pytest.raises(ApiError) as caught:
                allowed_fields(endpoint, {row.name: value}, RULES)
            assert caught.value.status == 400
            assert (caught.value.param or "").startswith(row.name)
            assert len(caught.value.message) < 500
        assert allowed_fields(endpoint, {row.name: None}, RULES) == {}


@pytest.mark.parametrize("row", [row for row in FIELDS if row.treatment is Treatment.REFUSED], ids=named)
def test_what_is_refused_is_refused_where_it_asks_for_something(row: RequestField) -> None:
    for endpoint in row.endpoints:
        for value in ({"a": 1}, True, "x", 1):
            with pytest.raises(ApiError) as caught:
                allowed_fields(endpoint, {row.name: value}, RULES)
            assert (caught.value.status, caught.value.param, caught.value.code) == (400, row.name, "unsupported_parameter")
        assert allowed_fields(endpoint, {row.name: False}, RULES) == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from([10**4000, -(2**63), "a" * 5000]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(endpoint=st.sampled_from(list(Endpoint)), data=st.data())
def test_whatever_stands_in_a_field_is_read_or_refused(endpoint: Endpoint, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(BY_NAME[endpoint])) | st.text(max_size=8), max_size=4))
    body = {**PLAIN[endpoint], **{name: data.draw(JSON) for name in names}}
    request, error = read_or_refused(endpoint, body)
    if error is not None:
        assert error.status in (400, 404)
        assert len(error.message) < 2000
    if request is not None:
        assert set(request.body) <= {name for name, row in BY_NAME[endpoint].items() if row.treatment is Treatment.FORWARDED}


def read_or_refused(endpoint: Endpoint, body: dict[str, Any]) -> tuple[ParsedRequest | None, ApiError | None]:
    try:
        return READER.read(endpoint, body), None
    except ApiError as error:
        return None, error


def warned(endpoint: Endpoint, **fields: Any) -> list[tuple[str, str | None]]:
    found = READER.read(endpoint, {**PLAIN[endpoint], **fields}).warnings
    return [(warning.pointer, warning.did_you_mean) for warning in found]


def test_an_unknown_field_is_named_with_the_one_that_was_meant_and_not_forwarded() -> None:
    assert warned(Endpoint.CHAT, max_token=3, grammars="x") == [("/max_token", "max_tokens"), ("/grammars", "grammar")]
    assert warned(Endpoint.CHAT, **{"a/b~": 1}) == [("/a~1b~0", None)]
    assert "max_token" not in READER.read(Endpoint.CHAT, {**CHAT, "max_token": 3}).body


def test_fields_that_are_read_or_change_no_answer_pass_in_silence() -> None:
    silent = {
        "temperature": 0,
        "store": True,
        "metadata": {},
        "user": "u",
        "service_tier": "auto",
        "guided_regex": "a",
        "mark_forced": True,
    }
    assert warned(Endpoint.CHAT, **silent) == []
    assert warned(Endpoint.CHAT, unheard_of=None) == []


def test_a_field_of_the_other_endpoint_is_not_forwarded() -> None:
    assert [pointer for pointer, _ in warned(Endpoint.CHAT, prompt="x")] == ["/prompt"]
    assert [pointer for pointer, _ in warned(Endpoint.COMPLETION, messages=[], max_completion_tokens=1)] == [
        "/messages",
        "/max_completion_tokens",
    ]


def test_thousands_of_unknown_fields_are_a_few_short_warnings() -> None:
    found = warned(Endpoint.CHAT, **{f"field{number}" * 1000: 1 for number in range(3000)})
    assert len(found) == MOST
    assert max(len(pointer) for pointer, _ in found) < 100


@pytest.mark.parametrize("field", ["stream_options", "repetition_detection", "chat_template_kwargs", "vllm_xargs"])
def test_an_empty_name_is_a_name(field: str) -> None:
    with pytest.raises(ApiError) as caught:
        READER.read(Endpoint.CHAT, {**CHAT, field: {"": 1}})
    assert (caught.value.status, caught.value.code) == (400, "unsupported_parameter")
