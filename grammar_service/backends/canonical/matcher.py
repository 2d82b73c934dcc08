"""A matcher that keeps to the sequences that the tokenizer itself makes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch

from grammar_service.backends.layer import Layer
from grammar_service.backends.protocol import CompiledGrammar, Matcher
from grammar_service.canonical.automaton import CanonicalAutomaton, State
from grammar_service.canonical.packed_rows import Row, bits_of

NARROW = 64
"""Tokens that are each looked at before they are offered."""
DEPTH = 3
"""Tokens that are looked ahead. Of what leads nowhere, nothing is left at once in 93 of 100 cases. Of 6,200 answers under everyday grammars
(`python -m load_tests.canonical`) 83 fell back with one token, 7 with two, and none with three."""
FEW = 8
"""Where more ways go on, none of them is followed: of what leads nowhere and does not show it at once, at most four were seen to."""


class CanonicalGrammar:
    """A CompiledGrammar that is another one, less what the tokenizer would not make."""

    def __init__(self, grammar: CompiledGrammar, automaton: CanonicalAutomaton, own_stop_ids: Sequence[int]) -> None:
        self._grammar = grammar
        self._automaton = automaton
        self._own_stop_ids = tuple(own_stop_ids)

    @property
    def size_bytes(self) -> int:
        """The automaton is the tokenizer's, and counted there."""
        return self._grammar.size_bytes

    def matcher(self, stop_token_ids: Sequence[int] | None, max_rollback_tokens: int) -> CanonicalMatcher:
        inner = self._grammar.matcher(stop_token_ids, max_rollback_tokens + DEPTH + 1)
        return CanonicalMatcher(inner, self._automaton, self._own_stop_ids if stop_token_ids is None else stop_token_ids)


class CanonicalMatcher(Layer):
    """A Matcher that is another one, less the tokens that the tokenizer would not make there. The text begins at a boundary.

    Not every allowed token leads to an end: a grammar may leave no text whose sequence goes on so. Who tells `draw` of a token before
    `accept`, `draw_on` of what is forced behind it, and `settle` of the mask behind both, hears of one that leads nowhere, to draw anew.
    Where nobody does (`prunes`), and where a token was refused, masks of at most NARROW tokens leave out those that lead nowhere. Where
    nothing is left all the same, the other matcher's mask holds to the end, and `has_fallen_back` is True.

    A token may be banned at the place where the matcher stands, until it goes back behind that.
    """

    def __init__(self, matcher: Matcher, automaton: CanonicalAutomaton, stop_token_ids: Sequence[int]) -> None:
        super().__init__(matcher)
        self.prunes = True
        self._automaton = automaton
        self._stops = frozenset(stop_token_ids)
        self._course: list[State | None] = [automaton.start]
        self._rows: list[tuple[torch.Tensor, Row]] = []
        self._banned: list[int] = []
        self._banned_at = 0
        self.dropped = 0
        """Tokens that were drawn and led nowhere, in all."""
        self._drawn: deque[int] = deque()
        self._filled_at = 0

    @property
    def has_fallen_back(self) -> bool:
        return self._course[-1] is None

    @property
    def banned(self) -> int:
        """How many tokens are, here."""
        return len(self._banned) if self._banned_at == len(self._course) else 0

    @property
    def is_filled(self) -> bool:
        return self._filled_at == len(self._course)

    def draw(self, token: int) -> bool:
        """Take a token that was drawn, until `accept` or `undraw`, and say whether `settle` is to tell if it leads somewhere. What else a
        matcher does must not come between."""
        after = self._after(self._course[-1], token)
        if after is None or token in self._stops or not self._matcher.accept(token):
            return False
        self._course.append(after)
        self._drawn.append(token)
        self._filled_at = 0
        return True

    def draw_on(self, tokens: Sequence[int]) -> None:
        """Take also what has to follow a token that was drawn, up to a stop token: a request may name one that the text contains."""
        for token in tokens:
            if not self.draw(token):
                return

    def settle(self, mask: Row) -> bool:
        """Whether the token that was drawn leads somewhere; it, and what was drawn behind it, is taken back, and it is banned, if not.
        `mask` is the `inner` matcher's behind all of them, and makes the next one there."""
        state, drawn = self._course[-1], self._drawn[0]
        assert state is not None, "draw() comes first"
        depth = max(0, DEPTH + 1 - len(self._drawn))
        allowed = self._own_rows()[DEPTH][1]
        np.bitwise_and(mask, self._automaton.row(state, self._stops), out=allowed)
        if self._is_dead(state, allowed, depth):
            self.undraw()
            self.ban(drawn)
            self.dropped += 1
            return False
        self._filled_at = len(self._course)
        return True

    def followed(self, tokens: Sequence[int]) -> int:
        """How many of these, which the other matcher takes here one after another, are the tokenizer's own."""
        state = self._course[-1]
        for count, token in enumerate(tokens if state is not None else ()):
            state = self._after(state, token)
            if state is None:
                return count
        return len(tokens)

    def undraw(self) -> None:
        """Take back what was drawn and not accepted."""
        if drawn := len(self._drawn):
            self._drawn.clear()
            self.rollback(drawn)

    def accept(self, token: int) -> bool:
        if self._drawn and self._drawn[0] == token:
            self._drawn.popleft()
            return True
        self.undraw()
        state = self._course[-1]
        after = self._after(state, token)
        if after is None and state is not None and not self._has_nothing_left():
            return False
        if not self._matcher.accept(token):
            return False
        self._course.append(after)
        return True

    def rollback(self, n: int) -> None:
        self._matcher.rollback(n)
        del self._course[len(self._course) - n :]
        if len(self._course) < self._filled_at:
            self._filled_at = 0
        if len(self._course) < self._banned_at:
            self._unban()

    def fill(self, bitmask: torch.Tensor, row: int) -> None:
        if self.is_filled:
            bitmask.numpy()[row] = self._rows[DEPTH][1]
        else:
            super().fill(bitmask, row)

    def bound(self, bitmask: torch.Tensor, row: int) -> None:
        state = self._course[-1]
        if state is None or self._matcher.is_terminated():
            return
        allowed: Row = bitmask.numpy()[row]
        plain = allowed.copy()
        self._keep_canonical(allowed, state)
        self._leave_out_banned(allowed)
        if self.prunes or self.banned:
            self._leave_out_dead_ends(allowed)
        if not allowed.any():
            allowed[:] = plain

    def ban(self, token: int) -> None:
        """Leave it out of masks here: it has been drawn, and leads nowhere. Where nothing else is left, it is allowed again."""
        if not self.banned:
            self._unban()
            self._banned_at = len(self._course)
        self._banned.append(token)
        self._filled_at = 0

    def leads_nowhere(self, token: int) -> bool:
        """Whether no end is found behind an allowed token; False where none is found to be missing within DEPTH tokens. State unchanged."""
        after = self._after(self._course[-1], token)
        if after is None or token in self._stops or not self._matcher.accept(token):
            return False
        found = self._is_dead_end(after, DEPTH)
        self._matcher.rollback(1)
        return found

    def reset(self) -> None:
        self._matcher.reset()
        self._course = [self._automaton.start]
        self._drawn.clear()
        self._filled_at = 0
        self._unban()

    def _after(self, state: State | None, token: int) -> State | None:
        if state is None:
            return None
        if token in self._stops:
            return state if self._automaton.may_end(state) else None
        return self._automaton.after(state, token)

    def _keep_canonical(self, allowed: Row, state: State) -> None:
        allowed &= self._automaton.row(state, self._stops)

    def _leave_out_dead_ends(self, allowed: Row) -> None:
        """Where there are few tokens."""
        _leave_out(filter(self.leads_nowhere, _few_tokens(NARROW, allowed) or ()), allowed)

    def _leave_out_banned(self, allowed: Row) -> None:
        _leave_out(self._banned[: self.banned], allowed)

    def _unban(self) -> None:
        self._banned, self._banned_at = [], 0

    def _has_nothing_left(self) -> bool:
        state = self._course[-1]
        if state is None or self._matcher.is_terminated():
            return False
        allowed = self._allowed(state, DEPTH + 1)
        self._leave_out_banned(allowed)
        self._leave_out_dead_ends(allowed)
        return not allowed.any()

    def _is_dead_end(self, state: State, depth: int) -> bool:
        return self._is_dead(state, self._allowed(state, depth), depth)

    def _is_dead(self, state: State, allowed: Row, depth: int) -> bool:
        if depth == 0:
            return not allowed.any()
        tokens = _few_tokens(FEW, allowed)
        return tokens is not None and all(self._is_dead_behind(state, token, depth) for token in tokens)

    def _is_dead_behind(self, state: State, token: int, depth: int) -> bool:
        after = self._after(state, token)
        if token in self._stops:
            return False
        if after is None or not self._matcher.accept(token):
            return True
        dead = self._is_dead_end(after, depth - 1)
        self._matcher.rollback(1)
        return dead

    def _allowed(self, state: State, depth: int) -> Row:
        """What the other matcher and the tokenizer allow, in a row of its own for each depth."""
        tensor, allowed = self._own_rows()[depth]
        self._filled_at = 0
        self._matcher.fill(tensor, 0)
        self._keep_canonical(allowed, state)
        return allowed

    def _own_rows(self) -> list[tuple[torch.Tensor, Row]]:
        """One for each depth."""
        if not self._rows:
            words = len(self._automaton.row(self._automaton.start, self._stops))
            tensors = [torch.zeros(1, words, dtype=torch.int32) for _ in range(DEPTH + 2)]
            self._rows = [(tensor, tensor.numpy()[0]) for tensor in tensors]
        return self._rows


def _leave_out(tokens: Iterable[int], row: Row) -> None:
    for word, bit in bits_of(tokens):
        row[word] &= ~bit


def _few_tokens(most: int, row: Row) -> list[int] | None:
    """Its tokens, None where there are more; words are counted first, since mostly there are more of those."""
    held = row != 0
    if int(np.count_nonzero(held)) > most:
        return None
    places = held.nonzero()[0]
    words = row[places].view(np.uint32).tolist()
    if sum(map(int.bit_count, words)) > most:
        return None
    return [token for place, word in zip(places.tolist(), words, strict=True) for token in _bits(32 * place, word)]


def _bits(first: int, word: int) -> Iterator[int]:
    while word:
        lowest = word & -word
        yield first + lowest.bit_length() - 1
        word ^= lowest
