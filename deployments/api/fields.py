"""The top-level fields of requests: those that the engine hears (vLLM 0.32: `entrypoints/openai/*/protocol.py`), those of OpenAI's API that
change no answer here, and a warning for each of the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from grammar_service.schema.pointer import join
from grammar_service.warning import ConstraintWarning, meant
from model_service.messages import Endpoint

UNKNOWN_FIELD = "unknown_field"
SHOWN = 60
"""Characters of an unknown name that a warning repeats."""

_BOTH = frozenset(
    "add_special_tokens allowed_token_ids bad_words cache_salt ec_transfer_params echo frequency_penalty ignore_eos "
    "include_stop_str_in_output kv_transfer_params length_penalty logit_bias logprob_token_ids logprobs max_tokens min_p min_tokens "
    "mm_payload model n presence_penalty priority prompt_logprobs repetition_detection repetition_penalty request_id response_format "
    "return_mm_kwargs return_token_ids return_token_offsets return_tokens_as_token_ids routed_experts_prompt_start seed session_id "
    "skip_special_tokens spaces_between_special_tokens stop stop_token_ids stream stream_interval stream_options structured_outputs "
    "temperature thinking_token_budget top_k top_p truncate_prompt_tokens truncation_side use_beam_search user vllm_xargs "
    "watermarking".split()
)
HEARD = {
    Endpoint.CHAT: _BOTH
    | frozenset(
        "add_generation_prompt chat_template chat_template_kwargs continue_final_message documents include_reasoning "
        "max_completion_tokens media_io_kwargs messages mm_processor_kwargs parallel_tool_calls reasoning_effort return_prompt_text "
        "tool_choice tools top_logprobs".split()
    ),
    Endpoint.COMPLETION: _BOTH | frozenset("prompt prompt_embeds suffix".split()),
}
WITHOUT_EFFECT = frozenset(
    "metadata prediction prompt_cache_key prompt_cache_options prompt_cache_retention safety_identifier service_tier store".split()
)
"""They keep books, cache and bill elsewhere: an answer without them is the same answer."""


def unheard(endpoint: Endpoint, body: Mapping[str, Any]) -> Iterator[ConstraintWarning]:
    """A warning for each field of `body` that nobody reads; `null` asks for nothing."""
    for name, value in body.items():
        if value is not None and name not in HEARD[endpoint] and name not in WITHOUT_EFFECT:
            shown = name[:SHOWN]
            message = f"'{shown}' is not a field of this request and was not heard."
            yield ConstraintWarning(UNKNOWN_FIELD, join("", shown), message, meant(shown, HEARD[endpoint]))
