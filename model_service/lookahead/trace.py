"""What a look-ahead has tried at each of its steps, as text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from model_service.lookahead.instructions import Emit, Tokens

MOST_CHARACTERS = 1 << 16
"""Of what is tried for one text; steps beyond it are counted only."""
CONTEXT = 16
"""Tokens ahead of those that are told: some have another text behind a space or within a character."""
StepTold: TypeAlias = dict[str, Any]


@dataclass(slots=True)
class Trace:
    """Of one text. `text_of`: what tokens say. A step is what was tried since tokens were said last, with the rewards, and what was said
    then."""

    text_of: Callable[[Tokens], str]
    left_out: int = 0
    _said: Tokens = ()
    _tried: list[StepTold] = field(default_factory=list)
    _untold: list[StepTold] = field(default_factory=list)
    _characters: int = 0

    def tried(self, texts: Sequence[Tokens], rewards: Sequence[float]) -> None:
        """These texts, each with what was said before it, earn these rewards."""
        if self._characters >= MOST_CHARACTERS:
            return
        for tokens, reward in zip(texts, rewards, strict=True):
            text = self._after(tokens)
            self._characters += len(text)
            self._tried.append({"text": text, "reward": reward})

    def said(self, emit: Emit) -> None:
        if self._characters >= MOST_CHARACTERS:
            self.left_out += 1
            return
        text = self._after(self._said + emit.tokens)
        self._said += emit.tokens
        step = {"text": text, "tokens": len(emit.tokens), "reward": emit.reward, "tried": self._tried}
        if (verdict := emit.verdict) is not None:
            step |= {"state": verdict.state.value, "proposed": verdict.proposed, "accepted": verdict.accepted}
        self._tried = []
        self._untold.append(step)

    def _after(self, tokens: Tokens) -> str:
        """What they say, of which the first ones have been said."""
        start = max(0, len(self._said) - CONTEXT)
        return _after(self.text_of(self._said[start:]), self.text_of(tokens[start:]))

    def new_steps(self) -> list[StepTold]:
        """Those since the last call of this."""
        steps, self._untold = self._untold, []
        return steps


class Traces:
    """Of one call, by choice."""

    def __init__(self) -> None:
        self._of: defaultdict[int, list[Trace]] = defaultdict(list)

    def begin(self, choice: int, text_of: Callable[[Tokens], str]) -> Trace:
        trace = Trace(text_of)
        self._of[choice].append(trace)
        return trace

    def new_steps(self, choice: int) -> list[StepTold]:
        return [step for trace in self._of[choice] for step in trace.new_steps()]

    @property
    def left_out(self) -> int:
        """Steps that are not told."""
        return sum(trace.left_out for traces in self._of.values() for trace in traces)


def _after(before: str, whole: str) -> str:
    """A character whose last bytes were yet to come stands otherwise in `before`."""
    same = next((place for place, (a, b) in enumerate(zip(before, whole, strict=False)) if a != b), min(len(before), len(whole)))
    return whole[same:]
