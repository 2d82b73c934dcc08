"""When an engine has done what for one call, as far as somebody wants to know."""

from __future__ import annotations

from dataclasses import dataclass, field

from model_service.jump_forward.account import ForcedAccount


@dataclass(frozen=True, slots=True)
class AnswerTimes:
    """Of one answer, in seconds of `time.monotonic`: when the engine core has put it into its queue, begun to compute it, and had its first
    and last token. `output_tokens` are sampled and forced ones."""

    queued: float
    scheduled: float
    first_token: float
    last_token: float
    prompt_tokens: int
    output_tokens: int
    preemptions: int


@dataclass
class Timeline:
    """Of a call: its finished answers, in the order of their ends, and what their grammar has forced in all of them together."""

    answers: list[AnswerTimes] = field(default_factory=list)
    forced: ForcedAccount = field(default_factory=ForcedAccount)
