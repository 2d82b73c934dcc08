"""Answers that look ahead with their own model are those of the paper's algorithm as a plain loop over torch."""

from __future__ import annotations

import json
from typing import Any

import pytest
from vllm.v1.metrics.stats import IterationStats

from grammar_service.spec import GrammarKind, GrammarSpec
from tests.integration.model_service.lookahead.asking import END
from tests.integration.model_service.lookahead.expected import (
    LIMIT,
    MOSTLY_FORCED,
    QUESTIONS,
    SPECS,
    allows,
    reference,
    reward_of,
    same,
    tokenizer,
)
from tests.integration.model_service.lookahead.named_rewards import SHORT_REWARD
from tests.integration.model_service.lookahead.torch_model import TorchModel
from tests.integration.model_service.running_engine import CONTEXT, RunningEngine
from tests.unit.model_service.lookahead.reference import Reference
from tests.waiting import until

CANDIDATES = 3
WORDS = {"type": "concepts", "words": ["city", "number", "age"]}
CDLH = {"method": "cdlh", "reward": WORDS}
SHORT = {"method": "cdlh", "d": 5, "k": 4, "reward": {"type": "length", "least": 3, "most": 4}}


@pytest.mark.parametrize("asked", [CDLH, SHORT, {**SHORT, "reuse": False}], ids=["concepts", "length", "nothing reused"])
def test_answers_are_those_of_the_plain_loop(forgetful: RunningEngine, torch_model: TorchModel, asked: dict[str, Any]) -> None:
    answers = forgetful.ask_all([(question, None, {"max_tokens": LIMIT, "lookahead": asked}) for question in QUESTIONS])
    equal = 0
    for answer in answers:
        expected = reference([torch_model], asked, answer.prompt)
        if same(answer, expected, Reference.cdlh):
            equal += 1
            told = answer.usage["completion_tokens_details"]["lookahead"]
            assert told["target_calls"] <= expected.target_calls
            if not asked.get("reuse", True):
                assert told["target_calls"] == expected.target_calls
            assert told["draft_calls"] == 0
        assert answer.finish_reason == ("stop" if answer.tokens[-1] == END else "length")
        assert answer.usage["completion_tokens"] == len(answer.tokens)
    assert equal >= len(QUESTIONS) - 1


def test_an_answer_is_the_same_alone_and_in_chunks_from_the_cache(forgetful: RunningEngine, chunked: RunningEngine) -> None:
    fields: dict[str, Any] = {"max_tokens": LIMIT, "lookahead": SHORT}
    together = forgetful.ask_all([(question, None, fields) for question in QUESTIONS])
    for question, answer in zip(QUESTIONS[:3], together, strict=False):
        assert chunked.ask(question, **fields).tokens == answer.tokens


def test_what_the_cache_has_of_the_prompt_is_told(chunked: RunningEngine) -> None:
    fields: dict[str, Any] = {"max_tokens": 4, "lookahead": SHORT}
    first, second = (chunked.ask(" ".join(QUESTIONS[:4]), **fields) for _ in range(2))
    assert first.tokens == second.tokens
    cached = [answer.usage["prompt_tokens_details"]["cached_tokens"] for answer in (first, second)]
    assert cached[0] < cached[1] == (len(second.prompt) - 1) // 32 * 32


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_with_a_grammar_it_looks_ahead_inside_of_it(chunked: RunningEngine, torch_model: TorchModel, spec: GrammarSpec) -> None:
    asked = {"method": "cdlh", "d": 4, "reward": {"type": "concepts", "words": ["age", "end"]}}
    answers = chunked.ask_all([(question, spec, {"max_tokens": LIMIT, "lookahead": asked}) for question in QUESTIONS[:4]])
    assert sum(same(answer, reference([torch_model], asked, answer.prompt, spec), Reference.cdlh) for answer in answers) >= 3
    assert all(allows(spec, answer.tokens) for answer in answers)


def test_what_is_forced_costs_no_forward_and_is_not_counted(forgetful: RunningEngine, torch_model: TorchModel) -> None:
    """With one candidate nothing is computed at the same time."""
    asked = {**SHORT, "k": 1, "d": 8}
    forgetful.ask(QUESTIONS[0], MOSTLY_FORCED, lookahead=asked)
    before = forgetful.engine.core.steps
    answer = forgetful.ask(QUESTIONS[0], MOSTLY_FORCED, max_tokens=LIMIT, lookahead=asked)
    told = answer.usage["completion_tokens_details"]["lookahead"]
    assert forgetful.engine.core.steps - before == told["target_steps"] == told["target_calls"]
    assert told["target_calls"] < len(answer.tokens)
    assert same(answer, reference([torch_model], asked, answer.prompt, MOSTLY_FORCED), Reference.cdlh)


@pytest.mark.parametrize(("pattern", "leaves"), [("A city:( the|[b-z]{1,6})[.]", True), ("A city:( the|[b-z]{1,6}| [A-Z]{2,4})[.]", False)])
def test_whether_an_answer_keeps_to_its_tokenizers_tokens_is_told(forgetful: RunningEngine, pattern: str, leaves: bool) -> None:
    """The tokenizer has a token of a blank and `the`: a blank alone, which earns as much, leads on only where more may come."""
    spec, wished = GrammarSpec(GrammarKind.REGEX, pattern, canonical=True), GrammarSpec(GrammarKind.REGEX, "A city: [a-zA-Z]+[.]")
    asked = {"method": "cdlh", "d": 1, "k": 16, "reward": {"type": "grammar", "number": 0}}
    fields: dict[str, Any] = {"max_tokens": 40, "lookahead": asked, "wished": [wished]}
    answers = forgetful.ask_all([(question, spec, fields) for question in QUESTIONS])
    assert all(answer.finish_reason == "stop" for answer in answers)
    own = [tokenizer().encode(answer.text, add_special_tokens=False) == [*answer.tokens[:-1]] for answer in answers]
    assert [answer.usage["completion_tokens_details"]["not_canonical"] for answer in answers] == [int(not one) for one in own]
    assert all(own) != leaves


def test_its_reward_is_what_the_usage_says(forgetful: RunningEngine) -> None:
    answer = forgetful.ask(QUESTIONS[0], max_tokens=LIMIT, lookahead=SHORT)
    told = answer.usage["completion_tokens_details"]["lookahead"]
    assert told["reward"] == reward_of(SHORT).score([answer.text])[0]
    assert told["reward_calls"] >= len(answer.tokens)


def test_a_stream_says_the_same_and_tells_its_usage(forgetful: RunningEngine) -> None:
    fields: dict[str, Any] = {"max_tokens": LIMIT, "lookahead": SHORT}
    answer = forgetful.ask(QUESTIONS[1], **fields)
    events = forgetful.events(QUESTIONS[1], stream_options={"include_usage": True}, **fields)
    said = "".join(part["delta"].get("content") or "" for event in events for part in event["choices"])
    assert said == answer.text
    assert events[-1]["usage"]["completion_tokens_details"] == answer.usage["completion_tokens_details"]
    assert events[-1]["usage"]["completion_tokens"] == len(answer.tokens)
    assert sum(bool(part["delta"].get("content")) for event in events for part in event["choices"]) > 1


def test_a_trace_tells_every_step_whole_and_streamed(forgetful: RunningEngine) -> None:
    fields: dict[str, Any] = {"max_tokens": LIMIT, "lookahead": {**SHORT, "trace": True}}
    answer = forgetful.ask(QUESTIONS[1], **fields)
    steps = answer.choice["lookahead_steps"]
    assert "".join(step["text"] for step in steps) == answer.text
    assert sum(step["tokens"] for step in steps) == len(answer.tokens)
    told = answer.usage["completion_tokens_details"]["lookahead"]
    assert sum(len(step["tried"]) for step in steps) == told["reward_calls"]
    assert told["steps_left_out"] == 0
    for step in steps:
        best = max(tried["reward"] for tried in step["tried"])
        assert next(tried for tried in step["tried"] if tried["reward"] == best)["text"].startswith(step["text"])
        assert step["reward"] == best
    events = forgetful.events(QUESTIONS[1], **fields)
    assert [step for event in events for part in event["choices"] for step in part.get("lookahead_steps", ())] == steps
    assert "lookahead_steps" not in forgetful.ask(QUESTIONS[1], max_tokens=LIMIT, lookahead=SHORT).choice


def test_a_stop_string_ends_the_text_and_all_that_was_asked_for_it(forgetful: RunningEngine) -> None:
    whole = forgetful.ask(QUESTIONS[0], max_tokens=LIMIT, lookahead=CDLH)
    stop = whole.text[4:7]
    cut = forgetful.ask(QUESTIONS[0], max_tokens=LIMIT, lookahead=CDLH, stop=[stop])
    assert cut.text == whole.text[: whole.text.index(stop)]
    assert (cut.finish_reason, cut.choice["stop_reason"]) == ("stop", stop)
    assert nothing_left(forgetful)


def test_a_client_that_leaves_leaves_nothing(forgetful: RunningEngine) -> None:
    forgetful.abandon(QUESTIONS[0], None, 3, SHORT)
    until(lambda: nothing_left(forgetful))
    before = forgetful.engine.core.steps
    assert forgetful.ask("Answer.", max_tokens=1).finish_reason == "length"
    assert forgetful.engine.core.steps - before < 20


def test_a_reward_that_is_no_number_is_a_502(forgetful: RunningEngine) -> None:
    huge = {"weight": 1e308, "reward": {"type": "length"}}
    body = forgetful.body(QUESTIONS[0], lookahead={"method": "cdlh", "reward": {"type": "sum", "terms": [huge, huge]}})
    assert body["error"]["code"] == 502
    assert "inf" in body["error"]["message"]
    assert nothing_left(forgetful)


def test_a_reward_that_is_late_is_a_504_and_an_event_once_something_was_said(
    forgetful: RunningEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    lookaheads = forgetful.engine._engine.lookaheads  # type: ignore[union-attr]  # it has started
    monkeypatch.setattr(lookaheads, "_deadline_s", 1e-9)
    assert forgetful.body(QUESTIONS[0], lookahead=CDLH)["error"]["code"] == 504
    events = forgetful.events(QUESTIONS[0], lookahead=CDLH)
    assert events[-1]["error"]["code"] == 504
    assert nothing_left(forgetful)


def test_a_reward_by_its_name_is_asked_for_all_of_a_step_at_once(forgetful: RunningEngine) -> None:
    asked = {"method": "cdlh", "reward": {"type": "named", "name": "short"}}
    own = forgetful.ask_all([(question, None, {"max_tokens": LIMIT, "lookahead": asked}) for question in QUESTIONS])
    data = {"method": "cdlh", "reward": {"type": "length", "most": 1, "unit": "characters"}}
    same = forgetful.ask_all([(question, None, {"max_tokens": LIMIT, "lookahead": data}) for question in QUESTIONS])
    assert sum(one.tokens == other.tokens for one, other in zip(own, same, strict=True)) >= len(QUESTIONS) - 1  # near-ties
    questions = sum(len(answer.tokens) for answer in own)
    assert len(SHORT_REWARD.batches) < questions
    assert max(SHORT_REWARD.batches) > CANDIDATES


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [("nan", 502, "the reward gave"), ("fails", 502, "'fails' failed: ZeroDivisionError"), ("hangs", 504, "'hangs' took more than")],
)
def test_a_reward_that_fails_ends_the_answer_or_the_stream_with_its_error(
    forgetful: RunningEngine, name: str, code: int, message: str
) -> None:
    asked = {"method": "cdlh", "reward": {"type": "named", "name": name}}
    error = forgetful.body(QUESTIONS[0], lookahead=asked)["error"]
    assert error["code"] == code
    assert message in error["message"]
    events = forgetful.events(QUESTIONS[0], lookahead=asked)
    assert sum(bool(part["delta"].get("content")) for event in events[:-1] for part in event["choices"]) > 1
    assert events[-1]["error"]["code"] == code
    assert nothing_left(forgetful)
    counted = forgetful.engine.lookaheads
    assert counted["reward_timeouts" if code == 504 else "reward_failures"] >= 2


def test_a_grammar_may_be_wished_for_beside_one_that_holds(forgetful: RunningEngine) -> None:
    holds, wished = GrammarSpec(GrammarKind.REGEX, "[a-c]{6}"), GrammarSpec(GrammarKind.REGEX, "(abc|cab)+")
    asked = {"method": "cdlh", "d": 3, "k": 8, "reward": {"type": "grammar", "number": 0}}
    answer = forgetful.ask(QUESTIONS[0], holds, lookahead=asked, wished=[wished])
    assert answer.text in {one + other for one in ("abc", "cab") for other in ("abc", "cab")}
    assert answer.usage["completion_tokens_details"]["lookahead"]["reward"] == 1
    # It is wished for, not enforced: what comes nearest is said where all of it cannot be.
    numbers = forgetful.ask(QUESTIONS[0], holds, lookahead=asked, wished=[GrammarSpec(GrammarKind.REGEX, "ab[0-9]+")])
    assert numbers.text.startswith("ab")
    assert len(numbers.text) == 6


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"n": 2, "lookahead": CDLH, "temperature": 0.5}, "n"),
        ({"lookahead": {"method": "cdsl", "reward": WORDS}}, "lookahead.method"),
        ({"lookahead": {"method": "cdlh", "reward": {"type": "named", "name": "polite"}}}, "lookahead.reward.name"),
    ],
)
def test_what_this_engine_cannot_do_is_refused_with_its_field(forgetful: RunningEngine, fields: dict[str, Any], field: str) -> None:
    error = forgetful.body(QUESTIONS[0], **fields)["error"]
    assert (error["code"], error["param"]) == (400, field)


def test_an_answer_is_one_request_to_whoever_counts(forgetful: RunningEngine) -> None:
    counting = Counting()
    engine: Any = forgetful.engine._engine
    loggers = engine.logger_manager.stat_loggers
    loggers.append(counting)
    try:
        answer = forgetful.ask(QUESTIONS[2], max_tokens=LIMIT, lookahead=SHORT)
    finally:
        loggers.remove(counting)
    assert answer.usage["completion_tokens_details"]["lookahead"]["target_calls"] > len(answer.tokens)
    assert (counting.requests, counting.prompt_tokens, counting.tokens) == (1, len(answer.prompt), len(answer.tokens))


def test_an_answer_ends_one_token_ahead_of_the_contexts_end(chunked: RunningEngine) -> None:
    spec = GrammarSpec(GrammarKind.REGEX, "[a-z]{200}")
    question = " ".join(["age"] * 1000)
    missing = CONTEXT - 1 - 11 - len(chunked.ask(question, spec, max_tokens=1).prompt)
    answer = chunked.ask(f"{question}{' age' * missing}", spec, max_tokens=None, lookahead=SHORT)
    assert answer.finish_reason == "length"
    assert len(answer.prompt) + len(answer.tokens) == CONTEXT - 1
    assert answer.text.isalpha()


def test_an_engine_that_does_not_look_ahead_says_so(jumping: RunningEngine) -> None:
    error = jumping.body(QUESTIONS[0], lookahead=CDLH)["error"]
    assert (error["code"], error["param"]) == (400, "lookahead")


def test_a_request_without_look_ahead_is_what_it_is_elsewhere(forgetful: RunningEngine, jumping: RunningEngine) -> None:
    assert forgetful.ask(QUESTIONS[0]).tokens == jumping.ask(QUESTIONS[0]).tokens
    assert "lookahead" not in json.dumps(forgetful.body(QUESTIONS[0]))


class Counting:
    """What vLLM tells an engine's loggers. Its counters for Prometheus are those of the engine that has started last."""

    def __init__(self) -> None:
        self.requests = self.prompt_tokens = self.tokens = 0

    def record(self, scheduler_stats: Any, iteration_stats: IterationStats | None, **_: Any) -> None:
        if iteration_stats is not None:
            self.requests += len(iteration_stats.finished_requests)
            self.prompt_tokens += iteration_stats.num_prompt_tokens
            self.tokens += iteration_stats.num_generation_tokens


def nothing_left(engine: RunningEngine) -> bool:
    running: Any = engine.engine._engine
    return len(running.children) == 0 == engine.engine.running and not running.lookaheads._running
