"""What settings leave open follows from the model and the machine; what they say stays."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from deployments.builders import engine_seats, engine_settings
from deployments.config import parse_settings
from deployments.errors import SettingsError
from deployments.fitting import Fit, ModelCard, fit

CARD = ModelCard(32_768, ("LlamaForCausalLM",), '<tool_call>{"name": …, "arguments": …} </think> <|im_start|> enable_thinking')


def fitted(model: dict[str, Any], gpus: float | None = 0, card: ModelCard = CARD) -> Fit:
    return fit(parse_settings({"model": {"path": "them/their-model", **model}}), gpus, lambda path: card)


def test_what_is_left_open_is_the_models_and_the_machines() -> None:
    found = fitted({}, gpus=2)
    model = found.settings.model
    assert (model.context_length, model.tool_call_parser, model.reasoning_parser, model.gpus_per_worker) == (32_768, "hermes", "qwen3", 1)
    assert (model.served_name, model.longest) == ("them/their-model", 32_768)
    assert found.reasons == (
        "gpus_per_worker 1: there are 2 GPUs here",
        "context_length 32768: the model's own",
        "tool_call_parser hermes: the format in its chat template",
        "reasoning_parser qwen3: the format in its chat template",
    )


@pytest.mark.parametrize(
    "said",
    [
        {"context_length": 4096, "tool_call_parser": "mistral", "reasoning_parser": None, "gpus_per_worker": 0},
        {"context_length": 4096, "gpus_per_worker": 0.5, "engine_args": {"tool-call-parser": "xlam", "reasoning_parser": "step3"}},
    ],
)
def test_what_is_said_stays(said: dict[str, Any]) -> None:
    found = fitted(said, gpus=1)
    assert found.reasons == ()
    assert found.settings == parse_settings({"model": {"path": "them/their-model", **said}})


def test_to_fit_twice_or_to_travel_changes_nothing() -> None:
    def never(path: str) -> ModelCard:
        raise AssertionError(path)

    found = fitted({"lookahead": True}, card=ModelCard(None, (), ""))
    assert fit(found.settings, 8, never) == Fit(found.settings, ())
    assert fit(pickle.loads(pickle.dumps(found.settings)), 8, never).reasons == ()


def test_gpus_that_are_not_known_yet_are_left_open() -> None:
    assert fitted({}, gpus=None).settings.model.gpus_per_worker is None


def test_a_model_that_says_nothing_gets_no_parsers_and_its_reasons_say_why() -> None:
    found = fitted({}, card=ModelCard(None, (), ""))
    assert (found.settings.model.tool_call_parser, found.settings.model.reasoning_parser) == (None, None)
    assert [reason.partition(": ")[2] for reason in found.reasons[1:]] == [
        "the model's configuration does not say",
        "the model has no chat template of its own; `--chat-template FILE` gives it one",
        "likewise",
    ]


def test_gpt_oss_has_the_only_parsers_that_vllm_takes_for_it() -> None:
    model = fitted({}, card=ModelCard(131_072, ("GptOssForCausalLM",), "")).settings.model
    assert (model.tool_call_parser, model.reasoning_parser) == ("openai", "openai_gptoss")


def test_look_ahead_goes_without_a_reasoning_parser() -> None:
    assert fitted({"lookahead": True}).settings.model.reasoning_parser is None


def test_what_does_not_go_with_the_machine_is_refused() -> None:
    with pytest.raises(SettingsError, match="needs gpus_per_worker"):
        fitted({"executor": "ray"})
    assert fitted({"executor": "ray"}, gpus=1).settings.model.executor == "ray"


@pytest.mark.parametrize(
    ("model", "gpus", "seats"),
    [({}, 0, 128), ({"tensor_parallel_size": 2}, 0, 256), ({}, 1, 256), ({"max_num_seqs": 9}, 1, 9), ({"max_ongoing_requests": 32}, 0, 32)],
)
def test_requests_are_let_into_as_many_seats_as_vllm_makes(model: dict[str, Any], gpus: int, seats: int) -> None:
    settings = fitted(model, gpus).settings
    assert engine_seats(settings) == seats
    assert engine_settings(settings).max_num_seqs == model.get("max_num_seqs")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("embedded", "maskcast-embedded"),
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("/models/our-model/", "our-model"),
        ("/root/.cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/0a1b2c", "Qwen/Qwen3-8B"),
    ],
)
def test_a_model_is_served_by_its_name(path: str, name: str) -> None:
    assert parse_settings({"model": {"path": path}}).model.served_name == name
    assert parse_settings({"model": {"path": path, "served_name": "ours"}}).model.served_name == "ours"
