"""What one request may ask for: a table of fields, and one function that judges a body by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from deployments.config import LimitSettings
from deployments.errors import ApiError, bad_request
from model_service.messages import Endpoint

OVER_LIMIT = "over_limit"
ALL_OF_THEM = -1
"""What asks vLLM (0.32: `sampling_params.py`) for the log-probabilities of the whole vocabulary."""


def check_limits(endpoint: Endpoint, body: Mapping[str, Any], limits: LimitSettings) -> int:
    """How many sequences the request makes the engine compute, at least 1.

    Raises:
        ApiError: it asks for more than `limits` allow, or for a number that is none; `param` names the field.
    """
    for limit in TABLE:
        most, value = limit.most(limits), body.get(limit.field)
        if most is not None and value is not None and limit.measure(value, limit.field) > most:
            raise over_limit(limit.field, f"'{limit.field}' {limit.says.format(most)}")
    prompts = 1 if endpoint is Endpoint.CHAT else prompts_of(body)
    sequences = max(1, _number(body.get("n") or 1, "n")) * max(1, prompts)
    if sequences > limits.max_sequences:
        field = "prompt" if prompts > limits.max_sequences else "n"
        raise over_limit(field, f"A request may have {limits.max_sequences} answers ('n' of each prompt); this one asks for {sequences}.")
    return sequences


def check_counts(raw: bytes, limits: LimitSettings) -> None:
    """Judges the entries of fields, as `check_limits` does, before any of them is built: JSON is skipped ten times as fast as it is read.

    Raises:
        ApiError: a field has more of them than `limits` allow.
        ValueError: it is not JSON, or no object. RecursionError: it is nested too deep for that.
    """
    found = _FIELDS.decode(raw)
    for limit in _COUNTED:
        value, most = getattr(found, limit.field), limit.most(limits)
        counter = _COUNTERS.get(bytes(memoryview(value)[:1]))
        if most is not None and counter is not None and len(counter.decode(value)) > most:
            raise over_limit(limit.field, f"'{limit.field}' {limit.says.format(most)}")


def prompts_of(body: Mapping[str, Any]) -> int:
    """How many prompts a completion has: texts, lists of tokens, or embeddings; a list of tokens alone is one."""
    return sum(_prompts(body.get(field)) for field in ("prompt", "prompt_embeds"))


def over_limit(field: str, message: str) -> ApiError:
    return bad_request(message, field, OVER_LIMIT)


@dataclass(frozen=True, slots=True)
class _Limit:
    """`most` None: no limit is set. `says` completes a sentence that begins with the field's name, with the limit in it."""

    field: str
    most: Callable[[LimitSettings], int | None]
    measure: Callable[[Any, str], int]
    says: str


def _prompts(value: Any) -> int:
    if isinstance(value, list):
        return 1 if value and isinstance(value[0], int) else len(value)
    return 0 if value is None else 1


def _count(value: Any, _: str) -> int:
    """Of entries; what cannot have any is for others to refuse."""
    return len(value) if isinstance(value, list | dict) else 1


def _number(value: Any, field: str) -> int:
    # vLLM would take the text "1000" for a number, too.
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        raise bad_request(f"'{field}' must be a whole number.", field)
    return int(value)


def _logprobs(value: Any, field: str) -> int:
    """Of one position; in chat requests `logprobs` only says whether there are any."""
    if isinstance(value, bool):
        return 0
    asked = _number(value, field)
    return 1 << 62 if asked == ALL_OF_THEM else asked


_ENTRIES = "may have {} entries at most."
_AT_MOST = "may be {} at most."
TABLE = (
    _Limit("messages", lambda limits: limits.max_messages, _count, _ENTRIES),
    _Limit("tools", lambda limits: limits.max_tools, _count, _ENTRIES),
    _Limit("max_tokens", lambda limits: limits.max_tokens, _number, _AT_MOST),
    _Limit("max_completion_tokens", lambda limits: limits.max_tokens, _number, _AT_MOST),
    _Limit("logprobs", lambda limits: limits.max_logprobs, _logprobs, _AT_MOST),
    _Limit("top_logprobs", lambda limits: limits.max_logprobs, _logprobs, _AT_MOST),
    _Limit("prompt_logprobs", lambda limits: limits.max_logprobs, _logprobs, _AT_MOST),
    _Limit("logit_bias", lambda limits: limits.max_logit_bias, _count, _ENTRIES),
    _Limit("allowed_token_ids", lambda limits: limits.max_logit_bias, _count, _ENTRIES),
    _Limit("logprob_token_ids", lambda limits: limits.max_logprobs, _count, _ENTRIES),
    _Limit("stop", lambda limits: limits.max_stop, _count, _ENTRIES),
    _Limit("stop_token_ids", lambda limits: limits.max_stop, _count, _ENTRIES),
    _Limit("bad_words", lambda limits: limits.max_stop, _count, _ENTRIES),
)
_COUNTED = tuple(limit for limit in TABLE if limit.measure is _count)
_FIELDS = msgspec.json.Decoder(msgspec.defstruct("Fields", [(limit.field, msgspec.Raw, msgspec.Raw()) for limit in _COUNTED]))
_COUNTERS: dict[bytes, msgspec.json.Decoder[Any]] = {
    b"[": msgspec.json.Decoder(list[msgspec.Raw]),
    b"{": msgspec.json.Decoder(dict[str, msgspec.Raw]),
}
