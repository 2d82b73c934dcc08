"""Without jumping the engine gives, token for token, what stock vLLM gives with the same grammar; with it, the same text wherever the
model would have cut it into tokens as its tokenizer does."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from itertools import islice
from uuid import uuid4

import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.spec import GrammarKind, GrammarSpec
from model_service.embedded.tasks import Exercise, exercises
from tests.integration.model_service.running_engine import SETTINGS, Answer, RunningEngine

REQUESTS = 80
MOST_TOKENS = 128


@dataclass(frozen=True)
class Ask:
    question: str
    spec: GrammarSpec


def _asks() -> list[Ask]:
    extractions = (exercise for exercise in exercises(11, held_out=True) if not exercise.tools)
    return [
        Ask(exercise.question, GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(_schema(exercise))))
        for exercise in islice(extractions, REQUESTS)
    ]


def _schema(exercise: Exercise) -> dict[str, object]:
    kinds = {str: {"type": "string"}, int: {"type": "integer"}, float: {"type": "number"}, bool: {"type": "boolean"}}
    properties = {name: kinds.get(type(value), {"type": ["string", "null"]}) for name, value in exercise.expected.items()}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


@pytest.fixture(scope="module")
def stepped(stepping: RunningEngine) -> list[tuple[Ask, Answer]]:
    # One at a time: what a model computes may depend on who shares the batch.
    return [(ask, stepping.ask(ask.question, ask.spec, max_tokens=MOST_TOKENS)) for ask in _asks()]


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerBase:
    loaded: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(EMBEDDED_WEIGHTS)
    return loaded


def test_without_jumps_every_token_is_stock_vllms(stepped: list[tuple[Ask, Answer]]) -> None:
    stock = asyncio.run(_stock_tokens(stepped))
    assert len(stock) == REQUESTS
    assert stock == [answer.tokens for _, answer in stepped]


def test_with_jumps_every_answer_is_valid_and_mostly_the_same(
    jumper: RunningEngine, stepped: list[tuple[Ask, Answer]], tokenizer: PreTrainedTokenizerBase
) -> None:
    same = 0
    for ask, without in stepped:
        answer = jumper.ask(ask.question, ask.spec, max_tokens=MOST_TOKENS)
        assert answer.forced > 0
        if answer.finish_reason == "stop":
            assert json.loads(answer.text).keys() == json.loads(ask.spec.text)["properties"].keys()
        if _is_canonical(without, tokenizer):
            assert answer.text == without.text
            same += 1
    assert same > REQUESTS * 0.9


def _is_canonical(answer: Answer, tokenizer: PreTrainedTokenizerBase) -> bool:
    tokens = [token for token in answer.tokens if token not in tokenizer.all_special_ids]
    canonical: list[int] = tokenizer.encode(answer.text, add_special_tokens=False)
    return canonical == tokens


async def _stock_tokens(stepped: list[tuple[Ask, Answer]]) -> list[tuple[int, ...]]:
    """What stock vLLM answers to the same prompts, greedily, under the same grammars."""
    from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams

    from load_tests.front_door.workloads import stock_constraint
    from tests.integration.model_service.stock_engine import stock_engine

    engine = stock_engine(SETTINGS)
    answers = []
    try:
        for ask, answer in stepped:
            constraint = StructuredOutputsParams(**stock_constraint(ask.spec))
            params = SamplingParams(
                temperature=0.0, max_tokens=MOST_TOKENS, structured_outputs=constraint, output_kind=RequestOutputKind.FINAL_ONLY
            )
            async for output in engine.generate({"prompt_token_ids": list(answer.prompt)}, params, uuid4().hex):
                answers.append(tuple(output.outputs[0].token_ids))
    finally:
        engine.shutdown()
    return answers
