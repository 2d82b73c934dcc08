"""Whether an answer keeps to the tokens that its tokenizer makes of its text."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from grammar_service.canonical.automaton import CanonicalAutomaton, State
from model_service.lookahead.instructions import Tokens


class OwnTokens:
    """Of one answer, which any of `ends` ends."""

    def __init__(self, automaton: CanonicalAutomaton, ends: AbstractSet[int]) -> None:
        self._automaton = automaton
        self._ends = ends
        self._state: State | None = automaton.start

    def are_left(self, tokens: Tokens) -> bool:
        """Whether it is with these tokens, behind those before them, that the answer keeps to its own no more: at most once."""
        had = self._state is not None
        for token in tokens:
            self._state = None if self._state is None else self._behind(self._state, token)
        return had and self._state is None

    def _behind(self, state: State, token: int) -> State | None:
        if token in self._ends:
            return state if self._automaton.may_end(state) else None
        return self._automaton.after(state, token)
