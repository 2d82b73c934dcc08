"""What a request may cost in tokens, what its answer did cost, and what the client is told of its limits."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from deployments.access.window import Standing, Verdict
from deployments.errors import ApiError, bad_request
from model_service.lookahead.parameters import MOST as MAX_CANDIDATES
from model_service.lookahead.parameters import Parameters
from model_service.messages import GENERATING, Endpoint
from router.turns.shares import FORCED, PROMPT, SAMPLED

MOST = 2**31
"""No request has as many tokens or answers."""
DEFAULT_CANDIDATES = Parameters().k
COMPLETION_TOKENS = 16
"""What a completion has where the request does not say (OpenAI's API, and vLLM's)."""
# Only as keys of the answer's own: inside a JSON string the quotes would be escaped.
_FORCED = re.compile(r'"forced_tokens":\s*(\d{1,9})')
_USAGE = re.compile(r'"prompt_tokens":\s*(\d{1,9}),\s*"total_tokens":\s*(\d{1,9})')
_TARGET_CALLS = re.compile(r'"target_calls":\s*(\d{1,9})')
_TOLD = {
    Verdict.CONCURRENT: ("requests under way at a time", "concurrent_requests", "requests"),
    Verdict.REQUESTS: ("requests a minute", "requests_per_minute", "requests"),
    Verdict.TOKENS: ("tokens a minute", "tokens_per_minute", "tokens"),
}


def asked_tokens(endpoint: Endpoint, body: Mapping[str, Any], prompt_tokens: int, longest: int, most: int) -> int:
    """The most that the answers to `body` may have, and the prompts' own: what is not used is given back at the end. A body that is at
    fault costs little: it is refused. `longest` is the model's context; one answer has at most `most`, also where nothing is asked. A
    look-ahead computes `k` candidates for each token."""
    if endpoint not in GENERATING:
        return prompt_tokens
    if endpoint is Endpoint.CHAT:
        prompts, usual = 1, max(0, longest - prompt_tokens)
        asked = _number(body.get("max_completion_tokens"), _number(body.get("max_tokens"), usual))
    else:
        prompts = max(1, prompts_of(body))
        asked = _number(body.get("max_tokens"), COMPLETION_TOKENS)
    return prompt_tokens + _number(body.get("n"), 1) * prompts * _candidates(body) * min(asked, longest, most)


def prompts_of(body: Mapping[str, Any]) -> int:
    """How many prompts a completion has: texts, lists of tokens, or embeddings; a list of tokens alone is one."""
    return sum(_prompts(body.get(field)) for field in ("prompt", "prompt_embeds"))


class TokenMeter:
    """Counts what a request takes of the engines: by the usage of each answer that it asks them for, and `most` for one that does not tell
    it. Nobody else knows: a client that leaves has had its tokens computed, and an event may hold any number of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._told = 0
        self._owes = False

    @property
    def tokens(self) -> int:
        return self._told + (self._most if self._owes else 0)

    def asked(self) -> None:
        """An engine has the request; once more, where another one is to make up for what the first did not do."""
        self._owes = True

    def spared(self) -> None:
        """It has computed nothing of it."""
        self._owes = False

    def piece(self, text: str) -> None:
        if self._owes and (usage := _usage(text)) is not None:
            prompt, total = usage
            self._told += max(total, prompt + _target_calls(text))
            self._owes = False


class CallCost:
    """What a call has cost the engine, in weighted tokens beyond its prompt's, which are estimated: an event of a stream is one sampled
    token of the answer, until the usage tells. Of a look-ahead, each token that the model was asked for counts as one of the answer: they
    take the same turns from others. `most` are the tokens of its answers at most, where its events do not tell how many there are."""

    def __init__(self, prompt_tokens: int, most: int = 0) -> None:
        self._prompt_tokens = prompt_tokens
        self._most = most
        self._cost = 0.0

    def piece(self, text: str) -> float:
        """How much more it is with a piece of the answer; less than nothing where too much was thought."""
        if (usage := _usage(text)) is not None:
            self._most = 0
            prompt, total = usage
            forced = min(total - prompt, int((_FORCED.findall(text) or [0])[-1]))
            sampled = max(total - prompt - forced, _target_calls(text))
            more = PROMPT * (prompt - self._prompt_tokens) + SAMPLED * sampled + FORCED * forced - self._cost
        else:
            more = SAMPLED * text.count("data: {")
        self._cost += more
        return more

    def spared(self) -> None:
        """The engine computes no answer."""
        self._most = 0

    def left(self) -> float:
        """How much more it is where nobody waits for the rest, which may all have been computed."""
        return max(0.0, SAMPLED * self._most - self._cost)


def _target_calls(text: str) -> int:
    """Tokens that the target model computed for a look-ahead; 0 without one."""
    return int((_TARGET_CALLS.findall(text) or [0])[-1])


def _usage(text: str) -> tuple[int, int] | None:
    """The tokens of the prompts, and all, as the end of an answer tells them. Events in its midst may tell those of one choice."""
    if '"usage"' not in text or (text.startswith("data: ") and '"choices":[]' not in text):
        return None
    found = _USAGE.findall(text)
    return (int(found[-1][0]), int(found[-1][1])) if found else None


def check_possible(standing_limit: int | None, cost: int) -> None:
    """Raises ApiError (400) for a request that would not fit into an empty minute."""
    if standing_limit is not None and cost > standing_limit:
        raise bad_request(
            f"The request may take {cost} tokens, and this API key has {standing_limit} a minute: lower 'max_tokens'.", "max_tokens"
        )


def refusal(standing: Standing) -> ApiError:
    """The 429 for a request that does not fit now."""
    what, name, kind = _TOLD[standing.verdict]
    limit = getattr(standing.limits, name)
    return ApiError(
        HTTPStatus.TOO_MANY_REQUESTS,
        f"This API key has {limit} {what}; try again in a moment.",
        code="rate_limit_exceeded",
        kind=kind,
        retry_after_s=max(1, math.ceil(standing.retry_after_s)),
        more_headers=headers(standing),
    )


def headers(standing: Standing) -> dict[str, str]:
    """OpenAI's; none for what has no limit."""
    rows = (
        ("requests", standing.limits.requests_per_minute, standing.remaining_requests, standing.reset_requests_s),
        ("tokens", standing.limits.tokens_per_minute, standing.remaining_tokens, standing.reset_tokens_s),
    )
    found: dict[str, str] = {}
    for name, limit, remaining, reset_s in rows:
        if limit is not None:
            found[f"x-ratelimit-limit-{name}"] = str(limit)
            found[f"x-ratelimit-remaining-{name}"] = str(remaining)
            found[f"x-ratelimit-reset-{name}"] = f"{reset_s:.3f}s"
    return found


def _prompts(value: Any) -> int:
    if isinstance(value, list):
        return 1 if value and isinstance(value[0], int) else len(value)
    return 0 if value is None else 1


def _candidates(body: Mapping[str, Any]) -> int:
    lookahead = body.get("lookahead")
    return min(MAX_CANDIDATES, _number(lookahead.get("k"), DEFAULT_CANDIDATES)) if isinstance(lookahead, Mapping) else 1


def _number(value: Any, otherwise: int) -> int:
    """A whole number over 0; requests with others are refused."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 < value < MOST else otherwise
