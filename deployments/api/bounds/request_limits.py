"""What one request may ask for in all, and how many entries its fields may have, judged before any of them is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from deployments.access.charges import prompts_of
from deployments.api.request_fields.kinds import BoundedTexts, Entries, Table, check_count
from deployments.api.request_fields.table import FIELDS
from deployments.config import LimitSettings
from deployments.errors import bad_request, over_limit
from model_service.messages import Endpoint

MOST_ECHOED = 256 << 10
"""Bytes of the prompt's JSON, times `n`. A token has a byte at least, and 262,144 token ids take 8 ms to read and write, and 9 MiB."""


def sequences_of(endpoint: Endpoint, body: Mapping[str, Any], limits: LimitSettings) -> int:
    """How many sequences a request makes the engine compute. Raises ApiError: more than the limits allow."""
    prompts = 1 if endpoint is Endpoint.CHAT else prompts_of(body)
    sequences: int = body.get("n", 1) * max(1, prompts)
    if sequences > limits.max_sequences:
        field = "prompt" if prompts > limits.max_sequences else "n"
        raise over_limit(field, f"A request may have {limits.max_sequences} answers ('n' of each prompt); this one asks for {sequences}.")
    return sequences


def check_echoed_prompts(body: Mapping[str, Any]) -> None:
    """Each of `n` answers has its whole prompt, and one process holds them all. Raises ApiError: that is too much."""
    if body.get("n", 1) == 1 or not any(body.get(name) for name in ("echo", "return_token_ids", "return_prompt_text")):
        return
    if body["n"] * len(msgspec.json.encode([body.get("prompt"), body.get("messages")])) > MOST_ECHOED:
        raise over_limit("n", f"'n' answers that include their prompt may have {MOST_ECHOED >> 10} KiB of it in all: lower 'n'.")


def longest_answer(endpoint: Endpoint, body: Mapping[str, Any], sequences: int, limits: LimitSettings) -> int | None:
    """How many tokens an answer may have for the log probabilities that come with each; None: as many as without.

    Raises:
        ApiError: it asks for more tokens, or for log probabilities of its prompt, which the limits do not allow.
    """
    for field, asked in _of_prompt(endpoint, body).items():
        if asked is not None:
            _check_prompt_logprobs(field, asked, limits)
    if (each := _values_of_a_token(endpoint, body)) == 0:
        return None
    most = max(1, limits.max_logprob_values // (each * sequences))
    asked = body.get("max_completion_tokens", body.get("max_tokens"))
    if asked is not None and asked > most:
        field = "max_tokens" if "max_completion_tokens" not in body else "max_completion_tokens"
        message = (
            f"A request may ask for {limits.max_logprob_values} log probabilities in all; with {each} a token in {sequences} answers, "
            f"'{field}' may be {most} at most."
        )
        raise over_limit(field, message)
    return most


LARGE_BODY = 16 << 10
"""Bytes. Larger bodies are processed in a thread, since some take tenths of a second. The worst of this size takes 10 ms."""


def requests_logprobs(value: Any) -> bool:
    """Whether a value of `logprobs` or `prompt_logprobs` asks for any. 0 does: for those of the tokens themselves."""
    return value is not None and value is not False


def check_counts(raw: bytes, limits: LimitSettings) -> None:
    """Judges the entries of fields before any of them is built: JSON is skipped ten times as fast as it is read.

    Raises:
        ApiError: a field has more of them than `limits` allow.
        ValueError: it is not JSON, or no object. RecursionError: it is nested too deep for that.
    """
    found = _FIELDS.decode(raw)
    for name, most in _COUNTED.items():
        counter = _COUNTERS.get(bytes(memoryview(value := getattr(found, name))[:1]))
        if value and counter is not None:
            check_count(name, len(counter.decode(value)), most, limits)


def _of_prompt(endpoint: Endpoint, body: Mapping[str, Any]) -> dict[str, int | None]:
    """By field, how many log probabilities a token of the prompt gets. With `echo` they are those of the answer's tokens; in a chat, vLLM
    computes them also where the request asks for none."""
    echoed = body.get("top_logprobs", 0) if endpoint is Endpoint.CHAT else body.get("logprobs")
    return {"prompt_logprobs": body.get("prompt_logprobs"), "echo": echoed if body.get("echo") else None}


def _check_prompt_logprobs(field: str, asked: int, limits: LimitSettings) -> None:
    if limits.max_prompt_logprobs is None:
        message = f"'{field}': log probabilities of prompts are off here; the setting limits.max_prompt_logprobs turns them on."
        raise bad_request(message, field, "unsupported_parameter")
    if asked > limits.max_prompt_logprobs:
        raise over_limit(field, f"A token of a prompt may have {limits.max_prompt_logprobs} log probabilities; '{field}' asks for {asked}.")


def _values_of_a_token(endpoint: Endpoint, body: Mapping[str, Any]) -> int:
    if not (body.get("logprobs") if endpoint is Endpoint.CHAT else body.get("logprobs") is not None):
        return 0
    most: int = body.get("top_logprobs", 0) if endpoint is Endpoint.CHAT else body["logprobs"]
    return 1 + max(most, len(body.get("logprob_token_ids", ())))


_COUNTED = {"messages": "max_messages"} | {
    row.name: row.kind.most for row in FIELDS if isinstance(row.kind, Entries | Table | BoundedTexts) and isinstance(row.kind.most, str)
}
_FIELDS = msgspec.json.Decoder(msgspec.defstruct("Fields", [(name, msgspec.Raw, msgspec.Raw()) for name in _COUNTED]))
_COUNTERS: dict[bytes, msgspec.json.Decoder[Any]] = {
    b"[": msgspec.json.Decoder(list[msgspec.Raw]),
    b"{": msgspec.json.Decoder(dict[str, msgspec.Raw]),
}
