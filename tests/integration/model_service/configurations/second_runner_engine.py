"""A whole engine on vLLM's second model runner, whose kernels are interpreted; a process of its own, with a path and an environment that
its children inherit. It jumps as its first argument says, and prints the tokens of its answers, and how many were forced, as JSON; with
`stock` as its second, also those of drawn answers and of such with log probabilities, beside stock vLLM's on the same runner; with a
method of `DRAFTED`, those of an engine with such drafts; with a socket's name, those of each of the `FATES` of a broadcaster there, and how
many frames its worker has mapped for them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from grammar_service.spec import GrammarKind, GrammarSpec
from model_service.engine.environment import prepare_environment
from tests.integration.model_service.jump_forward.test_vllm_drafts import changes
from tests.integration.model_service.masks.mask_requests import await_masks
from tests.integration.model_service.running_broadcaster import running_broadcaster
from tests.integration.model_service.running_engine import SETTINGS, Answer, RunningEngine, running_engine

FIELDS = {"first_name": {"type": "string"}, "age": {"type": "integer"}}
SCHEMA = {"type": "object", "properties": FIELDS, "required": list(FIELDS), "additionalProperties": False}
SENTENCE = "The answer is (yes|no), and nothing else\\."
SPECS = (GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps(SCHEMA)), GrammarSpec(GrammarKind.REGEX, SENTENCE))
QUESTION = "Extract first_name, age as JSON.\n\nMeet Ada Young. Age: 36."
FATES = ("not there", "there", "late", "killed")
STOCK = "stock"
DRAFTED = ("ngram", "draft_model", "eagle")
SEATS, MOST_TOKENS = 4, 32
LOGPROBS = 2
DRAWN = {"temperature": 1.0, "top_p": 1.0, "top_k": 0}
Answers = list[tuple[list[int], int]]


def answers(engine: RunningEngine) -> Answers:
    """At once, so that a segment of one stands beside a single token of another."""
    asked = [(QUESTION, spec, {"max_tokens": MOST_TOKENS}) for spec in SPECS]
    penalized = (QUESTION, SPECS[0], {"max_tokens": MOST_TOKENS, "frequency_penalty": 0.5})
    free = (QUESTION, None, {"max_tokens": 8})
    return [(list(answer.tokens), answer.forced) for answer in engine.ask_all([*asked, penalized, free])]


def fates(engine: RunningEngine, name: str) -> list[tuple[Answers, int]]:
    def seen() -> tuple[Answers, int]:
        before = engine.mask_counts()[0]["mapped"]
        return answers(engine), engine.mask_counts()[0]["mapped"] - before

    nobody = seen()
    with running_broadcaster(name) as broadcaster:
        await_masks(engine)
        there = seen()
        broadcaster.stop()
        late = seen()
        broadcaster.kill()
        return [nobody, there, late, seen()]


def beside_stock(engine: RunningEngine) -> list[tuple[dict[str, Any], Answer]]:
    """What is asked, and what ours answers."""
    asked = [{"seed": seed, **DRAWN} for seed in range(3)] + [{"logprobs": True, "top_logprobs": LOGPROBS}]
    answered = engine.ask_all([(QUESTION, SPECS[0], {"max_tokens": MOST_TOKENS, **fields}) for fields in asked])
    return list(zip(asked, answered, strict=True))


async def compared(asked: Sequence[tuple[dict[str, Any], Answer]]) -> list[dict[str, Any]]:
    """For each, our tokens and stock's, the log probabilities of both, and how many were forced."""
    from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams

    from load_tests.front_door.workloads import stock_constraint
    from tests.integration.model_service.stock_engine import stock_engine

    engine, found = stock_engine(replace(SETTINGS, max_num_seqs=SEATS)), []
    assert engine.vllm_config.use_v2_model_runner
    try:
        for fields, ours in asked:
            constraint = StructuredOutputsParams(**stock_constraint(SPECS[0]))
            drawn = {name: value for name, value in fields.items() if "logprobs" not in name} or {"temperature": 0.0}
            params = SamplingParams(
                max_tokens=MOST_TOKENS,
                structured_outputs=constraint,
                output_kind=RequestOutputKind.FINAL_ONLY,
                logprobs=fields.get("top_logprobs"),
                **drawn,
            )
            async for output in engine.generate({"prompt_token_ids": list(ours.prompt)}, params, uuid4().hex):
                stock = output.outputs[0]
            told = [of[token].logprob for of, token in zip(stock.logprobs or (), stock.token_ids, strict=False)]
            own = [of["logprob"] for of in (ours.choice["logprobs"] or {"content": ()})["content"]]
            tokens = {"ours": list(ours.tokens), "stock": list(stock.token_ids)}
            found.append({**tokens, "logprobs": [own, told], "forced": ours.forced})
    finally:
        engine.shutdown()
    return found


def main(jumps: str, beside: str | None = None) -> Any:
    if beside in DRAFTED:
        with TemporaryDirectory() as folder, running_engine(max_num_seqs=SEATS, **changes(beside, Path(folder))) as engine:
            return answers(engine)
    asked, name = [], None if beside == STOCK else beside
    with running_engine(max_num_seqs=SEATS, jump_forward=jumps, mask_socket=name) as engine:
        if name is not None:
            return fates(engine, name)
        answered = answers(engine)
        if beside == STOCK:
            asked = beside_stock(engine)
    prepare_environment(SETTINGS)
    return {"answers": answered, STOCK: asyncio.run(compared(asked)) if asked else []}


if __name__ == "__main__":
    found = main(*sys.argv[1:])
    # Last of all: vLLM may log to the same stream while the engine ends.
    print(json.dumps(found))
