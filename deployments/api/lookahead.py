"""The request field `lookahead`, and what cannot go with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from deployments.api.bounds.request_limits import requests_logprobs
from deployments.constraints.defaults import ConstraintDefaults
from deployments.constraints.forms import NamedGrammar, Requested, take_constraint
from deployments.errors import ApiError, bad_request
from model_service.errors import InvalidLookahead
from model_service.lookahead.request import Lookahead, read
from model_service.lookahead.rewards.specs import MOST_DEPTH, MOST_GRAMMARS

LOOKAHEAD, REWARD, CONSTRAINT = "lookahead", "reward", "structured_outputs"
Wished: TypeAlias = tuple[Requested | NamedGrammar, ...]
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
    "thinking_token_budget",
    "repetition_detection",
    "watermarking",
    "prompt_embeds",
    "echo",
)


def take_lookahead(body: dict[str, Any], defaults: ConstraintDefaults, thresholds: Mapping[str, float]) -> tuple[Lookahead | None, Wished]:
    """Take the field out of a body, with the grammars of its reward, by their numbers. `thresholds` are for those that say nothing of them.
    Raises ApiError."""
    asked = body.pop(LOOKAHEAD, None)
    if asked is None:
        return None, ()
    if not isinstance(asked, Mapping):
        raise bad_request(f"'{LOOKAHEAD}' must be an object.", LOOKAHEAD)
    _check_compatible(body)
    seed, wished = body.get("seed"), list[Requested | NamedGrammar]()
    tree = {name: _numbered(value, f"{LOOKAHEAD}.{REWARD}", defaults, wished) if name == REWARD else value for name, value in asked.items()}
    try:
        return read({**_fitting(thresholds, asked), **tree}, seed if isinstance(seed, int) else 0), tuple(wished)
    except InvalidLookahead as error:
        place = ".".join(filter(None, (LOOKAHEAD, error.field)))
        raise bad_request(f"'{place}': {error.message}", place) from None


def _fitting(thresholds: Mapping[str, float], asked: Mapping[str, Any]) -> dict[str, float]:
    """Nobody asked for a b that is more than d."""
    d = asked.get("d")
    return {name: min(value, d) if name == "b" and isinstance(d, int) and d > 0 else value for name, value in thresholds.items()}


def _numbered(tree: Any, place: str, defaults: ConstraintDefaults, wished: list[Requested | NamedGrammar], depth: int = 0) -> Any:
    """A reward whose grammars are numbers. What else is at fault with it is not told here."""
    kind = tree.get("type") if isinstance(tree, Mapping) else None
    if kind == "grammar":
        if len(wished) == MOST_GRAMMARS:
            raise bad_request(f"'{place}': a reward has at most {MOST_GRAMMARS} grammars.", place)
        wished.append(_wished({name: value for name, value in tree.items() if name != "type"}, place, defaults))
        return {"type": kind, "number": len(wished) - 1}
    if kind != "sum" or depth == MOST_DEPTH or not isinstance(terms := tree.get("terms"), list):
        return tree

    def numbered(term: Any, place: str) -> Any:
        if not isinstance(term, Mapping) or REWARD not in term:
            return term
        return {**term, REWARD: _numbered(term[REWARD], f"{place}.{REWARD}", defaults, wished, depth + 1)}

    return {**tree, "terms": [numbered(term, f"{place}.terms[{number}]") for number, term in enumerate(terms)]}


def _wished(options: dict[str, Any], place: str, defaults: ConstraintDefaults) -> Requested | NamedGrammar:
    """As `structured_outputs` with the same fields."""
    try:
        found = take_constraint({CONSTRAINT: options}, defaults, tool_parser=None)
    except ApiError as error:
        raise bad_request(error.message.replace(CONSTRAINT, place), (error.param or place).replace(CONSTRAINT, place)) from None
    assert found is not None, "a constraint is read, or refused"
    return replace(found, field=found.field.replace(CONSTRAINT, place))


def _check_compatible(body: Mapping[str, Any]) -> None:
    for name in _NOT_WITH:
        if body.get(name) or (name in ("logprobs", "prompt_logprobs") and requests_logprobs(body.get(name))):
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
