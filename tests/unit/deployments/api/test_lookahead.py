"""The field `lookahead` is read, or refused with the field at fault."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from deployments.api.protocol import RequestReader
from deployments.app import build
from deployments.config import parse_settings
from deployments.constraints.defaults import ConstraintDefaults
from deployments.constraints.forms import Requested
from deployments.errors import ApiError, SettingsError
from model_service.lookahead import Method, Parameters
from model_service.lookahead.rewards.specs import GrammarSpec, SumSpec, Term
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


def test_thresholds_of_the_settings_hold_where_a_request_says_nothing_of_them() -> None:
    reader = replace(READER, thresholds={"a_t": 0.9, "r_t": 0.5, "b": 3})
    asked = {"method": "cdsl", "reward": ASKED["reward"]}
    read = [reader.read(Endpoint.CHAT, body(lookahead={**asked, **fields})).lookahead for fields in ({}, {"d": 2, "r_t": 0.7})]
    assert [one.parameters for one in read if one] == [Parameters(a_t=0.9, r_t=0.5, b=3), Parameters(d=2, a_t=0.9, r_t=0.7, b=2)]


def test_a_constraint_may_be_beside_it() -> None:
    request = READER.read(Endpoint.CHAT, body(guided_regex="[a-z]+"))
    assert request.lookahead is not None
    assert request.requested is not None


def wishing(**constraint: Any) -> dict[str, Any]:
    return {"type": "grammar", **constraint}


def test_grammars_of_a_reward_become_numbers_and_come_beside_it() -> None:
    reward = {"type": "sum", "terms": [{"reward": wishing(regex="a+")}, {"reward": wishing(grammar_id="mine"), "weight": 2}]}
    request = READER.read(Endpoint.CHAT, body(lookahead={**ASKED, "reward": reward}))
    assert request.lookahead is not None
    terms = (Term(GrammarSpec(0)), Term(GrammarSpec(1), 2))
    assert request.lookahead.reward == SumSpec(terms)
    fields = ["lookahead.reward.terms[0].reward.regex", "lookahead.reward.terms[1].reward.grammar_id"]
    assert [one.field for one in request.wished] == fields
    assert request.requested is None


@pytest.mark.parametrize("constraint", [{"json": {}}, {"json_object": True}, {"choice": ["a"]}, {"grammar": "start: /a/"}])
def test_a_reward_takes_what_structured_outputs_take(constraint: dict[str, Any]) -> None:
    (wished,) = READER.read(Endpoint.CHAT, body(lookahead={**ASKED, "reward": wishing(**constraint, whitespace="compact")})).wished
    hard = READER.read(Endpoint.CHAT, body(structured_outputs={**constraint, "whitespace": "compact"})).requested
    assert isinstance(wished, Requested)
    assert isinstance(hard, Requested)
    assert wished.spec == hard.spec


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({**ASKED, "reward": wishing()}, "lookahead.reward"),
        ({**ASKED, "reward": wishing(number=0)}, "lookahead.reward.number"),
        ({**ASKED, "reward": wishing(regex=3)}, "lookahead.reward.regex"),
        ({**ASKED, "reward": wishing(regex="a", choice=["a"])}, "lookahead.reward.choice"),
        ({**ASKED, "reward": {"type": "sum", "terms": [{"reward": wishing(regex="a")}] * 5}}, "lookahead.reward.terms[4].reward"),
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
        ("field_confidence", True),
        ("close_at_limit", True),
        ("prompt_logprobs", 0),
        ("ignore_eos", True),
        ("min_tokens", 3),
    ],
)
def test_what_cannot_go_with_it_is_refused(field: str, value: Any) -> None:
    with pytest.raises(ApiError) as caught:
        READER.read(Endpoint.CHAT, body(**{field: value}))
    assert (caught.value.status, caught.value.param) == (400, field)


def test_a_completions_log_probability_of_its_tokens_alone_is_one_as_well() -> None:
    asked = {name: value for name, value in body(logprobs=0).items() if name != "messages"}
    with pytest.raises(ApiError) as caught:
        READER.read(Endpoint.COMPLETION, {**asked, "prompt": "x"})
    assert caught.value.param == "logprobs"


@pytest.mark.parametrize(
    ("reward", "fault"),
    [
        ({}, "a `classifier` or an `import_path`"),
        ({"classifier": "a", "import_path": "a:B"}, "a `classifier` or an `import_path`"),
        ({"classifier": "a", "args": {"x": 1}}, "`args` are for"),
        ({"import_path": "a:B", "label": "good"}, "`label` is for"),
        ({"import_path": "a.B"}, "import_path"),
    ],
)
def test_a_reward_in_the_settings_is_one_of_two_kinds(reward: dict[str, Any], fault: str) -> None:
    with pytest.raises(SettingsError, match=fault):
        parse_settings({"model": {"lookahead": True, "rewards": {"own": reward}}})


def test_rewards_in_the_settings_are_for_look_aheads_and_deployed_with_the_model() -> None:
    model = {"rewards": {"own": {"import_path": "a:B"}}}
    with pytest.raises(SettingsError, match="lookahead: true"):
        parse_settings({"model": model})
    built = build(parse_settings({"model": {**model, "lookahead": True}}))
    rewards = built._bound_deployment.init_args[-1]
    assert [reward._bound_deployment.name for reward in rewards.values()] == ["Reward-own"]


def test_a_draft_is_for_look_aheads() -> None:
    with pytest.raises(SettingsError, match="lookahead: true"):
        parse_settings({"model": {"draft": {"path": "small"}}})
    settings = parse_settings({"model": {"lookahead": True, "draft": {"path": "small", "engine_args": {"seed": 1}}}})
    assert settings.model.draft is not None
    assert settings.model.draft.path == "small"


def test_it_takes_the_seats_of_all_that_it_tries() -> None:
    several = {**ASKED, "k": 16}
    assert READER.read(Endpoint.COMPLETION, {"prompt": ["a", "b"], "lookahead": several}).seats == 32
    with pytest.raises(ApiError) as caught:
        READER.read(Endpoint.COMPLETION, {"prompt": ["a"] * 9, "lookahead": several})
    assert (caught.value.code, caught.value.param) == ("over_limit", "lookahead.k")
