"""From the bytes of an OpenAI request to a call for the engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import chain
from typing import Any
from uuid import uuid4

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
from model_service.messages import OUR_ARGUMENTS, Endpoint

MARK_FORCED = "mark_forced"
"""The request field that asks for the spans of forced text."""
UNENFORCEABLE = "unenforceable"
"""The request field that says what to do with assertions that no backend enforces."""
IGNORE_EOS = "ignore_eos"
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
    them."""

    served_name: str
    tool_parser: str
    defaults: ConstraintDefaults
    limits: LimitSettings = field(default_factory=LimitSettings)
    adapters: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict)

    def read(self, endpoint: Endpoint, body: Mapping[str, Any], request_id: str | None = None) -> ParsedRequest:
        """Raises ApiError, which says which field to mend."""
        copied = dict(body)
        self._check_model(copied)
        sequences = check_limits(endpoint, copied, self.limits)
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
        extra = copied.get("vllm_xargs")
        for name in extra if isinstance(extra, dict) else ():
            if name in REFUSED or str(name).startswith(OUR_ARGUMENTS):
                raise bad_request(f"'vllm_xargs.{name}' is reserved.", "vllm_xargs")
        mark_forced = _take_flag(copied, MARK_FORCED)
        _check_flag(copied, "stream")  # vLLM would hear "yes" and 1 as well, and stream what is taken for a whole answer here
        check = _take_check(copied, self.defaults.check)
        lookahead, wished = take_lookahead(copied, self.defaults, self.thresholds)
        warnings = first(chain(dropped, unheard(endpoint, copied)))
        return ParsedRequest(
            endpoint, request_id or uuid4().hex, copied, requested, sequences, mark_forced, check, warnings, lookahead, wished
        )

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
