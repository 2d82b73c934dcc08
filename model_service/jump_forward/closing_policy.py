"""Decides at which token an answer must end to be complete within its `max_tokens`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from grammar_service.backends import Matcher
from grammar_service.segments.closing import MOST_S, ClosingSearch
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

MOST_TOKENS = 4096
"""Of an end that is looked for."""
MARGIN = 2
"""Tokens: forced text may get some more where it is divided otherwise than the end had it."""
_GROWTH = 16
"""An end is looked for again after so small a part of the tokens to spare: each token would have to lengthen it by as many."""
MOST_SECONDS = 0.5
"""Of processor time that one request may take to look for its end before that is urgent, and once more then: other requests wait."""
RESERVE_S, SHARE = 0.02, 0.05
"""Of the time that passes, all requests together may take this share, and so much at one go; the rest wait for another token."""
URGENT = 128
"""Tokens to spare: such a request waits no more, and a search among so few takes 6 ms."""
_NEAR = 1024
"""So many tokens to spare or less: where a token has a bracket or a quote, a long member may have begun."""
_BEGINNINGS = frozenset(b'{["')


@dataclass(slots=True)
class _Known:
    """Of one request: the `ending` behind its first `output` tokens, None where that is not known. Nobody looks for one while it has less
    tokens than `due`; None: never again, since there is none that fits, or looking has taken all of its `seconds`."""

    ending: Sequence[int] | None = None
    output: int = 0
    due: int | None = 0
    seconds: float = 0.0


class ClosingPolicy:
    """When which request must end, and with which tokens. Not for several threads."""

    def __init__(self, tokenizer: GrammarTokenizer, clock: Callable[[], float] = time.monotonic) -> None:
        self._vocabulary = tokenizer.vocabulary
        self._clock = clock
        self._at, self._left_s = clock(), RESERVE_S
        self.search = ClosingSearch(tokenizer)
        self._known: dict[str, _Known] = {}
        self._most_s = MOST_S

    def forget(self, request_id: str) -> None:
        self._known.pop(request_id, None)

    def ending(self, request_id: str, matcher: Matcher, output: int, sampled: Sequence[int], room: int) -> Sequence[int] | None:
        """The end of an answer that has `output` tokens and may have `room` more, if it cannot take those that were `sampled`; None: it
        can, or nothing ends it in time. The matcher's state is the one ahead of them, and stays so."""
        known = self._known.setdefault(request_id, _Known())
        if known.due is None or not self._is_due(known.due, output, sampled, room):
            return None
        self._most_s, spare = MOST_S, room - len(known.ending or ())
        if spare > URGENT and (known.seconds > MOST_SECONDS or not self._has_time()):
            if known.seconds or room > _NEAR:
                return None
            # How long its end is nobody knows yet: it may be urgent.
            self._most_s = RESERVE_S
        began = time.thread_time()
        ending = self._ending(known, matcher, output, sampled, room)
        taken_s = time.thread_time() - began
        known.seconds += taken_s
        self._left_s -= taken_s
        if known.seconds > 2 * MOST_SECONDS:
            known.due = None
        return ending

    def _has_time(self) -> bool:
        """Whether the requests of the engine have not taken more than their share of the time."""
        now = self._clock()
        self._at, self._left_s = now, min(RESERVE_S, self._left_s + SHARE * (now - self._at))
        return self._left_s > 0

    def _ending(self, known: _Known, matcher: Matcher, output: int, sampled: Sequence[int], room: int) -> Sequence[int] | None:
        before = self._still(known, output, matcher)
        taken = 0
        while taken < len(sampled) and matcher.accept(sampled[taken]):
            taken += 1
        left = min(room - len(sampled) - MARGIN, MOST_TOKENS)
        is_over = matcher.is_terminated()
        behind = None if is_over else self._found(before, sampled, matcher, left)
        matcher.rollback(taken)
        if is_over or taken < len(sampled):
            return None
        # Where nothing is missing, nothing can be divided otherwise.
        if behind is not None and (not behind or len(behind) <= left):
            known.ending, known.output = behind, output + len(sampled)
            known.due = known.output + max(0, left - len(behind)) // _GROWTH
            return None
        if self.search.gave_up or left == MOST_TOKENS:
            # Whether it would fit is not known, and there may be room enough.
            known.ending, known.due = None, output + len(sampled) + 1 + max(0, left) // _GROWTH
            return None
        known.due = None
        return before if before is not None else self.search.find(matcher, min(room, MOST_TOKENS), self._most_s)

    def _is_due(self, due: int, output: int, sampled: Sequence[int], room: int) -> bool:
        near = room <= _NEAR + MOST_TOKENS
        return output + len(sampled) >= due or (near and any(not _BEGINNINGS.isdisjoint(self._vocabulary[token]) for token in sampled))

    def _still(self, known: _Known, output: int, matcher: Matcher) -> Sequence[int] | None:
        """The known ending behind `output` tokens, some of which may have been forced since."""
        if known.ending is None or output == known.output:
            return known.ending
        rest = known.ending[output - known.output :]
        return rest if self.search.ends(matcher, rest) else None

    def _found(self, before: Sequence[int] | None, sampled: Sequence[int], matcher: Matcher, most: int) -> Sequence[int] | None:
        """An end behind the sampled tokens. Mostly the one from ahead of them still is."""
        if before is not None:
            rest = before[len(sampled) :] if tuple(before[: len(sampled)]) == tuple(sampled) else before
            if self.search.ends(matcher, rest):
                return rest
        return self.search.find(matcher, max(0, most), self._most_s)
