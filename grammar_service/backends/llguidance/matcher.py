"""Grammars and matchers of llguidance, as the protocol has them."""

from __future__ import annotations

from collections.abc import Sequence

import llguidance
import msgspec
import numpy as np
import numpy.typing as npt
import torch

from grammar_service.backends.bounded_whitespace import BoundedWhitespace
from grammar_service.backends.guarded import Guarded
from grammar_service.backends.protocol import Matcher
from grammar_service.canonical.packed_rows import bits_of
from grammar_service.guards.plan import Plan
from grammar_service.vocabulary.tokenizer import GrammarTokenizer

_NOTHING_FOLLOWS = "NoExtension"
_STATES_BYTES, _STATES_OF_A_BYTE = 160 << 10, 90
"""About what the states of a lexer and a parser come to after some answers, beside the text, and for each byte of it. The library (1.7)
makes them as they are needed and tells nothing of them; `tests/unit/grammar_service/backends/test_memory.py` looks at what is held."""

LIMITS = llguidance.LLParserLimits(step_lexer_fuel=100_000)
"""Half of the default fuel of llguidance 1.7. It limits a mask of 100 alternative patterns to 22 ms (160 ms with the default). The 28
schemas of `load_tests/corpus` that this backend serves need less than half of it."""


class LlguidancePayload(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What travels: the library's `grammar`; whether whitespace is flexible, so that its runs are `bounded` by the matcher; the guard's
    `plan`."""

    grammar: str
    bounded: bool
    plan: Plan | None


class LlguidanceGrammar:
    """Matchers are copies of one that has been built: copying shares the lexer and its states. Raises ValueError as the library does."""

    def __init__(self, payload: LlguidancePayload, tokenizer: GrammarTokenizer) -> None:
        self._first = llguidance.LLMatcher(tokenizer.llguidance, payload.grammar, log_level=0, limits=LIMITS)
        self._spaces = tokenizer.spaces if payload.bounded else None
        self._plan = payload.plan
        self._tokenizer = tokenizer
        self._bytes = _STATES_BYTES + _STATES_OF_A_BYTE * len(payload.grammar)

    @property
    def size_bytes(self) -> int:
        return self._bytes

    def error(self) -> str:
        """The library's message if it cannot read the grammar, else empty."""
        return str(self._first.get_error())

    def fault(self) -> str:
        """The same, and whether it can use what it has read; costs a few masks."""
        if not self._first.is_error():
            # Fuel limits show only when the first mask is computed, grammars that never end when a token has been taken; what takes long
            # or too much may stand behind the first choice.
            trial = self._first.deep_copy()
            token = self._allowed(trial)
            if token is not None:
                if not trial.try_consume_tokens([token]):
                    return _error_of(trial) or "it forbids what it has allowed"
                if (second := self._allowed(trial)) is not None:
                    # Refused without an error where it is an added token that has a text.
                    trial.try_consume_tokens([second])
            return _error_of(trial)
        return str(self._first.get_error())

    def _allowed(self, matcher: llguidance.LLMatcher) -> int | None:
        """A token that may come next, none where the text may end there."""
        allowed = int.from_bytes(matcher.compute_bitmask(), "little")
        token = (allowed & -allowed).bit_length() - 1
        return token if token >= 0 and token not in self._tokenizer.stop_token_ids else None

    def matcher(self, stop_token_ids: Sequence[int] | None, max_rollback_tokens: int) -> Matcher:
        stops = tuple(stop_token_ids) if stop_token_ids is not None else self._tokenizer.stop_token_ids
        plain: Matcher = LlguidanceMatcher(self._first.deep_copy(), stops, self._tokenizer)
        bounded = plain if self._spaces is None else BoundedWhitespace(plain, self._spaces)
        return bounded if self._plan is None else Guarded(bounded, self._plan.guard(self._tokenizer.names))


def _error_of(matcher: llguidance.LLMatcher) -> str:
    """The library's message. Where nothing can follow an unfinished text it says so in one word, and what the matcher held."""
    message = str(matcher.get_error())
    return "no text matches it" if message.startswith(_NOTHING_FOLLOWS) else message


class LlguidanceMatcher:
    """Stop tokens are handled here and never shown to the library, which does not count them in its history."""

    def __init__(self, matcher: llguidance.LLMatcher, stops: Sequence[int], tokenizer: GrammarTokenizer) -> None:
        self._matcher = matcher
        self._stops = frozenset(stops)
        self._own_stops = tokenizer.stop_token_ids
        self._own_bits, self._stop_bits = bits_of(self._own_stops), bits_of(self._stops)
        self._vocab_size = tokenizer.vocab_size
        self._accepted = 0
        self._terminated = False

    @property
    def library(self) -> llguidance.LLMatcher:
        """Whose own masks are wrong about stop tokens, see `mend`."""
        return self._matcher

    @property
    def names_tokens(self) -> bool:
        return False

    def accept(self, token: int) -> bool:
        if self._terminated:
            return False
        if token in self._stops and self._matcher.is_accepting():
            self._terminated = True
        elif not self._is_text(token) or self._matcher.is_stopped() or self._matcher.try_consume_tokens([token]) != 1:
            return False
        self._accepted += 1
        return True

    def rollback(self, n: int) -> None:
        if not 0 <= n <= self._accepted:
            raise ValueError(f"cannot take back {n} of {self._accepted} tokens")
        self._accepted -= n
        if n and self._terminated:
            self._terminated = False
            n -= 1
        if n:
            self._matcher.rollback(n)

    def fill(self, bitmask: torch.Tensor, row: int) -> None:
        if bitmask.dtype is not torch.int32 or not bitmask.is_contiguous() or not 0 <= row < len(bitmask):
            raise ValueError("a bitmask must be contiguous int32, and have the row")
        target: npt.NDArray[np.int32] = bitmask.numpy()[row]
        if self._terminated:
            target[:] = 0
            return
        self._matcher.unsafe_compute_mask_ptr(bitmask.data_ptr() + row * target.nbytes, target.nbytes)
        self.mend(target)

    def mend(self, row: npt.NDArray[np.int32]) -> None:
        """Make the library's mask ours."""
        for word, bit in self._own_bits:
            row[word] &= ~bit
        if self._matcher.is_accepting():
            for word, bit in self._stop_bits:
                row[word] |= bit

    def forced_bytes(self) -> bytes:
        if self._terminated or self._matcher.is_stopped():
            return b""
        return bytes(self._matcher.compute_ff_bytes())

    def is_terminated(self) -> bool:
        return self._terminated

    def reset(self) -> None:
        self._matcher.reset()
        self._accepted = 0
        self._terminated = False

    def _is_text(self, token: int) -> bool:
        return 0 <= token < self._vocab_size and token not in self._own_stops
