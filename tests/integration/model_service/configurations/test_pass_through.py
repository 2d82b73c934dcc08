"""What an engine of vLLM can do beside decoding goes on working: adapters, reasoning ahead of the constrained answer, log probabilities of
prompts. One engine has all of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from deployments.builders import EMBEDDED_WEIGHTS
from grammar_service.spec import GrammarKind, GrammarSpec
from model_service.errors import EngineSettingsError
from tests.integration.model_service.running_engine import RunningEngine, running_engine

FIELDS = {"first_name": {"type": "string", "pattern": "^[A-Z][a-z]{1,8}$"}, "age": {"type": "integer", "maximum": 199, "minimum": 1}}
SCHEMA = {"type": "object", "properties": FIELDS, "required": list(FIELDS)}
SPEC = GrammarSpec(GrammarKind.JSON_SCHEMA, json.dumps({**SCHEMA, "additionalProperties": False}))
QUESTION = "Extract first_name, age as JSON.\n\nMeet Ada Young. Age: 36."
ENDS, END = 2047, 1
"""The tokens that end the reasoning of the model below, and its answers."""


def reasoning_model(folder: Path) -> Path:
    """The embedded model with other names for the tokens around a tool call: those that models of DeepSeek reason between."""
    shutil.copytree(EMBEDDED_WEIGHTS, folder)
    tokenizer = folder / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text(encoding="utf-8").replace("tool_call>", "think>"), encoding="utf-8")
    return folder


def adapter(folder: Path, strength: float) -> Path:
    """One of LoRA's, which says nothing that makes sense."""
    config = json.loads((EMBEDDED_WEIGHTS / "config.json").read_text())
    chance, width, rank = np.random.default_rng(7), config["hidden_size"], 8
    shapes = {"lora_A": (rank, width), "lora_B": (width, rank)}
    names = [f"base_model.model.model.layers.{layer}.self_attn.q_proj" for layer in range(config["num_hidden_layers"])]
    folder.mkdir()
    weights = {
        f"{name}.{part}.weight": (strength * chance.standard_normal(shape)).astype(np.float32)
        for name in names
        for part, shape in shapes.items()
    }
    save_file(weights, folder / "adapter_model.safetensors")
    told = {"peft_type": "LORA", "r": rank, "lora_alpha": rank, "target_modules": ["q_proj"], "bias": "none", "task_type": "CAUSAL_LM"}
    (folder / "adapter_config.json").write_text(json.dumps(told))
    return folder


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
    before = able.ask(QUESTION, SPEC, max_tokens=20, logit_bias={str(ENDS): -100})
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


def test_log_probabilities_of_a_prompt_come_with_its_constrained_answer(jumping: RunningEngine) -> None:
    body = jumping.body(QUESTION, SPEC, prompt_logprobs=1)
    assert len(body["prompt_logprobs"]) == body["usage"]["prompt_tokens"]
    assert is_of_the_schema(body["choices"][0]["message"]["content"])


def test_every_worker_has_logits_for_the_whole_vocabulary(jumping: RunningEngine) -> None:
    engine = jumping.engine._engine
    assert engine is not None
    assert jumping._run(engine.collective_rpc("logits_width")) == [engine.vllm_config.model_config.get_vocab_size()]


def test_logits_of_another_width_are_refused_in_a_sentence() -> None:
    from model_service.engine.workers.vocabulary_width import check_width

    check_width([None, 2048, 2048], 2048)
    with pytest.raises(EngineSettingsError, match=r"2080 tokens.*2048"):
        check_width([None, 2080], 2048)
