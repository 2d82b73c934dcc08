"""No field of a request is passed over in silence, but those that change no answer anywhere."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.api.protocol import RequestReader
from deployments.constraints.defaults import ConstraintDefaults
from grammar_service.warning import MOST
from model_service.messages import Endpoint

READER = RequestReader("tiny", "hermes", ConstraintDefaults())
CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}]}


def warned(endpoint: Endpoint, **fields: Any) -> list[tuple[str, str | None]]:
    found = READER.read(endpoint, {**CHAT, **fields}).warnings
    assert {warning.code for warning in found} <= {"unknown_field"}
    return [(warning.pointer, warning.did_you_mean) for warning in found]


def test_an_unknown_field_is_named_with_the_one_that_was_meant() -> None:
    assert warned(Endpoint.CHAT, max_token=3, grammars="x") == [("/max_token", "max_tokens"), ("/grammars", None)]
    assert warned(Endpoint.CHAT, **{"a/b~": 1}) == [("/a~1b~0", None)]


def test_fields_that_are_heard_or_change_no_answer_pass_in_silence() -> None:
    assert (
        warned(Endpoint.CHAT, temperature=0, store=True, metadata={}, user="u", service_tier="auto", guided_regex="a", mark_forced=True)
        == []
    )
    assert warned(Endpoint.CHAT, unheard_of=None) == []


@pytest.mark.parametrize(("endpoint", "fields"), [(Endpoint.CHAT, {"prompt": "x"}), (Endpoint.COMPLETION, {"messages": []})])
def test_a_field_of_the_other_endpoint_is_not_heard(endpoint: Endpoint, fields: dict[str, Any]) -> None:
    body = {"prompt": "x"} if endpoint is Endpoint.COMPLETION else CHAT
    found = READER.read(endpoint, {**body, **fields}).warnings
    assert [warning.pointer for warning in found] == [f"/{next(iter(fields))}"]


def test_thousands_of_unknown_fields_are_a_few_warnings() -> None:
    assert len(warned(Endpoint.CHAT, **{f"field{number}" * 1000: 1 for number in range(3000)})) == MOST
