"""The field `lookahead` is read, or refused with the field at fault."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.api.http.ingress import engine_error
from deployments.api.protocol import RequestReader
from deployments.config import parse_settings
from deployments.constraints.defaults import ConstraintDefaults
from deployments.errors import ApiError, SettingsError
from model_service.lookahead import Method, Parameters
from model_service.messages import Endpoint

READER = RequestReader("tiny", "hermes", ConstraintDefaults())
ASKED: dict[str, Any] = {"method": "cdlh", "d": 4, "reward": {"type": "concepts", "words": ["dog"]}}


def body(**fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "hello"}], "lookahead": ASKED, **fields}


@pytest.mark.parametrize("harmless", [{}, {"temperature": 0}, {"n": 1}, {"repetition_penalty": 1.0}, {"logprobs": False}])
def test_it_is_taken_out_of_the_body(harmless: dict[str, Any]) -> None:
    request = READER.read(Endpoint.CHAT, body(**harmless, seed=7))
    assert request.lookahead is not None
    assert (request.lookahead.method, request.lookahead.parameters, request.lookahead.seed) == (Method.CDLH, Parameters(d=4), 7)
    assert "lookahead" not in request.body
    assert request.warnings == ()
    assert READER.read(Endpoint.CHAT, body(lookahead=None)).lookahead is None


def test_a_constraint_may_be_beside_it() -> None:
    request = READER.read(Endpoint.CHAT, body(guided_regex="[a-z]+"))
    assert request.lookahead is not None
    assert request.requested is not None


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ("cdlh", "lookahead"),
        ({**ASKED, "d": 17}, "lookahead.d"),
        ({**ASKED, "method": "beam"}, "lookahead.method"),
        ({**ASKED, "reward": {"type": "concepts"}}, "lookahead.reward"),
        ({**ASKED, "depth": 3}, "lookahead"),
        ({"method": "cdlh"}, "lookahead"),
    ],
)
def test_a_fault_is_told_with_its_place(asked: Any, param: str) -> None:
    with pytest.raises(ApiError) as caught:
        READER.read(Endpoint.CHAT, body(lookahead=asked))
    assert (caught.value.status, caught.value.param) == (400, param)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", 0.7),
        ("n", 2),
        ("presence_penalty", 0.5),
        ("repetition_penalty", 1.2),
        ("logit_bias", {"5": 1}),
        ("min_p", 0.1),
        ("bad_words", ["no"]),
        ("logprobs", True),
        ("ignore_eos", True),
        ("min_tokens", 3),
    ],
)
def test_what_cannot_go_with_it_is_refused(field: str, value: Any) -> None:
    with pytest.raises(ApiError) as caught:
        READER.read(Endpoint.CHAT, body(**{field: value}))
    assert (caught.value.status, caught.value.param) == (400, field)


@pytest.mark.parametrize(("status", "code"), [(502, "reward_failed"), (504, "reward_timeout")])
def test_a_reward_that_fails_has_a_code_of_its_own(status: int, code: str) -> None:
    assert engine_error(status, {"error": {"message": "late", "code": status}}).code == code


def test_a_draft_is_for_look_aheads() -> None:
    with pytest.raises(SettingsError, match="lookahead: true"):
        parse_settings({"model": {"draft": {"path": "small"}}})
    settings = parse_settings({"model": {"lookahead": True, "draft": {"path": "small", "engine_args": {"seed": 1}}}})
    assert settings.model.draft is not None
    assert settings.model.draft.path == "small"
