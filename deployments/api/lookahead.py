"""The request field `lookahead`, and what cannot go with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployments.errors import bad_request
from model_service.errors import InvalidLookahead
from model_service.lookahead.request import Lookahead, read

LOOKAHEAD = "lookahead"
# They change what a model says from token to token, which a look-ahead does not, or tell of it what would be said of another choice.
_NOT_WITH = (
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "min_p",
    "min_tokens",
    "bad_words",
    "allowed_token_ids",
    "logprobs",
    "top_logprobs",
    "prompt_logprobs",
    "logprob_token_ids",
    "return_token_offsets",
    "ignore_eos",
    "use_beam_search",
    "thinking_token_budget",
    "repetition_detection",
    "watermarking",
    "prompt_embeds",
    "echo",
)


def take_lookahead(body: dict[str, Any]) -> Lookahead | None:
    """Take the field out of a body. Raises ApiError."""
    asked = body.pop(LOOKAHEAD, None)
    if asked is None:
        return None
    if not isinstance(asked, Mapping):
        raise bad_request(f"'{LOOKAHEAD}' must be an object.", LOOKAHEAD)
    _check_compatible(body)
    seed = body.get("seed")
    try:
        return read(asked, seed if isinstance(seed, int) else 0)
    except InvalidLookahead as error:
        place = ".".join(filter(None, (LOOKAHEAD, error.field)))
        raise bad_request(f"'{place}': {error.message}", place) from None


def _check_compatible(body: Mapping[str, Any]) -> None:
    for name in _NOT_WITH:
        if body.get(name):
            raise _conflict(name)
    repetition = body.get("repetition_penalty")
    for name, holds in {
        "temperature": bool(body.get("temperature")),
        "n": body.get("n") not in (None, 1),
        "repetition_penalty": repetition not in (None, 1),
    }.items():
        if holds:
            raise _conflict(name)


def _conflict(name: str) -> Exception:
    return bad_request(f"'{name}' cannot be combined with '{LOOKAHEAD}'.", name, "unsupported_parameter")
