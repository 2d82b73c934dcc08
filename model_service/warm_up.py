"""Requests that a fresh replica answers before it reports ready: the first ones on an engine take seconds."""

from __future__ import annotations

from typing import Any, Final

from grammar_service.spec import GrammarKind, GrammarSpec

SPEC: Final = GrammarSpec(GrammarKind.JSON_OBJECT, "")


def bodies(model: str) -> list[tuple[dict[str, Any], bool]]:
    """Chat bodies, and whether to constrain them: greedy and sampled, with log probabilities, alone and in twos."""
    common = {"model": model, "messages": [{"role": "user", "content": "Say something."}], "max_tokens": 8}
    return [
        ({**common, "temperature": 0}, False),
        ({**common, "temperature": 0}, True),
        ({**common, "temperature": 1, "top_p": 0.9, "seed": 1, "n": 2}, True),
        ({**common, "temperature": 1, "logprobs": True, "top_logprobs": 1}, True),
    ]
