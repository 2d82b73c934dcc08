"""Canonical answers of real engines: their tokens are those that the tokenizer makes of their text, or the usage says that they are not."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.spec import COMPACT, FLEXIBLE, STANDARD, GrammarKind, GrammarSpec
from grammar_service.vocabulary.tokenizer import GrammarTokenizer
from tests.integration.model_service.running_broadcaster import RunningBroadcaster
from tests.integration.model_service.running_engine import Answer, RunningEngine
from tests.unit.grammar_service.backends.canonical.matchers import matcher_of

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "kind": {"enum": ["a cat", "a dog", "another"]},
    },
    "required": ["name", "age", "kind"],
    "additionalProperties": False,
}
FLAGS = {"type": "object", "additionalProperties": {"type": "boolean"}, "maxProperties": 4}
"""A guard keeps its names apart."""
SPECS = [
    *(
        GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(schema), whitespace, canonical=True)
        for schema in (PERSON, FLAGS)
        for whitespace in (STANDARD, COMPACT, FLEXIBLE)
    ),
    GrammarSpec(GrammarKind.REGEX, "[A-Za-z ]{4,30}\\.( [0-9]{1,4})?", canonical=True),
    GrammarSpec(GrammarKind.CHOICE, json.dumps(["the end", "then ends", "their end, and more"]), canonical=True),
]
QUESTION = "Extract name, age as JSON. Text: Clara Novak is 34 years old, a cat."
ASKS: list[tuple[str, GrammarSpec | None, dict[str, Any]]] = [
    (QUESTION, spec, {"max_tokens": 160, "temperature": temperature, "seed": seed})
    for spec in SPECS
    for temperature, seed in ((0, 1), (1, 1), (1, 2), (1.5, 3))
]


@pytest.fixture(scope="module")
def tokenizer() -> GrammarTokenizer:
    return GrammarTokenizer.load(EMBEDDED_WEIGHTS)


def fallbacks(answer: Answer) -> int:
    return int(answer.usage["completion_tokens_details"]["not_canonical"])


def tokens_of(answer: Answer, tokenizer: GrammarTokenizer) -> list[int]:
    return [token for token in answer.tokens if token not in tokenizer.stop_token_ids]


def is_canonical(answer: Answer, tokenizer: GrammarTokenizer) -> bool:
    """Of one that was cut off, the beginning may be of a text that goes on."""
    tokens = tokens_of(answer, tokenizer)
    if answer.finish_reason == "stop":
        return tokenizer.encode(answer.text) == tokens
    state = tokenizer.canonical.start
    for token in tokens:
        after = tokenizer.canonical.after(state, token)
        if after is None:
            return False
        state = after
    return True


def check(answers: list[Answer], tokenizer: GrammarTokenizer) -> None:
    assert sum(answer.finish_reason == "stop" for answer in answers) > len(answers) / 2
    assert [is_canonical(answer, tokenizer) for answer in answers] == [not fallbacks(answer) for answer in answers]


def test_plain_answers_are_not(stepping: RunningEngine, tokenizer: GrammarTokenizer) -> None:
    """Or there would be nothing to see here. Nor is anything told of them."""
    plain = [(text, GrammarSpec(spec.kind, spec.text, spec.whitespace), fields) for text, spec, fields in ASKS if spec is not None]
    answers = stepping.ask_all(plain)
    assert not all(is_canonical(answer, tokenizer) for answer in answers)
    assert all("not_canonical" not in answer.usage["completion_tokens_details"] for answer in answers)


@pytest.mark.parametrize("engine", ["stepping", "jumping"])
def test_all_answers_are_canonical(engine: str, request: pytest.FixtureRequest, tokenizer: GrammarTokenizer) -> None:
    running: RunningEngine = request.getfixturevalue(engine)
    before = running.engine.core
    answers = running.ask_all(ASKS)
    check(answers, tokenizer)
    assert not any(map(fallbacks, answers))
    after = running.engine.core
    assert after.canonical_answers - before.canonical_answers == len(answers)
    assert after.canonical_fallbacks == before.canonical_fallbacks
    assert sum(answer.forced for answer in answers) > 0 or engine == "stepping"


@pytest.mark.parametrize("engine", ["stepping", "jumping"])
@pytest.mark.parametrize("temperature", [0, 1])
def test_what_leads_nowhere_is_drawn_anew(
    engine: str, temperature: float, request: pytest.FixtureRequest, tokenizer: GrammarTokenizer
) -> None:
    """Behind a blank only `the` may come, and the tokenizer has a token of both: but for that, the model would say a blank each time."""
    running: RunningEngine = request.getfixturevalue(engine)
    before = running.engine.core.redraws
    spec = GrammarSpec(GrammarKind.REGEX, "a( the|[b-z]{1,6})\\.", canonical=True)
    bias = {str(tokenizer.encode(text)[0]): 100 for text in ("a", " ")}
    body = running.body(QUESTION, spec, temperature=temperature, seed=2, n=3 if temperature else 1, logit_bias=bias)
    for choice in body["choices"]:
        assert choice["finish_reason"] == "stop"
        tokens = [token for token in choice["token_ids"] if token not in tokenizer.stop_token_ids]
        assert tokens == tokenizer.encode(choice["message"]["content"])
    assert body["usage"]["completion_tokens_details"]["not_canonical"] == 0
    assert body["usage"]["completion_tokens"] == sum(len(choice["token_ids"]) for choice in body["choices"])
    assert running.engine.core.redraws >= before + len(body["choices"])


def test_an_answer_is_drawn_anew_only_so_often(tokenizer: GrammarTokenizer) -> None:
    """Each time takes a forward that nobody is charged for."""
    from vllm.sampling_params import SamplingParams
    from vllm.v1.request import RequestStatus

    from model_service.engine.core.backend import KeyedGrammar
    from model_service.engine.core.canonical_answers import MOST_REDRAWS, CanonicalAnswers

    first, blank = (tokenizer.encode(text)[0] for text in ("a", " "))
    for dropped, left in ((0, []), (MOST_REDRAWS, []), (MOST_REDRAWS + 1, [blank])):
        matcher = matcher_of(GrammarSpec(GrammarKind.REGEX, "a( the|[b-z]{1,6})\\."), tokenizer, "xgrammar")
        assert matcher.accept(first)
        matcher.dropped = dropped
        request: Any = SimpleNamespace(
            request_id="r",
            sampling_params=SamplingParams(),
            status=RequestStatus.RUNNING,
            num_stale_output_tokens=0,
            num_computed_tokens=9,
            num_output_tokens=1,
            structured_output_request=SimpleNamespace(grammar=KeyedGrammar(matcher)),
        )
        answers = CanonicalAnswers(cast(Any, SimpleNamespace(reasoner_cls=None)), {"r": request}, tokenizer, redraws=True)
        computed: Any = SimpleNamespace(sampled_token_ids=[[blank]], req_id_to_index={"r": 0})
        answers.computed(cast(Any, SimpleNamespace(num_scheduled_tokens={"r": 1})), computed, None)
        assert computed.sampled_token_ids == [left]


def test_a_stop_token_in_the_midst_of_what_is_forced_ends_the_answer(jumping: RunningEngine, tokenizer: GrammarTokenizer) -> None:
    """The grammar takes it as text there; the tokenizer's own sequences do not go on behind it. The engine lives on."""
    forced = " hello world is here"
    spec = GrammarSpec(GrammarKind.LARK, f'start: /[a-z ]{{1,9}}/ "," "{forced}" /[0-9]+/', canonical=True)
    bias = {str(tokenizer.encode(",")[0]): 100}
    for stop in tokenizer.encode(f"a,{forced}")[2:]:
        answer = jumping.ask("Spell.", spec, stop_token_ids=[stop], logit_bias=bias)
        assert answer.finish_reason == "stop"
        assert answer.tokens[-1] == stop


def test_with_drafts_and_a_broadcaster_they_are_or_it_is_told(
    drafting: tuple[RunningEngine, RunningBroadcaster], tokenizer: GrammarTokenizer
) -> None:
    """Drafts are verified with masks of their places, and nothing that was drawn is taken back."""
    engine, broadcaster = drafting
    before = broadcaster.totals()["rows"]
    # The broadcaster makes tables of the tokenizer first, in seconds.
    while broadcaster.totals()["rows"] == before:
        check(engine.ask_all(ASKS[::4]), tokenizer)
    assert broadcaster.totals()["refused"] == 0
