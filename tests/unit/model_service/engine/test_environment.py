from __future__ import annotations

import os

import pytest

from model_service.engine.environment import bind_threads, prepare_environment
from model_service.settings import EngineSettings


@pytest.mark.parametrize(
    ("cpus", "workers", "expected"),
    [([0, 1], 1, "1"), ([0, 1], 2, "0|1"), ([0, 1, 2], 2, "1|2"), ([0, 1, 2, 3], 2, "1,2|3"), ([5], 2, "5|5"), ([0, 1, 2], 3, "0|1|2")],
)
def test_cpus_are_split_fairly_and_one_is_left_free_where_it_can_be(cpus: list[int], workers: int, expected: str) -> None:
    assert bind_threads(cpus, workers) == expected


def test_what_the_operator_has_set_stays() -> None:
    environment = {"VLLM_LOGGING_LEVEL": "DEBUG"}
    prepare_environment(EngineSettings("m", "m"), environment)
    assert environment["VLLM_LOGGING_LEVEL"] == "DEBUG"
    assert environment["VLLM_ENFORCE_STRICT_TOOL_CALLING"] == "0"


def test_threads_are_bound_on_a_cpu_only() -> None:
    environment: dict[str, str] = {}
    prepare_environment(EngineSettings("m", "m", gpus_per_worker=1), environment)
    assert "VLLM_CPU_OMP_THREADS_BIND" not in environment


def test_on_a_cpu_what_is_kept_for_each_number_of_tokens_in_a_step_is_bounded() -> None:
    environment: dict[str, str] = {}
    prepare_environment(EngineSettings("m", "m"), environment)
    assert int(environment["ONEDNN_PRIMITIVE_CACHE_CAPACITY"]) < 1024


def test_arrays_get_no_huge_pages_whose_memory_matchers_would_have_uncounted() -> None:
    environment: dict[str, str] = {}
    prepare_environment(EngineSettings("m", "m"), environment)
    assert environment["NUMPY_MADVISE_HUGEPAGE"] == "0"


def test_one_worker_is_bound_to_no_cpu_and_leaves_one_free() -> None:
    environment: dict[str, str] = {}
    prepare_environment(EngineSettings("m", "m", is_alone=True), environment)
    assert environment["VLLM_CPU_OMP_THREADS_BIND"] == "nobind"
    assert environment["OMP_NUM_THREADS"] == str(max(1, len(os.sched_getaffinity(0)) - 1))


def test_workers_of_an_engine_that_is_alone_are_bound_apart() -> None:
    environment: dict[str, str] = {}
    prepare_environment(EngineSettings("m", "m", is_alone=True, tensor_parallel_size=2), environment)
    assert environment["VLLM_CPU_OMP_THREADS_BIND"] == bind_threads(sorted(os.sched_getaffinity(0)), 2)


def test_rays_workers_ask_for_the_part_of_a_gpu_that_their_bundle_has() -> None:
    environment: dict[str, str] = {}
    prepare_environment(EngineSettings("m", "m", gpus_per_worker=0.25), environment)
    assert environment["VLLM_RAY_PER_WORKER_GPUS"] == "0.25"


def test_the_workers_of_an_engine_are_all_its_shards() -> None:
    assert EngineSettings("m", "m", tensor_parallel_size=2, engine_args={"pipeline-parallel-size": 3}).workers == 6
    assert EngineSettings("m", "m", tensor_parallel_size=2, engine_args={"tensor_parallel_size": 4}).workers == 4


def test_engines_that_share_a_machine_are_not_bound_to_the_same_cpus() -> None:
    environment: dict[str, str] = {}
    prepare_environment(EngineSettings("m", "m", is_alone=False), environment)
    assert environment["VLLM_CPU_OMP_THREADS_BIND"] == "nobind"
    assert int(environment["OMP_NUM_THREADS"]) >= 1


def test_an_engine_that_looks_ahead_says_once_that_it_takes_another_model_runner_than_vllm_would(caplog: pytest.LogCaptureFixture) -> None:
    looking, environment = EngineSettings("m", "m", gpus_per_worker=1, lookahead=True), dict[str, str]()
    for _ in range(2):
        prepare_environment(looking, environment)
    for unchanged in (EngineSettings("m", "m", gpus_per_worker=1), EngineSettings("m", "m", lookahead=True)):
        prepare_environment(unchanged, {})
    prepare_environment(looking, {"VLLM_USE_V2_MODEL_RUNNER": "0"})
    (said,) = caplog.messages
    assert said.startswith("look-ahead takes vLLM's first model runner")


def test_vllm_chooses_the_model_runner_on_a_gpu_that_does_not_look_ahead() -> None:
    chosen: dict[str, str] = {}
    frames: dict[str, str] = {}
    looking: dict[str, str] = {}
    on_cpu: dict[str, str] = {}
    prepare_environment(EngineSettings("m", "m", gpus_per_worker=1), chosen)
    prepare_environment(EngineSettings("m", "m", gpus_per_worker=1, mask_socket="somewhere"), frames)
    prepare_environment(EngineSettings("m", "m", gpus_per_worker=1, lookahead=True), looking)
    prepare_environment(EngineSettings("m", "m"), on_cpu)
    assert "VLLM_USE_V2_MODEL_RUNNER" not in {*chosen, *frames}
    assert looking["VLLM_USE_V2_MODEL_RUNNER"] == on_cpu["VLLM_USE_V2_MODEL_RUNNER"] == "0"
