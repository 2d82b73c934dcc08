"""From the bytes of an OpenAI request to a call for the engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import chain
from typing import Any
from uuid import uuid4

from deployments.access.caller import ANYBODY, Caller, Scope
from deployments.access.charges import COMPLETION_TOKENS
from deployments.api.bounds.request_limits import check_limits
from deployments.api.conversation import check_messages
from deployments.api.fields import unheard
from deployments.api.lookahead import take_lookahead
from deployments.config import LimitSettings
from deployments.constraints.defaults import CHECK, REFUSE, ConstraintDefaults
from deployments.constraints.forms import NamedGrammar, Requested, take_constraint
from deployments.errors import ApiError, bad_request
from grammar_service.spec import GrammarKind
from grammar_service.warning import ConstraintWarning, first
from model_service.lookahead.request import Lookahead
from model_service.messages import MOST_ARGUMENT, OUR_ARGUMENTS, Endpoint

MARK_FORCED = "mark_forced"
"""The request field that asks for the spans of forced text."""
UNENFORCEABLE = "unenforceable"
"""The request field that says what to do with assertions that no backend enforces."""
IGNORE_EOS = "ignore_eos"
EXTRA = "vllm_xargs"
PRIORITY = "priority"
NO_EFFECT = "no_effect"
# Each would loosen or bypass the constraint, or reach into the engine: the last two are arguments of its readers of images.
REFUSED = ("kv_transfer_params", "ec_transfer_params", "mm_processor_kwargs", "media_io_kwargs")
REFUSED_BY_ENDPOINT = {
    Endpoint.CHAT: (*REFUSED, "chat_template"),
    Endpoint.COMPLETION: (*REFUSED, "suffix", "tools", "tool_choice"),
}


@dataclass(frozen=True)
class ParsedRequest:
    """`body` is what the engine gets, and computes in so many `sequences`: the client's, less its constraint. `check`: what no backend
    enforces of the constraint is to be checked in the end, where that can be done. `wished`: the grammars of the look-ahead's reward, by
    their numbers."""

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
    them. `extra`: names that `vllm_xargs` may have; `has_priorities`: the engine goes by `priority`."""

    served_name: str
    tool_parser: str
    defaults: ConstraintDefaults
    limits: LimitSettings = field(default_factory=LimitSettings)
    adapters: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict)
    extra: frozenset[str] = frozenset()
    has_priorities: bool = False

    def read(self, endpoint: Endpoint, body: Mapping[str, Any], caller: Caller = ANYBODY) -> ParsedRequest:
        """Raises ApiError, which says which field to mend."""
        copied = dict(body)
        self._check_model(copied)
        sequences = check_limits(endpoint, copied, caller.bounds.within(self.limits))
        if endpoint is Endpoint.CHAT:
            check_messages(copied.get("messages"))
        for name in REFUSED_BY_ENDPOINT[endpoint]:
            if copied.get(name) is not None:
                raise bad_request(f"'{name}' is not supported.", name, "unsupported_parameter")
        requested = take_constraint(copied, self.defaults, self.tool_parser)
        dropped: list[ConstraintWarning] = []
        if requested is not None:
            _check_compatible(copied)
            dropped.extend(_drop_ignore_eos(copied))
        self._check_priority(copied, caller)
        self._check_extra(copied.get(EXTRA))
        if caller.bounds.max_tokens is not None:
            _bound_answer(endpoint, copied, caller.bounds.max_tokens)
        mark_forced = _take_flag(copied, MARK_FORCED)
        _check_flag(copied, "stream")  # vLLM would hear "yes" and 1 as well, and stream what is taken for a whole answer here
        check = _take_check(copied, self.defaults.check)
        lookahead, wished = take_lookahead(copied, self.defaults, self.thresholds)
        warnings = first(chain(dropped, unheard(endpoint, copied)))
        return ParsedRequest(endpoint, uuid4().hex, copied, requested, sequences, mark_forced, check, warnings, lookahead, wished)

    def _check_model(self, body: dict[str, Any]) -> None:
        if body.get("model") in (None, ""):  # as vLLM's own server, and as clients send that know only one model
            body["model"] = self.served_name
        model = body["model"]
        names = (self.served_name, *self.adapters)
        if model not in names:
            raise ApiError(
                HTTPStatus.NOT_FOUND,
                f"The model {model!r} does not exist; this server has {', '.join(map(repr, names))}.",
                code="model_not_found",
                param="model",
            )

    def _check_priority(self, body: Mapping[str, Any], caller: Caller) -> None:
        if body.get(PRIORITY) in (None, 0):  # as all have it
            return
        if not self.has_priorities:
            message = f"'{PRIORITY}' has no meaning here: the engine schedules requests as they come."
            raise bad_request(message, PRIORITY, "unsupported_parameter")
        caller.require(Scope.PRIORITY, PRIORITY)

    def _check_extra(self, extra: Any) -> None:
        for name in extra if isinstance(extra, dict) else ():
            if name not in self.extra or name in REFUSED or name.startswith(OUR_ARGUMENTS):
                message = f"'{EXTRA}.{name}' is not one of those that the setting model.vllm_xargs lists."
                raise bad_request(message, EXTRA, "unsupported_parameter")


def _bound_answer(endpoint: Endpoint, body: dict[str, Any], most: int) -> None:
    """Also where the request does not say how long its answer may be."""
    if body.get("max_tokens") is not None or body.get("max_completion_tokens") is not None:
        return
    if endpoint is Endpoint.COMPLETION:
        body["max_tokens"] = min(COMPLETION_TOKENS, most)
    else:
        # Not as `max_tokens`: where the context has no room for so many beside the prompt, that would be refused.
        extra = body.get(EXTRA)
        body[EXTRA] = {**extra, MOST_ARGUMENT: most} if isinstance(extra, dict) else {MOST_ARGUMENT: most}


def _take_flag(body: dict[str, Any], name: str) -> bool:
    _check_flag(body, name)
    return bool(body.pop(name, None))


def _check_flag(body: dict[str, Any], name: str) -> None:
    if not isinstance(body.get(name), bool | None):
        raise bad_request(f"'{name}' must be true or false.", name)


def _take_check(body: dict[str, Any], default: bool) -> bool:
    value = body.pop(UNENFORCEABLE, None)
    if value not in (None, REFUSE, CHECK):
        raise bad_request(f"'{UNENFORCEABLE}' must be '{REFUSE}' or '{CHECK}'.", UNENFORCEABLE)
    if value == CHECK and body.get("echo"):
        raise bad_request(f"'echo' cannot be combined with '{UNENFORCEABLE}': '{CHECK}'.", "echo", "conflicting_constraints")
    return (default if value is None else value == CHECK) and not body.get("echo")


def _check_compatible(body: dict[str, Any]) -> None:
    # The last two may leave a constraint no token.
    for name in ("use_beam_search", "allowed_token_ids", "bad_words"):
        if body.get(name):
            raise bad_request(f"'{name}' cannot be combined with a constraint.", name, "conflicting_constraints")
    if body.get("min_tokens"):
        raise bad_request("'min_tokens' cannot be combined with a constraint.", "min_tokens", "conflicting_constraints")


def _drop_ignore_eos(body: dict[str, Any]) -> Iterator[ConstraintWarning]:
    """Benchmark clients send it with every request, vLLM's own among them; a constraint decides by itself where its answer may end."""
    if body.get(IGNORE_EOS) is True:
        del body[IGNORE_EOS]
        yield ConstraintWarning(NO_EFFECT, f"/{IGNORE_EOS}", f"'{IGNORE_EOS}' has no effect beside a constraint: its end ends the answer.")
