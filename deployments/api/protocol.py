"""From the bytes of an OpenAI request to a call for the engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from itertools import chain
from typing import Any
from uuid import uuid4

import msgspec

from deployments.access.caller import ANYBODY, Caller, Scope
from deployments.access.charges import COMPLETION_TOKENS
from deployments.api.bounds.request_limits import check_echoed_prompts, longest_answer, requests_logprobs, sequences_of
from deployments.api.confidence import FIELD, FieldConfidence, take_field_confidence
from deployments.api.lookahead import LOOKAHEAD, take_lookahead
from deployments.api.request_fields.kinds import LONGEST_NAME, FieldRules
from deployments.api.request_fields.table import NO_EFFECT, allowed_fields, ignored_fields
from deployments.constraints.defaults import CHECK, ConstraintDefaults
from deployments.constraints.forms import FORMAT, NamedGrammar, Requested, take_constraint, wrap_in_model_format
from deployments.errors import ApiError, bad_request, over_limit
from grammar_service.spec import GrammarKind
from grammar_service.warning import ConstraintWarning, first
from model_service.lookahead.request import Lookahead
from model_service.messages import CLOSE_ARGUMENT, GENERATING, MOST_ARGUMENT, Endpoint

MARK_FORCED = "mark_forced"
"""The request field that asks for the spans of forced text."""
CLOSE_AT_LIMIT = "close_at_limit"
"""The request field that asks for a constrained answer that is complete within its `max_tokens`."""
UNENFORCEABLE = "unenforceable"
"""The request field that says what to do with assertions that no backend enforces."""
IGNORE_EOS = "ignore_eos"
FORMAT_HAS_NO_EFFECT = ConstraintWarning(
    NO_EFFECT, f"/{FORMAT}", f"'{FORMAT}' has no effect: the answer is a call, whose arguments keep to its tool."
)
MAX_TEXT_BYTES, MAX_NAMED_TEXT_BYTES = 512 << 10, 128 << 10
"""JSON of a request to `/tokenize`, and of one with `return_token_strs`. A text may have as many tokens as bytes. A replica's event loop
takes 0.2 us to write each, or 0.4 us with its text."""
EXTRA = "vllm_xargs"
PRIORITY = "priority"
EMBEDDINGS = "prompt_embeds"


@dataclass(frozen=True)
class ParsedRequest:
    """`body` is what the engine gets, and computes in so many `sequences`: the client's, less its constraint. `check`: what no backend
    enforces of the constraint is to be checked in the end, where that can be done. `wished`: the grammars of the look-ahead's reward, by
    their numbers. `confidence`: the answer gets a `field_confidence`."""

    endpoint: Endpoint
    request_id: str
    body: dict[str, Any]
    requested: Requested | NamedGrammar | None
    sequences: int = 1
    mark_forced: bool = False
    check: bool = False
    warnings: tuple[ConstraintWarning, ...] = ()
    lookahead: Lookahead | None = None
    wished: tuple[Requested | NamedGrammar, ...] = ()
    confidence: FieldConfidence | None = None

    @property
    def seats(self) -> int:
        """Sequences that the engine computes at a time. A look-ahead computes `k` candidates for each."""
        return self.sequences * (1 if self.lookahead is None else self.lookahead.parameters.k)

    @property
    def stream(self) -> bool:
        return self.body.get("stream") is True

    @property
    def can_be_checked(self) -> bool:
        """Only what is the whole answer: the arguments of tools come out of parsers, and named grammars are enforced since they have their
        names."""
        asked = self.requested
        return isinstance(asked, Requested) and asked.spec.kind is GrammarKind.JSON_SCHEMA and asked.field != "tools"


@dataclass(frozen=True)
class RequestReader:
    """Reads requests for one served model, and for `adapters` to it. `thresholds`: by their names, of look-aheads that say nothing of
    them."""

    served_name: str
    tool_parser: str | None
    defaults: ConstraintDefaults
    rules: FieldRules = field(default_factory=FieldRules)
    adapters: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict)
    reasoning_parser: str | None = None

    def read(self, endpoint: Endpoint, body: Mapping[str, Any], caller: Caller = ANYBODY) -> ParsedRequest:
        """Raises ApiError, which says which field to mend."""
        model = self._model(body.get("model"))
        limits = caller.bounds.within(self.rules.limits)
        copied = {**allowed_fields(endpoint, body, replace(self.rules, limits=limits)), "model": model}
        if endpoint not in GENERATING:
            _check_text(endpoint, copied)
            return ParsedRequest(endpoint, uuid4().hex, copied, None, warnings=first(ignored_fields(endpoint, body)))
        if endpoint is Endpoint.CHAT and "messages" not in copied:
            raise bad_request("'messages' must be an array of at least one message.", "messages")
        sequences = sequences_of(endpoint, copied, limits)
        check = _take_check(copied, self.defaults.check)
        confidence = take_field_confidence(endpoint, copied)
        check_echoed_prompts(copied)
        fitting = longest_answer(endpoint, copied, sequences, limits)
        has_format = isinstance(copied.get(FORMAT), dict) and copied[FORMAT].get("type") != "text"
        requested = take_constraint(copied, self.defaults, self.tool_parser)
        dropped: list[ConstraintWarning] = []
        if has_format and requested is not None and requested.field == "tools":
            dropped.append(FORMAT_HAS_NO_EFFECT)
        if requested is not None:
            if endpoint is Endpoint.CHAT:
                requested = wrap_in_model_format(requested, self.reasoning_parser, self.tool_parser)
            _check_compatible(copied)
            dropped.extend(_drop_ignore_eos(copied))
        self._check_priority(copied, caller)
        self._check_embeddings(copied)
        if (most := min(filter(None, (caller.bounds.max_tokens, fitting)), default=None)) is not None:
            _bound_answer(endpoint, copied, most)
        mark_forced = copied.pop(MARK_FORCED, False)
        if confidence is not None and copied.get(LOOKAHEAD) is not None:
            raise bad_request(f"'{FIELD}' cannot be combined with '{LOOKAHEAD}'.", FIELD, "unsupported_parameter")
        if copied.pop(CLOSE_AT_LIMIT, False):
            dropped.extend(_close_at_limit(copied, requested))
        lookahead, wished = take_lookahead(copied, self.defaults, self.thresholds)
        if lookahead is not None and sequences * lookahead.parameters.k > limits.max_sequences:
            message = f"A request may have {limits.max_sequences} sequences; {sequences} with 'k' of {lookahead.parameters.k} have more."
            raise over_limit("lookahead.k", message)
        warnings = first(chain(dropped, ignored_fields(endpoint, body)))
        return ParsedRequest(
            endpoint, uuid4().hex, copied, requested, sequences, mark_forced, check, warnings, lookahead, wished, confidence
        )

    def _model(self, name: Any) -> str:
        if name in (None, ""):  # as vLLM's own server, and as clients send that know only one model
            return self.served_name
        names = (self.served_name, *self.adapters)
        if name not in names:
            shown = name[:LONGEST_NAME] if isinstance(name, str) else "that is no text"
            raise ApiError(
                HTTPStatus.NOT_FOUND,
                f"The model {shown!r} does not exist; this server has {', '.join(map(repr, names))}.",
                code="model_not_found",
                param="model",
            )
        return str(name)

    def _check_priority(self, body: Mapping[str, Any], caller: Caller) -> None:
        if body.get(PRIORITY) in (None, 0):  # as all have it
            return
        if not self.rules.has_priorities:
            message = f"'{PRIORITY}' has no meaning here: the engine schedules requests as they come."
            raise bad_request(message, PRIORITY, "unsupported_parameter")
        caller.require(Scope.PRIORITY, PRIORITY)

    def _check_embeddings(self, body: Mapping[str, Any]) -> None:
        if EMBEDDINGS in body and not self.rules.takes_embeddings:
            message = f"'{EMBEDDINGS}' needs the setting model.engine_args.enable_prompt_embeds."
            raise bad_request(message, EMBEDDINGS, "unsupported_parameter")


def _check_text(endpoint: Endpoint, body: Mapping[str, Any]) -> None:
    """Whether there is one for the tokenizer."""
    names = ("tokens",) if endpoint is Endpoint.DETOKENIZE else ("messages", "prompt")
    if len([name for name in names if name in body]) != 1:
        raise bad_request(f"The request must have {' or '.join(map(repr, names))}.", names[0])
    most = MAX_NAMED_TEXT_BYTES if body.get("return_token_strs") else MAX_TEXT_BYTES
    if endpoint is Endpoint.TOKENIZE and len(msgspec.json.encode(body)) > most:
        raise over_limit(next(name for name in names if name in body), f"A text of which tokens are made may have {most >> 10} KiB.")


def _bound_answer(endpoint: Endpoint, body: dict[str, Any], most: int) -> None:
    """Also where the request does not say how long its answer may be."""
    if body.get("max_tokens") is not None or body.get("max_completion_tokens") is not None:
        return
    if endpoint is Endpoint.COMPLETION:
        body["max_tokens"] = min(COMPLETION_TOKENS, most)
    else:
        # Not as `max_tokens`: where the context has no room for so many beside the prompt, that would be refused.
        body[EXTRA] = {**body.get(EXTRA, {}), MOST_ARGUMENT: most}


def _close_at_limit(body: dict[str, Any], requested: Requested | NamedGrammar | None) -> Iterator[ConstraintWarning]:
    """Let the engine know. Raises ApiError: it cannot be combined with what else is requested."""
    if body.get(LOOKAHEAD) is not None:
        raise bad_request(f"'{CLOSE_AT_LIMIT}' cannot be combined with '{LOOKAHEAD}'.", CLOSE_AT_LIMIT, "unsupported_parameter")
    if isinstance(requested, Requested) and requested.spec.canonical:
        raise bad_request(f"'{CLOSE_AT_LIMIT}' cannot be combined with 'canonical'.", CLOSE_AT_LIMIT, "unsupported_parameter")
    body[EXTRA] = {**body.get(EXTRA, {}), CLOSE_ARGUMENT: 1}
    if requested is None:
        yield ConstraintWarning(NO_EFFECT, f"/{CLOSE_AT_LIMIT}", f"'{CLOSE_AT_LIMIT}' has no effect without a constraint.")


def _take_check(body: dict[str, Any], default: bool) -> bool:
    """Not for answers with their prompt or log probabilities, which are many times as long: to check one, all of it is parsed."""
    value = body.pop(UNENFORCEABLE, None)
    beside = next((name for name in ("echo", "logprobs") if requests_logprobs(body.get(name))), None)
    if value == CHECK and beside is not None:
        raise bad_request(f"'{beside}' cannot be combined with '{UNENFORCEABLE}': '{CHECK}'.", beside, "conflicting_constraints")
    return (default if value is None else value == CHECK) and beside is None


def _check_compatible(body: dict[str, Any]) -> None:
    # They may leave a constraint no token.
    for name in ("allowed_token_ids", "bad_words"):
        if body.get(name):
            raise bad_request(f"'{name}' cannot be combined with a constraint.", name, "conflicting_constraints")
    if body.get("min_tokens"):
        raise bad_request("'min_tokens' cannot be combined with a constraint.", "min_tokens", "conflicting_constraints")


def _drop_ignore_eos(body: dict[str, Any]) -> Iterator[ConstraintWarning]:
    """Benchmark clients send it with every request, vLLM's own among them; a constraint decides by itself where its answer may end."""
    if body.get(IGNORE_EOS) is True:
        del body[IGNORE_EOS]
        yield ConstraintWarning(NO_EFFECT, f"/{IGNORE_EOS}", f"'{IGNORE_EOS}' has no effect beside a constraint: its end ends the answer.")
