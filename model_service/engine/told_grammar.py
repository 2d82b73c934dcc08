"""A request's matcher where its masks are filled elsewhere: it also remembers what it has taken, to tell it."""

from __future__ import annotations

from collections.abc import Sequence

from vllm.v1.structured_output.backend_types import StructuredOutputOptions

from grammar_service.backends import Matcher
from model_service.engine.backend import ArtifactBackend, KeyedGrammar


class ToldGrammar(KeyedGrammar):
    """Where it may put things off, its own matcher follows only when somebody asks it something: masks come from the broadcaster, which
    takes the tokens as well, so that mostly nobody does. A violation is then told to vLLM with the tokens that come next.

    `stops` are the request's stop tokens, None: the tokenizer's.
    """

    def __init__(self, matcher: Matcher, key: str, stops: tuple[int, ...] | None, puts_off: bool) -> None:
        super().__init__(matcher)
        self.key = key
        self.stops = stops
        self._puts_off = puts_off
        self._taken: list[int] = []
        self._followed = 0
        self._told = 0

    @property
    def matcher(self) -> Matcher:
        """The engine's own, after all tokens."""
        self._follow()
        return self._matcher

    def tell_all(self) -> list[int]:
        """All tokens so far, which count as told."""
        self._told = len(self._taken)
        return self._taken

    def untold(self) -> list[int]:
        """The tokens that have not been told before."""
        tokens, self._told = self._taken[self._told :], len(self._taken)
        return tokens

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        if self._puts_off and not self._ahead and not self._violated:
            self._taken += tokens
            return True
        return super().accept_tokens(request_id, tokens)

    def advance(self, tokens: Sequence[int]) -> bool:
        self._taken.extend(tokens)
        return self._puts_off or self._follow()

    def advance_ahead(self, tokens: Sequence[int]) -> bool:
        super().advance_ahead(tokens)
        # What is forced behind them is asked for at once.
        self._follow()
        return not self._violated

    def rollback(self, num_tokens: int) -> None:
        super().rollback(num_tokens)
        del self._taken[len(self._taken) - num_tokens :]
        self._followed = len(self._taken)

    def reset(self) -> None:
        super().reset()
        self._taken.clear()
        self._followed = self._told = 0

    def _follow(self) -> bool:
        """Whether all of the tokens that were still ahead are allowed; from the first that is not, they are dropped."""
        matcher, taken = self._matcher, self._taken
        while self._followed < len(taken):
            if not matcher.is_terminated() and not matcher.accept(taken[self._followed]):
                del taken[self._followed :]
                self._told = min(self._told, self._followed)
                self._violated = self._violated or self._puts_off
                return False
            self._followed += 1
        return not (self._puts_off and self._violated)


class ToldBackend(ArtifactBackend):
    """Makes such matchers. Where the engine has drafts it tries them in each step, so that nothing is put off."""

    def compile_grammar(
        self, request_type: StructuredOutputOptions, grammar_spec: str, stop_token_ids: set[int] | None = None
    ) -> ToldGrammar:
        stops = tuple(sorted(stop_token_ids)) if stop_token_ids else None
        matcher = self._matcher(grammar_spec, stops)
        return ToldGrammar(matcher, grammar_spec, stops, puts_off=not self._max_rollback_tokens)
