"""What travels in vLLM's extra arguments to an engine."""

from __future__ import annotations

import pytest
from vllm.sampling_params import SamplingParams

from model_service.engine.keyed import bound_answer
from model_service.messages import MOST_ARGUMENT


@pytest.mark.parametrize(("asked", "most", "has"), [(None, 5, 5), (2048, 5, 5), (3, 5, 3)])
def test_an_answer_is_bounded_by_what_its_key_may_have(asked: int | None, most: int, has: int) -> None:
    params = SamplingParams(max_tokens=asked, extra_args={MOST_ARGUMENT: most, "other": 1})
    bound_answer(params)
    assert (params.max_tokens, params.extra_args) == (has, {"other": 1})
    bound_answer(params)
    assert params.max_tokens == has
