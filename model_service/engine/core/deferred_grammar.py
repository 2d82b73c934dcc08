"""A request's matcher where its masks are filled elsewhere: it also keeps what it has taken, to be sent there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from vllm.v1.structured_output.backend_types import StructuredOutputOptions

from grammar_service.backends import Matcher
from grammar_service.backends.canonical.matcher import CanonicalMatcher
from model_service.engine.core.backend import ArtifactBackend, KeyedGrammar
from model_service.engine.key_constraint import key_of
from model_service.loaded_grammars import MatcherUse


class DeferredGrammar(KeyedGrammar):
    """Where it may defer, its own matcher catches up only when somebody asks it something: masks come from the broadcaster, which takes the
    tokens as well, so that mostly nobody does. A violation is then told to vLLM with the tokens that come next.

    `stops` are the request's stop tokens, None: the tokenizer's.
    """

    def __init__(
        self,
        matcher: Matcher,
        key: str,
        stops: tuple[int, ...] | None,
        defers: bool,
        on_failure: Callable[[bool], None] = lambda _: None,
        use: MatcherUse | None = None,
    ) -> None:
        super().__init__(matcher, on_failure, use)
        self.key = key
        self.stops = stops
        self._defers = defers
        self._tokens: list[int] = []
        self._matched = 0
        self._sent = 0

    @property
    def matcher(self) -> Matcher:
        """The engine's own, after all tokens."""
        self._catch_up()
        return self._matcher

    def take_all(self) -> list[int]:
        """All tokens so far, which count as sent."""
        self._sent = len(self._tokens)
        return self._tokens

    def take_unsent(self) -> list[int]:
        """The tokens that have not been sent before; they count as sent."""
        tokens, self._sent = self._tokens[self._sent :], len(self._tokens)
        return tokens

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        if self._defers and not self._ahead and not self._violated:
            self._tokens += tokens
            return True
        return super().accept_tokens(request_id, tokens)

    def advance(self, tokens: Sequence[int]) -> bool:
        self._tokens.extend(tokens)
        return self._defers or self._catch_up()

    def advance_ahead(self, tokens: Sequence[int]) -> bool:
        super().advance_ahead(tokens)
        # What is forced behind them is asked for at once.
        self._catch_up()
        return not self._violated

    def rollback(self, num_tokens: int) -> None:
        super().rollback(num_tokens)
        del self._tokens[len(self._tokens) - num_tokens :]
        self._matched = len(self._tokens)

    def reset(self) -> None:
        super().reset()
        self._tokens.clear()
        self._matched = self._sent = 0

    def _catch_up(self) -> bool:
        """Whether all of the tokens that were still ahead are allowed; from the first that is not, they are dropped."""
        if (ahead := len(self._tokens) - self._matched) and not self._take(self._match, ahead):
            del self._tokens[self._matched :]
            self._sent = min(self._sent, self._matched)
            if self._defers:
                self._fail()
            return False
        return not (self._defers and self._violated)

    def _match(self) -> bool:
        matcher = self._matcher
        for token in self._tokens[self._matched :]:
            if not matcher.is_terminated() and not matcher.accept(token):
                return False
            self._matched += 1
        return True


class DeferredBackend(ArtifactBackend):
    """Makes such matchers. Where the engine has drafts it tries them in each step, so that nothing is deferred; nor is it for canonical
    answers, whose drawn tokens are looked at."""

    def compile_grammar(
        self, request_type: StructuredOutputOptions, grammar_spec: str, stop_token_ids: set[int] | None = None
    ) -> DeferredGrammar:
        stops = self._stops(stop_token_ids)
        key = key_of(grammar_spec)
        grammar = self._loaded(key)
        matcher = self._matcher(grammar, stops)
        defers = not self._max_rollback_tokens and not isinstance(matcher, CanonicalMatcher)
        return DeferredGrammar(matcher, key, stops, defers, partial(self._drop_failed, grammar), MatcherUse(grammar, matcher))
