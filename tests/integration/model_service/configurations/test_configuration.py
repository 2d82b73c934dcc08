"""An engine's configuration is what vLLM's own server makes of the same arguments, but for what is plugged in by what vLLM has resolved."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from model_service.errors import EngineSettingsError
from model_service.settings import EngineSettings, JumpForward
from tests.integration.model_service.conftest import NGRAMS
from tests.integration.model_service.running_engine import SETTINGS, prepared_environment


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    with prepared_environment(SETTINGS):
        yield


def stock(settings: EngineSettings) -> Any:
    from model_service.engine.arguments import parse_arguments
    from model_service.engine.configuration import stock_config

    return stock_config(parse_arguments(settings))


def plugged(settings: EngineSettings, channel: str = "none") -> Any:
    from model_service.engine.configuration import plug

    return plug(stock(settings), settings, channel)


def jumps(config: Any) -> bool:
    from model_service.engine.core_options import core_options

    return core_options(config).jump_forward


@pytest.mark.parametrize("workers", [1, 2])
def test_the_defaults_of_a_step_are_those_of_vllms_server(workers: int) -> None:
    """Whom the front door is measured against: `stock_flags` are its command line."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.usage.usage_lib import UsageContext
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    from model_service.engine.arguments import stock_flags

    settings = replace(SETTINGS, tensor_parallel_size=workers)
    arguments = make_arg_parser(FlexibleArgumentParser()).parse_args(stock_flags(settings))
    server = AsyncEngineArgs.from_cli_args(arguments).create_engine_config(UsageContext.OPENAI_API_SERVER)
    ours = plugged(settings)
    assert ours.scheduler_config.max_num_batched_tokens == server.scheduler_config.max_num_batched_tokens == 2048 * workers
    assert {**vars(ours.scheduler_config), "scheduler_cls": None} == vars(server.scheduler_config)


def test_vllms_cache_of_compiled_models_knows_the_engine_again() -> None:
    names = {stock(SETTINGS).compute_hash(), plugged(SETTINGS, "one").compute_hash(), plugged(SETTINGS, "another").compute_hash()}
    assert len(names) == 1


def test_the_options_reach_another_process() -> None:
    from model_service.engine.core_options import core_options

    sent = pickle.loads(pickle.dumps(plugged(replace(SETTINGS, engine_args={"additional_config": {"a": 1}}), "channel")))
    assert core_options(sent).channel == "channel"
    assert sent.additional_config == {"a": 1}


@pytest.mark.parametrize("arguments", [{}, {"speculative_config": NGRAMS}, {"spec_method": "ngram", "spec_tokens": 2}])
def test_an_engine_jumps_beside_drafts_that_are_made_anew_after_each_step(arguments: dict[str, Any]) -> None:
    assert jumps(plugged(replace(SETTINGS, engine_args=arguments)))


@pytest.mark.parametrize("runner", ["0", "1"])
@pytest.mark.parametrize("method", ["draft_model", "eagle", "eagle3", "mtp"])
def test_so_it_does_in_synchronous_steps_beside_drafts_of_models(method: str, runner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from model_service.engine.configuration import SCHEDULER, plug

    settings = replace(SETTINGS, engine_args={"speculative_config": NGRAMS})
    config = as_on_a_gpu(stock(settings))
    config.speculative_config.method = method
    config.scheduler_config.async_scheduling = True
    monkeypatch.setenv("VLLM_USE_V2_MODEL_RUNNER", runner)
    assert jumps(plug(config, settings, "none"))
    assert (config.scheduler_config.scheduler_cls, config.scheduler_config.async_scheduling) == (SCHEDULER, False)


def test_who_asks_for_overlapping_steps_beside_drafts_has_no_jumps(caplog: pytest.LogCaptureFixture) -> None:
    from model_service.engine.configuration import plug

    settings = replace(SETTINGS, engine_args={"speculative_config": NGRAMS})
    assert not jumps(plug(stock(settings), replace(settings, engine_args={**settings.engine_args, "async_scheduling": True}), "none"))
    assert "need synchronous steps" in caplog.text


def test_an_engine_does_not_jump_beside_other_drafts_or_stages(caplog: pytest.LogCaptureFixture) -> None:
    from model_service.engine.configuration import plug

    assert not jumps(plugged(replace(SETTINGS, engine_args={"pipeline_parallel_size": 2})))
    settings = replace(SETTINGS, engine_args={"speculative_config": NGRAMS})
    others = stock(settings)
    others.speculative_config.method = "medusa"
    assert not jumps(plug(others, settings, "none"))
    assert "the method 'medusa'" in caplog.text


LOOKING_UP = replace(SETTINGS, prompt_lookup=True)


def test_an_engine_that_looks_prompts_up_schedules_synchronously_and_its_peer_has_no_drafts() -> None:
    from model_service.engine.arguments import stock_flags
    from model_service.engine.core_options import core_options

    config = plugged(LOOKING_UP)
    assert (config.scheduler_config.async_scheduling, core_options(config).prompt_lookup, jumps(config)) == (False, True, True)
    assert config.speculative_config.method == "custom_class"
    assert stock_flags(LOOKING_UP) == stock_flags(SETTINGS)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"jump_forward": False}, "prompt_lookup.*jump_forward: false"),
        ({"jump_forward": "async"}, "async.*prompt_lookup"),
        ({"lookahead": True}, "look-ahead does not go with .prompt_lookup"),
        ({"engine_args": {"speculative_config": NGRAMS}}, "prompt_lookup.*method 'ngram'"),
        ({"engine_args": {"pipeline_parallel_size": 2}}, "prompt_lookup.*stages of a pipeline"),
    ],
)
def test_what_does_not_go_with_looking_prompts_up_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(EngineSettingsError, match=reason):
        plugged(replace(LOOKING_UP, **changes))


@pytest.mark.parametrize(
    ("changes", "drafts"),
    [
        ({}, True),
        ({"jump_forward": "sync"}, True),
        ({"jump_forward": False}, False),
        ({"jump_forward": "async"}, False),
        ({"lookahead": True}, False),
        ({"gpus_per_worker": 1.0}, False),
        ({"engine_args": {"speculative_config": NGRAMS}}, False),
        ({"engine_args": {"async-scheduling": True}}, False),
        ({"engine_args": {"pipeline_parallel_size": 2}}, False),
        ({"engine_args": {"max_num_seqs": "many"}}, False),
    ],
)
def test_prompts_are_looked_up_where_an_engine_on_a_cpu_can(changes: dict[str, Any], drafts: bool) -> None:
    from model_service.engine.configuration import with_prompt_lookup

    settings = replace(SETTINGS, prompt_lookup="auto", **changes)
    assert with_prompt_lookup(settings) == replace(settings, prompt_lookup=drafts)


def test_logits_processors_of_a_plugin_see_no_drafts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """So that there are none: a filter must have seen every token."""
    from model_service.engine.configuration import with_prompt_lookup

    package = tmp_path / "filter-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: filter\nVersion: 1.0\n", encoding="utf-8")
    (package / "entry_points.txt").write_text("[vllm.logits_processors]\nfilter = filter:Filter\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    caplog.set_level("INFO")
    assert with_prompt_lookup(replace(SETTINGS, prompt_lookup="auto")).prompt_lookup is False
    assert "logits processors of your own" in caplog.text


def test_forced_tokens_beside_drafts_need_synchronous_steps() -> None:
    with pytest.raises(EngineSettingsError, match=r"async.*drafts"):
        plugged(replace(SETTINGS, jump_forward="async", engine_args={"speculative_config": NGRAMS}))


def test_an_engine_does_not_jump_where_its_runner_knows_positions_of_several_parts_in_prompts_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from model_service.engine.configuration import plug

    rotary = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 2, 2]}
    settings = replace(SETTINGS, engine_args={"hf_overrides": {"rope_parameters": rotary}})
    first, second = (as_on_a_gpu(stock(settings)) for _ in range(2))
    assert first.model_config.uses_mrope
    monkeypatch.setenv("VLLM_USE_V2_MODEL_RUNNER", "0")
    assert jumps(plug(first, settings, "none"))
    monkeypatch.setenv("VLLM_USE_V2_MODEL_RUNNER", "1")
    assert not jumps(plug(second, settings, "none"))
    assert "nothing is jumped over: vLLM's second model runner knows positions of several parts" in caplog.text


def test_masks_of_a_broadcaster_do_not_go_with_the_stages_of_a_pipeline() -> None:
    from model_service.engine.configuration import plug
    from model_service.engine.workers.executors import executor_class

    settings = replace(SETTINGS, mask_socket="somewhere", engine_args={"pipeline_parallel_size": 2})
    with pytest.raises(EngineSettingsError, match=r"do not go with pipeline stages: set `masks: in_process`"):
        executor_class(plug(stock(settings), settings, "none"))
    within = replace(settings, mask_socket=None)
    executor_class(plug(stock(within), within, "none"))


def test_what_is_plugged_in_goes_by_the_resolved_runner_and_scheduling(monkeypatch: pytest.MonkeyPatch) -> None:
    from model_service.engine.configuration import ASYNC_SCHEDULER, CPU_WORKER, GPU_WORKER, SCHEDULER, plug

    config = plugged(SETTINGS)
    assert (config.scheduler_config.scheduler_cls, config.parallel_config.worker_cls) == (SCHEDULER, CPU_WORKER)
    config, other = as_on_a_gpu(stock(SETTINGS)), as_on_a_gpu(stock(SETTINGS))
    assert plug(config, SETTINGS, "none").parallel_config.worker_cls == GPU_WORKER
    monkeypatch.setenv("VLLM_USE_V2_MODEL_RUNNER", "1")
    config = plug(other, SETTINGS, "none")
    assert jumps(config)
    assert (config.scheduler_config.scheduler_cls, config.parallel_config.worker_cls) == (ASYNC_SCHEDULER, GPU_WORKER)


@pytest.mark.parametrize(
    ("jump_forward", "on_a_cpu", "on_a_gpu"),
    [("auto", False, True), ("async", True, True), ("sync", False, False), (False, False, True)],
)
def test_steps_overlap_as_is_asked_for_or_as_they_would_without_jumps(jump_forward: JumpForward, on_a_cpu: bool, on_a_gpu: bool) -> None:
    from model_service.engine.configuration import ASYNC_SCHEDULER, SCHEDULER, plug

    settings = replace(SETTINGS, jump_forward=jump_forward)
    for config, overlaps in ((plugged(settings), on_a_cpu), (plug(as_on_a_gpu(stock(SETTINGS)), settings, "none"), on_a_gpu)):
        assert jumps(config) == (jump_forward is not False)
        assert config.scheduler_config.async_scheduling == overlaps
        assert config.scheduler_config.scheduler_cls == (ASYNC_SCHEDULER if overlaps else SCHEDULER)


@pytest.mark.parametrize(
    ("changes", "reason"), [({"engine_args": {"async_scheduling": False}}, "async_scheduling"), ({"lookahead": True}, "look-ahead")]
)
def test_steps_that_are_to_overlap_and_not_to_are_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(EngineSettingsError, match=f"`jump_forward: async` does not go with .*{reason}"):
        plugged(replace(SETTINGS, jump_forward="async", **changes))


@pytest.mark.parametrize(
    ("capabilities", "config", "dtype"),
    [
        ({"avx2": True, "avx512_bf16": False}, {}, "float32"),
        ({"avx512_bf16": True}, {}, "auto"),
        ({"amx_bf16": True}, {}, "auto"),
        ({"bf16": True, "neon": True}, {}, "auto"),
        ({"avx2": True}, {"quantization_config": {"quant_method": "awq"}}, "auto"),
    ],
)
def test_a_processor_that_would_emulate_bfloat16_computes_in_float32(
    capabilities: dict[str, bool], config: dict[str, Any], dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from model_service.engine.arguments import parse_arguments

    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", **config}))
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    settings = replace(SETTINGS, model=str(tmp_path), dtype="auto")
    assert parse_arguments(settings).dtype == dtype
    assert parse_arguments(replace(settings, dtype="bfloat16")).dtype == "bfloat16"
    assert parse_arguments(replace(settings, engine_args={"dtype": "bfloat16"})).dtype == "bfloat16"
    assert parse_arguments(replace(settings, gpus_per_worker=1)).dtype == "auto"


def as_on_a_gpu(config: Any) -> Any:
    """What vLLM's platform of CUDA makes of a worker and a scheduling that nobody has chosen."""
    config.scheduler_config.async_scheduling = True
    config.parallel_config.worker_cls = "vllm.v1.worker.gpu_worker.Worker"
    return config


def test_frames_go_to_either_runner_but_not_where_only_the_device_knows_whose_logits_are(monkeypatch: pytest.MonkeyPatch) -> None:
    from model_service.engine.configuration import plug
    from model_service.engine.core_options import core_options

    config, drafting, other = stock(SETTINGS), stock(replace(SETTINGS, engine_args={"speculative_config": NGRAMS})), stock(SETTINGS)
    monkeypatch.setenv("VLLM_USE_V2_MODEL_RUNNER", "1")
    asked = replace(SETTINGS, mask_socket="somewhere")
    config = plug(config, asked, "none")
    assert config.use_v2_model_runner
    assert core_options(config).broadcaster is not None
    drafting.speculative_config.enable_adaptive_verification = True
    with pytest.raises(EngineSettingsError, match=r"enable_adaptive_verification.*in_process"):
        plug(drafting, asked, "none")
    other.parallel_config.worker_cls = "their.Worker"
    with pytest.raises(EngineSettingsError, match=r"their\.Worker takes no masks"):
        plug(other, asked, "none")


def test_arguments_that_are_objects_reach_vllm_as_such() -> None:
    from model_service.engine.arguments import parse_arguments

    modules = [{"name": "a", "path": "/one"}, {"name": "b", "path": "/two"}]
    given = replace(SETTINGS, engine_args={"lora_modules": modules, "cudagraph_capture_sizes": [1, 2]})
    arguments = parse_arguments(given)
    assert [(module.name, module.path) for module in arguments.lora_modules] == [("a", "/one"), ("b", "/two")]
    assert arguments.cudagraph_capture_sizes == [1, 2]


@pytest.mark.parametrize("kind", ["tool", "reasoning"])
def test_parsers_of_an_operators_own_are_known_or_refused_when_they_cannot_be_read(kind: str, tmp_path: Path) -> None:
    from vllm.reasoning import ReasoningParserManager
    from vllm.tool_parsers import ToolParserManager

    from model_service.engine.arguments import load_parsers, parse_arguments

    own, argument = tmp_path / f"own_{kind}_parser.py", f"{kind}_parser_plugin"
    arguments = parse_arguments(replace(SETTINGS, engine_args={argument: str(own)}))
    with pytest.raises(EngineSettingsError, match=f"{argument} .*own_{kind}_parser"):
        load_parsers(arguments)
    name, package = f"{kind.capitalize()}Parser", "vllm.tool_parsers" if kind == "tool" else "vllm.reasoning"
    own.write_text(f"from {package} import {name}, {name}Manager\n@{name}Manager.register_module('own')\nclass Own({name}): ...\n")
    load_parsers(arguments)
    known = ToolParserManager.get_tool_parser("own") if kind == "tool" else ReasoningParserManager.get_reasoning_parser("own")
    assert known.__name__ == "Own"


def test_what_would_be_plugged_out_or_misplaced_is_refused() -> None:
    from model_service.engine.configuration import plug

    with pytest.raises(EngineSettingsError, match=r"their\.Scheduler"):
        plugged(replace(SETTINGS, engine_args={"scheduler_cls": "their.Scheduler"}))
    with pytest.raises(EngineSettingsError, match="2 workers"):
        plug(stock(replace(SETTINGS, tensor_parallel_size=2)), SETTINGS, "none")
    config = stock(SETTINGS)
    config.parallel_config.data_parallel_size = 2
    with pytest.raises(EngineSettingsError, match="num_replicas"):
        plug(config, SETTINGS, "none")


def test_short_prompts_share_blocks_of_the_kv_cache_on_a_cpu() -> None:
    assert plugged(SETTINGS).cache_config.block_size == 32
    assert plugged(replace(SETTINGS, engine_args={"block_size": 64})).cache_config.block_size == 64


LOOKING = replace(SETTINGS, lookahead=True)


def test_an_engine_that_looks_ahead_schedules_synchronously_on_whatever_it_runs() -> None:
    from model_service.engine.configuration import GPU_WORKER, LOOKAHEAD_SCHEDULER, plug
    from model_service.engine.core_options import core_options

    config = plugged(replace(LOOKING, jump_forward=False))
    assert (config.scheduler_config.scheduler_cls, core_options(config).lookahead) == (LOOKAHEAD_SCHEDULER, True)
    config = plug(as_on_a_gpu(stock(LOOKING)), replace(LOOKING, jump_forward=False), "none")
    assert (config.scheduler_config.async_scheduling, config.parallel_config.worker_cls) == (False, GPU_WORKER)
    assert not core_options(plugged(SETTINGS)).lookahead


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"engine_args": {"speculative_config": NGRAMS}}, "speculative_config"),
        ({"engine_args": {"long_prefill_token_threshold": 16}}, "steps of at most 16 tokens"),
        ({"engine_args": {"enable_lora": True}}, "adapters"),
        ({"engine_args": {"reasoning_parser": "qwen3"}}, "a reasoning parser"),
        ({"mask_socket": "somewhere"}, "a broadcaster"),
    ],
)
def test_what_does_not_go_with_look_aheads_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(EngineSettingsError, match=f"look-ahead does not go with .*{reason}"):
        plugged(replace(LOOKING, **changes))


def test_words_of_a_command_line_are_read_as_vllm_reads_them() -> None:
    from model_service.engine.arguments import parse_arguments, parse_flags

    words = "folder --max-model-len 4k -tp 2 --enable-lora --lora-modules a=/x --no-enable-prefix-caching --hf-overrides.a 3".split()
    given = parse_flags(words)
    assert given == {
        "model_tag": "folder",
        "max_model_len": 4000,
        "tensor_parallel_size": 2,
        "enable_lora": True,
        "lora_modules": [{"name": "a", "path": "/x", "is_3d_lora_weight": False}],
        "enable_prefix_caching": False,
        "hf_overrides": {"a": 3},
    }
    del given["model_tag"]
    again = parse_arguments(replace(SETTINGS, engine_args=given))
    assert (again.max_model_len, again.lora_modules[0].path, again.hf_overrides) == (4000, "/x", {"a": 3})
