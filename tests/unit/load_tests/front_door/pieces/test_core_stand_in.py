"""The engine core without a model."""

from __future__ import annotations

from vllm.sampling_params import SamplingParams
from vllm.v1.engine import EngineCoreRequest, FinishReason

from load_tests.front_door.pieces.core_stand_in import CoreStandIn


def request(name: str, tokens: int, logprobs: int | None = None) -> EngineCoreRequest:
    return EngineCoreRequest(
        request_id=name,
        prompt_token_ids=[1],
        mm_features=None,
        sampling_params=SamplingParams(max_tokens=tokens, logprobs=logprobs),
        pooling_params=None,
        arrival_time=0.0,
        lora_request=None,
        cache_salt=None,
        data_parallel_rank=None,
    )


async def test_each_step_has_a_token_for_every_request_until_its_last() -> None:
    core = CoreStandIn(token=7, logits_width=96, steps_per_s=1000)
    await core.add_request_async(request("short", 1))
    await core.add_request_async(request("long", 9))
    first, second = (await core.get_output_async()).outputs, (await core.get_output_async()).outputs
    assert [(one.request_id, list(one.new_token_ids), one.finish_reason) for one in first] == [
        ("short", [7], FinishReason.LENGTH),
        ("long", [7], None),
    ]
    assert [one.request_id for one in second] == ["long"]


async def test_a_request_that_is_gone_gets_none() -> None:
    core = CoreStandIn(token=7, logits_width=96, steps_per_s=1000)
    await core.add_request_async(request("gone", 9))
    await core.add_request_async(request("here", 9))
    await core.abort_requests_async(["gone", "never there"])
    assert [one.request_id for one in (await core.get_output_async()).outputs] == ["here"]


async def test_probabilities_are_told_to_who_asks() -> None:
    core = CoreStandIn(token=7, logits_width=96, steps_per_s=1000)
    await core.add_request_async(request("told", 9, logprobs=1))
    (output,) = (await core.get_output_async()).outputs
    assert output.new_logprobs is not None
    assert output.new_logprobs.logprob_token_ids.tolist() == [[7, 7]]
