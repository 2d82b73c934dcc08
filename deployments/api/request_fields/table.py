"""The request fields of each endpoint, and what becomes of them: the engine gets the forwarded ones, and nothing else. vLLM 0.32
reads those of `entrypoints/openai/*/protocol.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any

from deployments.api.request_fields.kinds import (
    INT64,
    LONGEST_NAME,
    Anything,
    BoundedTexts,
    Entries,
    FieldRules,
    Flag,
    Integer,
    Kind,
    ListedArguments,
    Messages,
    Number,
    OneOf,
    Prompt,
    Record,
    Table,
    Text,
)
from deployments.constraints.forms import FIELDS_OF_CONSTRAINTS
from deployments.errors import bad_request
from grammar_service.schema.pointer import join
from grammar_service.warning import MOST, ConstraintWarning, meant
from model_service.messages import GENERATING, Endpoint

UNKNOWN_FIELD = "unknown_field"
NO_EFFECT = "no_effect"
OLDER_CONSTRAINTS = "guided_"
"""What the names of vLLM's older constraints begin with. None is dropped: their reader refuses those that it does not know."""


class Treatment(StrEnum):
    """Of a field: the engine gets it; Maskcast reads it, and the engine does not get it; it changes no answer; it is passed over with a
    warning; it is a 400."""

    FORWARDED = "forwarded"
    READ = "read"
    SILENT = "no effect"
    WARNED = "ignored with a warning"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class RequestField:
    """`note`: what a field needs, or why it is refused or ignored, and what to use in its place."""

    name: str
    kind: Kind
    treatment: Treatment = Treatment.FORWARDED
    note: str = ""
    endpoints: tuple[Endpoint, ...] = GENERATING


CHAT, COMPLETION = (Endpoint.CHAT,), (Endpoint.COMPLETION,)
TOKENIZE, DETOKENIZE = (Endpoint.TOKENIZE,), (Endpoint.DETOKENIZE,)
MAX_DETOKENIZED = 1 << 17
"""Token ids in a request to `/detokenize`. vLLM's renderer has one thread, in which so many take 0.1 s."""
_LOG_PROBABILITIES = Integer(0, "max_logprobs")
_TOKENS = Integer(0)
_EMBEDDINGS = Entries(Text(None), 8, alone=True)
"""vLLM decodes all of them, up to 64 MiB each, before it checks any length."""
_ANY = Anything("any")
MOST_BAD_BYTES = 512
"""vLLM bans each word with and without a leading space, a token has at least a byte, and the engine core ends if a request bans more than
1,024 tokens (vLLM 0.32: `v1/worker/gpu/sample/bad_words.py`)."""
_RENDERING = "only vLLM's rendering endpoints have it"
_ENGINE = "reaches into the engine"
_MEDIA = "reaches into the engine's readers of media"

_FORWARDED = (
    RequestField("model", Anything("text"), note="the served model or one of its adapters", endpoints=tuple(Endpoint)),
    RequestField("messages", Messages(), endpoints=CHAT + TOKENIZE),
    RequestField("prompt", Prompt(), endpoints=COMPLETION),
    RequestField("prompt", Text(None), endpoints=TOKENIZE),
    RequestField("tokens", Entries(_TOKENS, MAX_DETOKENIZED), endpoints=DETOKENIZE),
    RequestField("return_token_strs", Flag(), endpoints=TOKENIZE),
    RequestField("prompt_embeds", _EMBEDDINGS, note="needs `engine_args.enable_prompt_embeds`", endpoints=COMPLETION),
    RequestField("max_tokens", Integer(0, "max_tokens")),
    RequestField("max_completion_tokens", Integer(0, "max_tokens"), endpoints=CHAT),
    RequestField("min_tokens", Integer(0), note="not beside a constraint"),
    RequestField("n", Integer(1, "max_sequences"), note="times the prompts: `limits.max_sequences`"),
    RequestField("stream", Flag()),
    RequestField("stream_options", Record({name: Flag() for name in ("include_usage", "continuous_usage_stats", "include_obfuscation")})),
    RequestField("stream_interval", Integer(1, 10_000)),
    RequestField("temperature", Number(0, 2)),
    RequestField("top_p", Number(0, 1)),
    RequestField("top_k", Integer(-1)),
    RequestField("min_p", Number(0, 1)),
    RequestField("seed", Integer(-INT64 - 1, INT64)),
    RequestField("frequency_penalty", Number(-2, 2)),
    RequestField("presence_penalty", Number(-2, 2)),
    RequestField("repetition_penalty", Number(0.01, 100)),
    RequestField("logit_bias", Table(Number(-100, 100), "max_logit_bias", numbered=True)),
    RequestField("allowed_token_ids", Entries(_TOKENS, "max_logit_bias"), note="not beside a constraint"),
    RequestField("bad_words", BoundedTexts("max_stop", MOST_BAD_BYTES), note="not beside a constraint"),
    RequestField("stop", Entries(Text(), "max_stop", alone=True)),
    RequestField("stop_token_ids", Entries(_TOKENS, "max_stop")),
    RequestField("include_stop_str_in_output", Flag()),
    RequestField("ignore_eos", Flag(), note="no effect beside a constraint"),
    RequestField("logprobs", Flag(), endpoints=CHAT),
    RequestField("logprobs", _LOG_PROBABILITIES, endpoints=COMPLETION),
    RequestField("top_logprobs", _LOG_PROBABILITIES, endpoints=CHAT),
    RequestField("logprob_token_ids", Entries(_TOKENS, "max_logprobs")),
    RequestField("prompt_logprobs", Integer(0, "max_prompt_logprobs"), note="needs `limits.max_prompt_logprobs`"),
    RequestField("echo", Flag(), note="of a chat, and beside `logprobs` of a completion: needs `limits.max_prompt_logprobs`"),
    RequestField(
        "repetition_detection",
        Record({"max_pattern_size": Integer(0, 64), "min_pattern_size": Integer(0, 64), "min_count": Integer(0, 16)}),
    ),
    RequestField("thinking_token_budget", Integer(-1)),
    RequestField("watermarking", Flag()),
    RequestField("tools", Entries(_ANY, "max_tools"), endpoints=CHAT + TOKENIZE),
    RequestField("tool_choice", Anything("`none`, `auto`, `required`, or a named function"), endpoints=CHAT),
    RequestField("parallel_tool_calls", Flag(), endpoints=CHAT),
    RequestField("reasoning_effort", OneOf(("none", "minimal", "low", "medium", "high", "xhigh", "max")), endpoints=CHAT),
    RequestField("include_reasoning", Flag(), endpoints=CHAT),
    RequestField("chat_template_kwargs", ListedArguments("model.chat_template_kwargs", "template_arguments"), endpoints=CHAT + TOKENIZE),
    RequestField("documents", Entries(Table(Text(None), 64), "max_messages"), endpoints=CHAT),
    RequestField("add_generation_prompt", Flag(), endpoints=CHAT + TOKENIZE),
    RequestField("continue_final_message", Flag(), endpoints=CHAT + TOKENIZE),
    RequestField("return_prompt_text", Flag(), endpoints=CHAT),
    RequestField("add_special_tokens", Flag(), endpoints=GENERATING + TOKENIZE),
    RequestField("skip_special_tokens", Flag()),
    RequestField("spaces_between_special_tokens", Flag()),
    RequestField("truncate_prompt_tokens", Integer(-1)),
    RequestField("truncation_side", OneOf(("left", "right"))),
    RequestField("return_token_ids", Flag()),
    RequestField("return_tokens_as_token_ids", Flag()),
    RequestField("cache_salt", Text(128, least=1)),
    RequestField("session_id", Text()),
    RequestField("priority", Integer(-INT64 - 1, INT64), note="needs `engine_args.scheduling_policy: priority`, and the scope `priority`"),
    RequestField("vllm_xargs", ListedArguments("model.vllm_xargs", "extra", arrays=True)),
)
_READ = (
    *(RequestField(name, Anything("a constraint"), Treatment.READ) for name in FIELDS_OF_CONSTRAINTS),
    RequestField("lookahead", Anything("object"), Treatment.READ, "needs `model.lookahead`"),
    RequestField("mark_forced", Flag(), Treatment.READ),
    RequestField("field_confidence", Flag(), Treatment.READ),
    RequestField("close_at_limit", Flag(), Treatment.READ),
    RequestField("unenforceable", OneOf(("refuse", "check")), Treatment.READ),
)
_SILENT = (
    *(
        RequestField(name, _ANY, Treatment.SILENT)
        # They keep books, cache and bill elsewhere: an answer without them is the same answer.
        for name in (
            *("metadata", "prediction", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "safety_identifier"),
            *("service_tier", "store", "user"),
        )
    ),
    RequestField("stream", _ANY, Treatment.SILENT, endpoints=TOKENIZE + DETOKENIZE),
)
_WARNED = (
    RequestField("request_id", _ANY, Treatment.WARNED, "answers have ids of the service"),
    RequestField("length_penalty", _ANY, Treatment.WARNED, "is for beam search"),
    *(
        RequestField(name, _ANY, Treatment.WARNED, _RENDERING)
        for name in ("mm_payload", "return_mm_kwargs", "return_token_offsets", "routed_experts_prompt_start")
    ),
)
_REFUSED = (
    RequestField("use_beam_search", Flag(), Treatment.REFUSED, "beams are sequences that no limit counts"),
    *(RequestField(name, _ANY, Treatment.REFUSED, _ENGINE) for name in ("kv_transfer_params", "ec_transfer_params")),
    *(RequestField(name, _ANY, Treatment.REFUSED, _MEDIA, GENERATING + TOKENIZE) for name in ("mm_processor_kwargs", "media_io_kwargs")),
    RequestField("chat_template", _ANY, Treatment.REFUSED, "templates are programs, and the operator's", CHAT + TOKENIZE),
    RequestField("suffix", _ANY, Treatment.REFUSED, "vLLM has no filling in", COMPLETION),
    *(RequestField(name, _ANY, Treatment.REFUSED, "is for chat completions", COMPLETION) for name in ("tools", "tool_choice")),
)
FIELDS = (*_FORWARDED, *_READ, *_SILENT, *_WARNED, *_REFUSED)
BY_NAME = {endpoint: {row.name: row for row in FIELDS if endpoint in row.endpoints} for endpoint in Endpoint}
_MEANT = {
    endpoint: [name for name, row in rows.items() if row.treatment in (Treatment.FORWARDED, Treatment.READ)]
    for endpoint, rows in BY_NAME.items()
}


def allowed_fields(endpoint: Endpoint, body: Mapping[str, Any], rules: FieldRules) -> dict[str, Any]:
    """The fields of `body` that are read or forwarded, with values of their types; `null` is as if a field were not there.

    Raises:
        ApiError: a field is refused, or its value is of another type or beyond a bound; `param` names it.
    """
    rows, allowed = BY_NAME[endpoint], dict[str, Any]()
    for name, value in body.items():
        row = rows.get(name)
        if row is None:
            if name.startswith(OLDER_CONSTRAINTS):
                allowed[name] = value
        elif row.treatment is Treatment.REFUSED:
            if value:  # false, or nothing in it, asks for nothing
                raise bad_request(f"'{name}' is not supported: {row.note}.", name, "unsupported_parameter")
        elif value is not None and row.treatment in (Treatment.FORWARDED, Treatment.READ):
            allowed[name] = row.kind.read(value, name, rules)
    return allowed


def ignored_fields(endpoint: Endpoint, body: Mapping[str, Any]) -> Iterator[ConstraintWarning]:
    """A warning for each field of `body` that changes nothing though its sender may think so; at most as many as an answer tells."""
    return islice(_ignored(endpoint, body), MOST)


def _ignored(endpoint: Endpoint, body: Mapping[str, Any]) -> Iterator[ConstraintWarning]:
    rows = BY_NAME[endpoint]
    for name, value in body.items():
        row, shown = rows.get(name), name[:LONGEST_NAME]
        if value is None:
            continue
        if row is None and not name.startswith(OLDER_CONSTRAINTS):
            message = f"'{shown}' is not a field of this request and was ignored."
            yield ConstraintWarning(UNKNOWN_FIELD, join("", shown), message, meant(shown, _MEANT[endpoint]))
        elif row is not None and row.treatment is Treatment.WARNED:
            yield ConstraintWarning(NO_EFFECT, join("", name), f"'{name}' has no effect: {row.note}.")
