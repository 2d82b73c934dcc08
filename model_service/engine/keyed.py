"""An `AsyncLLM` whose requests carry grammar keys (vLLM 0.32: `v1/engine/async_llm.py`).

vLLM's front end validates, and for some kinds compiles, a constraint before the engine sees it. So the serving classes get
bodies without constraints, and the key, which travels in `vllm_xargs`, becomes the constraint here: a regex of plain hex
digits, which vLLM's validation passes in microseconds and our backend reads as a key.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from vllm.exceptions import VLLMValidationError
from vllm.outputs import RequestOutput
from vllm.sampling_params import SamplingParams, StructuredOutputsParams
from vllm.v1.engine.async_llm import AsyncLLM

from model_service.messages import KEY_ARGUMENT


class KeyedEngine(AsyncLLM):
    def generate(
        self, prompt: Any, sampling_params: SamplingParams, request_id: str, **options: Any
    ) -> AsyncGenerator[RequestOutput, None]:
        """As vLLM's, for a request whose only constraint is its key."""
        constrain(sampling_params)
        outputs: AsyncGenerator[RequestOutput, None] = super().generate(prompt, sampling_params, request_id, **options)
        return outputs


def constrain(params: SamplingParams) -> None:
    """Turn the key among the extra arguments into the constraint, in place of whatever vLLM derived from tools.

    Raises:
        VLLMValidationError: a constraint without a key came this far; it must not run unenforced.
    """
    extra = dict(params.extra_args or {})
    key = extra.pop(KEY_ARGUMENT, None)
    if key is None and params.structured_outputs is not None:
        raise VLLMValidationError("the request carries a constraint that the grammar service has not compiled")
    if key is not None:
        params.extra_args = extra or None
        params.structured_outputs = StructuredOutputsParams(regex=str(key))
