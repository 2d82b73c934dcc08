"""What passes between the ingress and a model replica."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from grammar_service.messages import ReadyGrammar
from model_service.core_figures import CoreFigures
from model_service.lookahead.request import Lookahead

KEY_ARGUMENT = "maskcast_key"
"""The extra argument of vLLM's (`vllm_xargs`) in which a grammar key travels through its serving classes."""


CALL_ARGUMENT = "maskcast_call"
"""The one in which the id of a call travels, so that what is counted below vLLM's serving classes finds its way back."""


MOST_ARGUMENT = "maskcast_max_tokens"
"""The one that bounds an answer whose request says nothing of its length."""

CLOSE_ARGUMENT = "maskcast_close_at_limit"
"""The one that asks for an answer that is complete within its `max_tokens`."""

TENANT_ARGUMENT = "maskcast_tenant"
"""The one in which the engine core is told whose a request is."""


OUR_ARGUMENTS = "maskcast_"
"""What the names of such arguments begin with; they are not for clients."""


class Endpoint(StrEnum):
    """What an engine is asked for: an answer of a model, or what its tokenizer makes of a text, or of tokens."""

    CHAT = "chat"
    COMPLETION = "completion"
    TOKENIZE = "tokenize"
    DETOKENIZE = "detokenize"


GENERATING = (Endpoint.CHAT, Endpoint.COMPLETION)
"""Those that are answered by the model, and not by its tokenizer alone."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request for the engine: an OpenAI body without its constraint fields, and the constraint. `mark_forced` asks for the spans
    of text that the grammar forced; `lookahead`: how it is decoded, None: token by token; `wished`: the
    grammars of its reward, by their numbers. `trace`: the span that it
    belongs to, as a `traceparent` (W3C Trace Context); empty: nobody traces it.

    The rest is for the router: the tokens that the prompt is estimated to have, the grammar to force, and all answers together to have at
    most (`answer_tokens`), a name for what the prompt begins with (or nothing), the replica that has failed to answer this call before, how
    many sequences the engine is to compute for it, whose call it is and what he weighs beside others, and who is told of it
    (`turns.progress`)."""

    endpoint: Endpoint
    request_id: str
    body: dict[str, Any]
    constraint: ReadyGrammar | None
    mark_forced: bool = False
    prompt_tokens: int = 0
    forced_tokens: int = 0
    prefix: str = ""
    avoid: str = ""
    sequences: int = 1
    tenant: str = ""
    weight: float = 1.0
    progress: object = None
    lookahead: Lookahead | None = None
    wished: tuple[ReadyGrammar, ...] = ()
    trace: str = ""
    answer_tokens: int = 0


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What an engine has made of its settings. `context_length` in tokens; `jumps`: `async`, `sync`, or empty where it does not jump."""

    context_length: int
    dtype: str
    jumps: str


@dataclass(frozen=True)
class ReplicaStatus:
    """`grammar` holds the replica's grammar counters (memory_hits, redis_hits, pool_calls, corrupt); `jumps` those of its engine
    (forced_tokens, forced_segments, steps_saved); `outstanding_prefill_tokens` what it has accepted and not yet prefilled;
    `step_tokens` is the most that a step of it computes; `core` what its engine core has counted; `restarts` how many engines have ended
    in this replica; `lookaheads` what its look-aheads have come to; `restart_s` where the seconds of the last restart went, by part, once
    it was noticed that the engine had ended. All but `grammar` and what is told of restarts begin anew with each engine."""

    replica: str
    running: int
    grammar: dict[str, int]
    jumps: dict[str, int] = field(default_factory=dict)
    outstanding_prefill_tokens: int = 0
    step_tokens: int = 0
    core: CoreFigures = field(default_factory=CoreFigures)
    restarts: int = 0
    lookaheads: dict[str, int] = field(default_factory=dict)
    restart_s: dict[str, float] = field(default_factory=dict)
    engine: EngineFacts | None = None
