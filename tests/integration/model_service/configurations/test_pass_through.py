"""What an engine of vLLM can do beside decoding goes on working: adapters, reasoning ahead of the constrained answer, log probabilities of
prompts, weights of eight bits, images. Engines have as much of it at once as goes together."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from grammar_service.spec import GrammarKind, GrammarSpec
from model_service.errors import EngineSettingsError
from model_service.settings import DraftSettings
from tests.integration.model_service.configurations.made_models import (
    IMAGE_TOKENS,
    adapter,
    padded_model,
    quantized_model,
    reasoning_model,
    seeing_model,
)
from tests.integration.model_service.running_engine import SETTINGS, RunningEngine, running_engine

FIELDS = {"first_name": {"type": "string", "pattern": "^[A-Z][a-z]{1,8}$"}, "age": {"type": "integer", "maximum": 199, "minimum": 1}}
SCHEMA = {"type": "object", "properties": FIELDS, "required": list(FIELDS)}
SPEC = GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps({**SCHEMA, "additionalProperties": False}))
QUESTION = "Extract first_name, age as JSON.\n\nMeet Ada Young. Age: 36."
STEPPED: dict[str, Any] = {"logprobs": True, "top_logprobs": 1}
"""Who wants to know of other tokens as well is asked for each."""
ENDS, END = 2047, 1
"""The tokens that end the reasoning of the model below, and its answers."""


@pytest.fixture(scope="module")
def able(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngine]:
    folder = tmp_path_factory.mktemp("able")
    modules = [{"name": "adapted", "path": str(adapter(folder / "adapter", 0.3))}]
    arguments = {"enable_lora": True, "max_lora_rank": 8, "lora_modules": modules, "reasoning_parser": "deepseek_r1"}
    with running_engine(model=str(reasoning_model(folder / "model")), engine_args=arguments) as engine:
        yield engine


def is_of_the_schema(text: str) -> bool:
    answer: dict[str, object] = json.loads(text)
    return answer.keys() == {"first_name", "age"}


def test_a_model_thinks_freely_and_then_keeps_to_the_grammar(able: RunningEngine) -> None:
    """It was not made to think: what ends its reasoning comes by chance, sooner or later."""
    sampled: dict[str, Any] = {"n": 8, "max_tokens": 200, "temperature": 1, "seed": 4, "model": "adapted"}
    bodies = [able.body(QUESTION, SPEC, **sampled, logit_bias={str(ENDS): bias, str(END): -100}) for bias in (2, 4, 6, 8, 10)]
    choices = [choice for body in bodies for choice in body["choices"]]
    ended = [choice["message"] for choice in choices if choice["finish_reason"] == "stop"]
    assert all(is_of_the_schema(message["content"]) for message in ended)
    assert [message["reasoning"] for message in ended if message["reasoning"]]


def test_nothing_is_jumped_over_before_the_reasoning_has_ended(able: RunningEngine) -> None:
    before = able.ask(QUESTION, SPEC, max_tokens=20, thinking_token_budget=20, logit_bias={str(ENDS): -100})
    assert before.forced == 0
    after = able.ask(QUESTION, SPEC, max_tokens=200, logit_bias={str(ENDS): 100})
    assert after.tokens[0] == ENDS
    assert after.forced > 0
    assert is_of_the_schema(after.text)


def test_an_adapter_is_a_model_that_keeps_to_the_grammar(able: RunningEngine) -> None:
    plain, adapted = (able.ask(QUESTION, None, max_tokens=20, **model) for model in ({}, {"model": "adapted"}))
    assert plain.tokens != adapted.tokens
    constrained = able.ask(QUESTION, SPEC, max_tokens=200, model="adapted", logit_bias={str(ENDS): 100})
    assert constrained.forced > 0
    assert constrained.finish_reason == "length" or is_of_the_schema(constrained.text)


def test_an_adapter_that_is_not_there_is_refused_with_its_name(tmp_path: Path) -> None:
    modules = [{"name": "adapted", "path": str(tmp_path / "nowhere")}]
    with (
        pytest.raises(EngineSettingsError, match="adapted"),
        running_engine(engine_args={"enable_lora": True, "lora_modules": modules}),
    ):
        pass


def test_keys_and_values_come_from_a_connector_and_answers_stay_the_same(jumping: RunningEngine, tmp_path: Path) -> None:
    """Through vLLM's example, which keeps those of whole blocks in files."""
    connector = {
        "kv_connector": "ExampleConnector",
        "kv_role": "kv_both",
        "kv_connector_extra_config": {"shared_storage_path": str(tmp_path)},
    }
    question = " ".join([QUESTION] * 8)
    with running_engine(engine_args={"kv_transfer_config": connector, "enable_prefix_caching": False}) as engine:
        first, second = (engine.ask(question, SPEC, max_tokens=200) for _ in range(2))
    assert [answer.usage["prompt_tokens_details"]["cached_tokens"] > 0 for answer in (first, second)] == [False, True]
    assert first.tokens == second.tokens == jumping.ask(question, SPEC, max_tokens=200).tokens
    assert second.forced > 0


def test_a_quantized_model_keeps_to_the_grammar_and_jumps_to_what_it_would_step_to(tmp_path: Path) -> None:
    # Kernels of processors with AMX take these weights beside activations of 16 bits only.
    with running_engine(model=str(quantized_model(tmp_path / "quantized")), dtype="bfloat16") as engine:
        assert engine.engine._engine is not None
        assert engine.engine._engine.vllm_config.model_config.quantization == "compressed-tensors"
        jumped, stepped = (engine.ask(QUESTION, SPEC, max_tokens=200, **fields) for fields in ({}, STEPPED))
    assert is_of_the_schema(jumped.text)
    assert jumped.tokens == stepped.tokens
    assert [answer.forced > 0 for answer in (jumped, stepped)] == [True, False]


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngine]:
    with running_engine(model=str(seeing_model(tmp_path_factory.mktemp("seeing") / "model"))) as engine:
        yield engine


def shown(image: Image.Image) -> list[dict[str, Any]]:
    """The messages of a question with it."""
    written = io.BytesIO()
    image.save(written, "PNG")
    url = f"data:image/png;base64,{base64.b64encode(written.getvalue()).decode()}"
    return [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": QUESTION}]}]


def test_an_answer_about_an_image_keeps_to_the_grammar_and_is_jumped_to(seeing: RunningEngine) -> None:
    messages = shown(Image.new("RGB", (60, 40), "red"))
    jumped, stepped = (seeing.ask("", SPEC, messages=messages, max_tokens=200, **fields) for fields in ({}, STEPPED))
    assert is_of_the_schema(jumped.text)
    assert jumped.tokens == stepped.tokens
    assert [answer.forced > 0 for answer in (jumped, stepped)] == [True, False]
    assert jumped.usage["prompt_tokens_details"]["multimodal_tokens"] == {"image": IMAGE_TOKENS}


def test_images_are_seen_those_of_many_megabytes_too(seeing: RunningEngine) -> None:
    noise = Image.fromarray(np.random.default_rng(1).integers(0, 256, (1200, 1200, 3), dtype=np.uint8))
    large, small = shown(noise), shown(Image.new("RGB", (60, 40), "red"))
    assert len(json.dumps(large)) > 4 * 2**20
    answers = [seeing.body("", SPEC, messages=messages, prompt_logprobs=1) for messages in (large, small)]
    assert all(is_of_the_schema(answer["choices"][0]["message"]["content"]) for answer in answers)
    assert answers[0]["prompt_token_ids"] == answers[1]["prompt_token_ids"]
    assert answers[0]["prompt_logprobs"] != answers[1]["prompt_logprobs"]


def test_log_probabilities_of_a_prompt_come_with_its_constrained_answer(jumping: RunningEngine) -> None:
    """Which is stepped: nobody hears what the model makes of a token that it is not asked for."""
    body = jumping.body(QUESTION, SPEC, prompt_logprobs=1)
    assert body["usage"]["completion_tokens_details"]["forced_tokens"] == 0
    assert len(body["prompt_logprobs"]) == body["usage"]["prompt_tokens"]
    assert is_of_the_schema(body["choices"][0]["message"]["content"])


def test_every_worker_has_logits_for_the_whole_vocabulary(jumping: RunningEngine) -> None:
    engine = jumping.engine._engine
    assert engine is not None
    assert jumping._run(engine.collective_rpc("logits_width")) == [engine.vllm_config.model_config.get_vocab_size()]


def test_an_engine_whose_logits_are_of_another_width_is_refused_in_a_sentence(tmp_path: Path) -> None:
    model = str(padded_model(tmp_path / "padded", padding=32))
    with (
        pytest.raises(EngineSettingsError, match=r"^the model's logits are for 2080 tokens.*2048"),
        running_engine(model=model, engine_args={"load_format": "dummy"}),
    ):
        pass


def test_so_is_one_that_drafts_for_another(tmp_path: Path) -> None:
    from model_service.engine.drafting import start_draft

    draft = DraftSettings(str(padded_model(tmp_path / "padded", padding=32)), {"load_format": "dummy"})
    settings = replace(SETTINGS, lookahead=True, draft=draft)
    with pytest.raises(EngineSettingsError, match=r"^the draft model .*padded: the model's logits are for 2080 tokens"):
        asyncio.run(start_draft(settings.drafting(draft), settings, "none"))
